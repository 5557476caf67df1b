import type { FileRow, FileStore, Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import type { KeepDeps } from '../v1/keep-file.ts';
import type { JobApi } from '../wire/jobs.ts';
import { type Folder, type Name, openFolder } from './folder.ts';
import { type Inputs, createInputs, shareEarlier } from './inputs.ts';
import { type Mirror, openMirror } from './mirror.ts';

/** The plain folders of this machine, and whose files lie in them; everybody else's are the ledger's. */
export type Disks = {
  readonly user: string;
  readonly input: Folder | undefined;
  readonly output: Folder | undefined;
  /** The highest number that v1's file counter would find in the folder. */
  readonly highestNumber: (user: string, question: Question) => Promise<number>;
};

type Question = {
  readonly temp: boolean;
  readonly subfolder: string;
  readonly prefix: string;
};

/** One user's files shared with whoever works in the plain folders. */
export type SharedFolders = {
  /** The ledger, in which the names of that user's files are the folders'. */
  readonly ledger: Ledger;
  readonly resend: (
    user: string,
    name: Name & Pick<FileRow, 'type'>,
  ) => Promise<string | undefined>;
  /** From now on the folders get what they are owed. */
  start(): void;
  close(): Promise<void>;
};

type Deps = {
  readonly disks: Disks;
  readonly ledger: Ledger;
  readonly jobs: KeepDeps['jobs'] & Pick<JobApi, 'content'>;
  readonly spoolDir: string;
  readonly log: Logger;
};

export async function openDisks(
  user: string,
  places: {
    readonly inputDirectory: string | undefined;
    readonly outputDirectory: string | undefined;
  },
): Promise<Disks> {
  const opened = (path: string | undefined) => (path === undefined ? undefined : openFolder(path));
  const output = await opened(places.outputDirectory);
  return {
    user,
    input: await opened(places.inputDirectory),
    output,
    highestNumber: async (asker, question) =>
      output && asker === user && !question.temp ? highestIn(output, question) : 0,
  };
}

export async function openSharedFolders(deps: Deps): Promise<SharedFolders> {
  const { disks, ledger } = deps;
  const { files } = ledger;
  const outputs = disks.output && (await openOutputs({ ...deps, folder: disks.output }));
  const inputs = disks.input && (await openInputs({ ...deps, folder: disks.input }));
  const stores: Stores = { input: inputs?.store, output: outputs?.store };
  const mirrors = [outputs?.mirror, inputs?.mirror].filter((mirror) => mirror !== undefined);
  return {
    ledger: { ...ledger, files: filesOver(files, disks.user, stores) },
    resend: async (user, name) =>
      user === disks.user && name.type === 'input' ? inputs?.inputs.resend(name) : undefined,
    start: () => mirrors.forEach((mirror) => mirror.start()),
    close: async () => void (await Promise.all(mirrors.map((mirror) => mirror.close()))),
  };
}

type Stores = { readonly [type: string]: Partial<FileStore> | undefined };
type WithFolder = Deps & { readonly folder: Folder };

async function openInputs({ disks, ledger, ...deps }: WithFolder) {
  const common = { ...deps, user: disks.user, files: ledger.files };
  const mirror = await openMirror(common);
  await shareEarlier({ ...common, mirror });
  const inputs = createInputs({ ...common, mirror });
  return { mirror, inputs, store: storeOf(inputs) };
}

function storeOf(inputs: Inputs): Partial<FileStore> {
  return {
    put: (row) => inputs.put(row),
    claim: (row) => inputs.claim(row),
    get: (_, name) => inputs.get(name),
    newestNamed: async (_, { filename }) => {
      const named = (await inputs.list()).filter((row) => row.filename === filename);
      return named.toSorted((a, b) => b.modifiedAtMs - a.modifiedAtMs)[0];
    },
    list: () => inputs.list(),
  };
}

async function openOutputs({ disks, ledger, ...deps }: WithFolder) {
  const mirror = await openMirror({ ...deps, user: disks.user, files: ledger.files });
  return { mirror, store: writtenFiles(ledger.files, mirror, deps.folder) };
}

/** What is recorded as an output is written to the folder, too; reading is the ledger's business. */
function writtenFiles(files: FileStore, mirror: Mirror, folder: Folder): Partial<FileStore> {
  return {
    /** An upload that is to overwrite, as on the v1 server. */
    put: async (row) =>
      void (await mirror.take(row, 'newer', () => files.put(row).then(() => true))),
    claim: async (row) =>
      !(await folder.isTaken(row)) && mirror.take(row, 'keep-both', () => files.claim(row)),
  };
}

function filesOver(files: FileStore, user: string, stores: Stores): FileStore {
  const of = (owner: string, type: string): FileStore => {
    const store = owner === user ? stores[type] : undefined;
    return store ? { ...files, ...store } : files;
  };
  return {
    ...files,
    put: (row) => of(row.user, row.type).put(row),
    claim: (row) => of(row.user, row.type).claim(row),
    get: (owner, name) => of(owner, name.type).get(owner, name),
    newestNamed: (owner, name) => of(owner, name.type).newestNamed(owner, name),
    list: (owner, type) => of(owner, type).list(owner, type),
  };
}

async function highestIn(folder: Folder, { subfolder, prefix }: Question): Promise<number> {
  const start = `${prefix}_`;
  const numbers = (await folder.names(subfolder))
    .filter((name) => name.startsWith(start))
    .map((name) => Number(/^(\d{1,15})(_|$)/.exec(name.slice(start.length))?.[1] ?? 0));
  return numbers.reduce((most, number) => Math.max(most, number), 0);
}
