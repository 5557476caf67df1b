import { readFileSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { packageUrl } from '../lib/package-url.ts';
import type { Config } from '../config/config.ts';
import type { FileRow, FileStore, Ledger } from '../ledger/ledger.ts';
import { spoolBytes } from '../lib/spool.ts';
import { LOCAL_USER } from '../auth/identity.ts';
import type { OpenedUpstream } from './upstream.ts';
import { type FileStoringServices, storeBytes, contentTypeFor } from '../files/store-file.ts';

const EXAMPLE = packageUrl('fixtures/inputs/example.png');
const NAME = { type: 'input', subfolder: '', filename: 'example.png' } as const;
/**
 * The modification time of the example. It is older than every upload, because lists of files begin with the newest.
 */
const MODIFIED_AT_MS = Date.UTC(2026, 0, 1);

type ExampleServices = {
  readonly jobs: FileStoringServices['jobs'];
  readonly spoolDir: string;
  readonly hasSharedInput: (user: string) => boolean;
};

/**
 * Adds `example.png` to the inputs of each user, as long as the embedded engine runs the jobs. The
 * input folder of the original server has that file from the start, and front ends name it in every
 * new `LoadImage`. A plain input folder is left as its owner made it.
 */
export function withExampleInput(config: Config, runner: OpenedUpstream, spoolDir: string): Ledger {
  const { ledger } = runner.folders;
  if (config.upstream.kind !== 'embedded') return ledger;
  const hasSharedInput = (user: string): boolean =>
    config.folders.inputDirectory !== undefined && user === LOCAL_USER;
  return {
    ...ledger,
    files: addExample(ledger.files, { jobs: runner.jobs, spoolDir, hasSharedInput }),
  };
}

/** Lists the example, and stores it for a user when it is first requested by name. */
function addExample(files: FileStore, services: ExampleServices): FileStore {
  const storing = new Map<string, Promise<FileRow | undefined>>();
  const lists = new WeakMap<readonly FileRow[], readonly FileRow[]>();

  /** Stores the example for a user. Concurrent requests get the same asset. */
  function store(user: string): Promise<FileRow | undefined> {
    const task =
      storing.get(user) ?? storeExample(files, user, services).finally(() => storing.delete(user));
    storing.set(user, task);
    return task;
  }

  return {
    ...files,
    async get(user, name) {
      const row = await files.get(user, name);
      return row ?? (isExample(name) && !services.hasSharedInput(user) ? store(user) : undefined);
    },
    async list(user, type) {
      const rows = await files.list(user, type);
      if (type !== 'input' || services.hasSharedInput(user)) return rows;
      const all = lists.get(rows) ?? (rows.some(isExample) ? rows : [...rows, exampleRow(user)]);
      lists.set(rows, all);
      return all;
    },
  };
}

function isExample({ type, subfolder, filename }: Pick<FileRow, keyof typeof NAME>): boolean {
  return filename === NAME.filename && subfolder === NAME.subfolder && type === NAME.type;
}

function exampleRow(user: string): FileRow {
  return {
    ...NAME,
    user,
    assetId: '',
    hash: null,
    sizeBytes: statSync(EXAMPLE).size,
    contentType: contentTypeFor(NAME.filename),
    modifiedAtMs: MODIFIED_AT_MS,
  };
}

/** Stores the example. An upload of the same name that comes in between has priority. */
async function storeExample(
  files: FileStore,
  user: string,
  { jobs, spoolDir }: ExampleServices,
): Promise<FileRow | undefined> {
  const caller = { user };
  const file = await spoolBytes(readFileSync(EXAMPLE), { dir: spoolDir });
  try {
    const asset = await storeBytes(jobs, { ...NAME, caller, file });
    const row = { ...exampleRow(user), assetId: asset.id, hash: file.hash };
    if (!(await files.claim(row))) await jobs.deleteAsset(caller, asset.id);
  } finally {
    await rm(file.path, { force: true });
  }
  return files.get(user, NAME);
}
