import { UNFINISHED_COPY } from '../../data-folder/bind-bucket.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { reached } from '../../lib/crash-point.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import type { FilesPlace, PlacedFile } from './places.ts';

/** The source of a copy, which is only read. */
export type FilesSource = Pick<FilesPlace, 'name' | 'list' | 'withFile'>;

export type CopyOptions = {
  readonly from: FilesSource;
  readonly to: FilesPlace;
  /**
   * Identifies the copy. Give the same id to continue after an interruption; the target refuses another one until
   * then.
   */
  readonly id: string;
  /** Called once for copying and once for verifying. */
  readonly progress: StartProgress;
};

const MAX_CONCURRENT = 8;
/** Matches the path of a file whose name is the hash of its bytes. */
const NAMED_BY_HASH = /^blobs(?:-leaving)?\/(?:[0-9a-f]{2}\/)?([0-9a-f]{64})(?:\.|$)/;

/**
 * Copies all files into an empty place, and verifies them. Returns the number of files. Call it again after an
 * interruption. No server starts on the target before `finishCopy`. Throws when the target is not empty or a file is
 * damaged.
 */
export async function copyFiles(options: CopyOptions): Promise<number> {
  const { from, to, id } = options;
  await refuseOthersFiles(to, id);
  const files = await from.list();
  await to.writeSmall(UNFINISHED_COPY, id);
  const hashes = await copyEach(options, files);
  await verify(options, hashes, files);
  reached('copy-verified');
  return files.length;
}

/** Completes a copy: servers can then start on the target. */
export async function finishCopy(to: FilesPlace): Promise<void> {
  await to.remove(UNFINISHED_COPY);
}

async function refuseOthersFiles(to: FilesPlace, id: string): Promise<void> {
  const begun = await to.readSmall(UNFINISHED_COPY);
  if (begun === id) return;
  if (begun !== undefined)
    throw new Error(`${to.name} has the files of another copy that was interrupted`);
  if (await to.isTaken())
    throw new Error(`${to.name} belongs to a ledger already: use another PREFIX`);
  const [first] = await to.list();
  if (first !== undefined) throw new Error(`${to.name} is not empty: it has ${first.path}`);
}

/** Returns the hash of each file by its path. */
async function copyEach(
  { from, to, progress }: CopyOptions,
  files: readonly PlacedFile[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set(files.map(({ path }) => path));
  const there = new Map<string, number>();
  for (const { path, sizeBytes } of await to.list()) {
    if (wanted.has(path)) there.set(path, sizeBytes);
    // The source has removed this file since the copy was interrupted.
    else await to.remove(path);
  }
  const hashes = new Map<string, string>();
  const damaged: string[] = [];
  const onFile = progress(totalOf(files));
  await forEachConcurrently(MAX_CONCURRENT, files, async ({ path, sizeBytes, hash: known }) => {
    const named = namedHash(path) ?? known;
    const hash =
      namedHash(path) !== undefined && there.get(path) === sizeBytes
        ? named
        : await copyOne(from, to, path, named);
    if (hash === undefined) damaged.push(path);
    else hashes.set(path, hash);
    onFile(sizeBytes);
    reached('copy-file');
  });
  if (damaged.length > 0) throw new Error(damagedText(from, damaged));
  return hashes;
}

/** Copies a file and returns its hash; `undefined` when that is not the expected one. */
async function copyOne(
  from: FilesSource,
  to: FilesPlace,
  path: string,
  named: string | undefined,
): Promise<string | undefined> {
  return await from.withFile(path, async (file) => {
    if (file === undefined) throw new Error(`${path} was removed from ${from.name} meanwhile`);
    const { hash } = file;
    if (named !== undefined && named !== hash) return undefined;
    await to.put(path, file);
    return hash;
  });
}

async function verify(
  { to, progress }: CopyOptions,
  hashes: ReadonlyMap<string, string>,
  files: readonly PlacedFile[],
): Promise<void> {
  const copied = await to.list();
  if (copied.length !== files.length)
    throw new Error(`${to.name} has ${copied.length} files, and not ${files.length}`);
  const onFile = progress(totalOf(files));
  await forEachConcurrently(MAX_CONCURRENT, files, async ({ path, sizeBytes }) => {
    if ((await to.hashOf(path)) !== hashes.get(path)) {
      await to.remove(path);
      throw new Error(`${path} in ${to.name} differs from its source: run the command again`);
    }
    onFile(sizeBytes);
  });
}

function namedHash(path: string): string | undefined {
  const hex = NAMED_BY_HASH.exec(path)?.[1];
  return hex === undefined ? undefined : `blake3:${hex}`;
}

function damagedText({ name }: FilesSource, damaged: readonly string[]): string {
  return (
    `${name} has ${damaged.length} damaged files, which must be restored or moved away first: ` +
    damaged.slice(0, 20).join(', ')
  );
}
