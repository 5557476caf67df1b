import type { FileRow, FileStore, Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { FileStoringServices } from '../files/store-file.ts';
import type { JobApi } from '../protocol/job-api.ts';
import { type Folder, type FileName, openFolder } from './folder.ts';
import { type NameSeries, counterIn } from '../translate/free-names.ts';
import { FolderInputs, shareExisting } from './inputs.ts';
import { type FolderWriter, openFolderWriter } from './writer.ts';

/**
 * The shared folders of this machine, and the user whose files they have. Files of other users are only in the
 * ledger.
 */
type SharedFolderDisks = {
  readonly user: string;
  readonly input: Folder | undefined;
  readonly output: Folder | undefined;
  /**
   * Returns the highest number that v1's file counter would find in the folder; 0 for other users and temporary
   * files.
   */
  readonly highestNumber: (asker: string, series: NameSeries) => Promise<number>;
};

/** The files of one user, which plain folders share with other programs. */
export interface SharedFolders {
  /** The ledger. For this user, its files are those of the folders. */
  readonly ledger: Ledger;
  readonly reupload: (
    user: string,
    name: FileName & Pick<FileRow, 'type'>,
  ) => Promise<string | undefined>;
  /** Starts writing pending files to the folders. */
  readonly start: () => void;
  readonly close: () => Promise<void>;
}

type SharedFoldersOptions = {
  readonly disks: SharedFolderDisks;
  readonly ledger: Ledger;
  readonly jobs: FileStoringServices['jobs'] & Pick<JobApi, 'content'>;
  readonly spoolDir: string;
  readonly log: Logger;
};

/** Opens the folders of `--input-directory` and `--output-directory`, if they are set. */
export async function openFolderDisks(
  user: string,
  directories: {
    readonly inputDirectory: string | undefined;
    readonly outputDirectory: string | undefined;
  },
): Promise<SharedFolderDisks> {
  const openIfNamed = (path: string | undefined) =>
    path === undefined ? undefined : openFolder(path);
  const output = await openIfNamed(directories.outputDirectory);
  return {
    user,
    input: await openIfNamed(directories.inputDirectory),
    output,
    highestNumber: async (asker, series) =>
      output && asker === user && !series.temp ? highestNumberIn(output, series) : 0,
  };
}

/** Opens the shared folders over a ledger. Nothing is written to them before `start`. */
export async function openSharedFolders(deps: SharedFoldersOptions): Promise<SharedFolders> {
  const { disks, ledger } = deps;
  const { files } = ledger;
  const outputs = disks.output && (await openOutputs({ ...deps, folder: disks.output }));
  const inputs = disks.input && (await openInputs({ ...deps, folder: disks.input }));
  const stores: StoresByType = { input: inputs?.files.store, output: outputs?.store };
  const writers = [outputs?.writer, inputs?.writer].filter((writer) => writer !== undefined);
  return {
    ledger: { ...ledger, files: withFolderStores(files, disks.user, stores) } satisfies Ledger,
    reupload: async (user, name) =>
      user === disks.user && name.type === 'input' ? inputs?.files.reupload(name) : undefined,
    start: () => writers.forEach((writer) => writer.start()),
    close: async () => void (await Promise.all(writers.map((writer) => writer.close()))),
  };
}

type StoresByType = { readonly [type: string]: Partial<FileStore> | undefined };
type FolderOptions = SharedFoldersOptions & { readonly folder: Folder };

async function openInputs({ disks, ledger, ...deps }: FolderOptions) {
  const common = { ...deps, user: disks.user, files: ledger.files };
  const writer = await openFolderWriter(common);
  await shareExisting({ ...common, writer });
  return { writer, files: new FolderInputs({ ...common, writer }) };
}

async function openOutputs({ disks, ledger, ...deps }: FolderOptions) {
  const writer = await openFolderWriter({ ...deps, user: disks.user, files: ledger.files });
  return { writer, store: outputStore(ledger.files, writer, deps.folder) };
}

/** Returns the store of outputs: it writes to the ledger and the folder, and reads from the ledger. */
function outputStore(files: FileStore, writer: FolderWriter, folder: Folder): Partial<FileStore> {
  return {
    /** Overwrites an existing file, as the v1 server does. */
    put: async (row) =>
      void (await writer.writeAfter(row, 'newer', () => files.put(row).then(() => true))),
    claim: async (row) =>
      !(await folder.exists(row)) && writer.writeAfter(row, 'keep-both', () => files.claim(row)),
  };
}

function withFolderStores(files: FileStore, user: string, stores: StoresByType): FileStore {
  const storeFor = (owner: string, type: string): FileStore => {
    const store = owner === user ? stores[type] : undefined;
    return store ? { ...files, ...store } : files;
  };
  return {
    ...files,
    put: (row, durability) => storeFor(row.user, row.type).put(row, durability),
    claim: (row, durability) => storeFor(row.user, row.type).claim(row, durability),
    get: (owner, name) => storeFor(owner, name.type).get(owner, name),
    list: (owner, type) => storeFor(owner, type).list(owner, type),
  };
}

/** Returns the highest number that v1's file counter would find in the folder. */
async function highestNumberIn(
  folder: Folder,
  { subfolder, name: { start } }: NameSeries,
): Promise<number> {
  const names = (await folder.listNames(subfolder)).filter((name) => name.startsWith(start));
  return names.reduce((most, name) => Math.max(most, counterIn(name.slice(start.length))), 0);
}
