import { randomUUID } from 'node:crypto';
import { copyFile, open, readFile, readdir, rm, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { isWithin, realPathOf } from '../../config/shared-folders.ts';
import { UNFINISHED_COPY } from '../../data-folder/bind-bucket.ts';
import { writeFileAtomically } from '../../data-folder/bind-ledger.ts';
import { UNFINISHED_RESTORE } from '../../data-folder/data-dir.ts';
import { listBelow } from '../../files/folder-paths.ts';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { syncPath } from '../../lib/durability.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { OpenedBucket } from '../../blobs/bucket/open-bucket.ts';

type Key = { readonly key: string };

/** The place of the files of a ledger: a data folder or a bucket. Keys, which are paths below it, are the same in both. */
export type FilesPlace = {
  open(key: string): Promise<Readable | undefined>;
  /** Reads an id or a mark. */
  text(key: string): Promise<string | undefined>;
  list(folder: string): AsyncIterable<Key & { readonly modifiedAtMs: number }>;
  /** Writes an id or a mark. */
  put(key: string, bytes: Buffer): Promise<unknown>;
  /** Stores a copy of a file completely or not at all. */
  putFile(key: string, file: SpooledFile, modifiedAtMs?: number): Promise<void>;
  remove(key: string): Promise<void>;
};

/** Returns the files in a data folder as a place. */
export function placeInFolder(root: string): FilesPlace {
  const pathOf = (key: string): string => join(root, ...key.split('/'));
  return {
    open: async (key) => (await undefinedIfAbsent(open(pathOf(key))))?.createReadStream(),
    text: (key) => undefinedIfAbsent(readFile(pathOf(key), 'utf8')),
    async *list(folder) {
      for (const { path, isFolder, stats } of await listBelow(pathOf(folder), { depth: 'all' }))
        if (!isFolder) yield { key: folder + path, modifiedAtMs: Math.round(stats.mtimeMs) };
    },
    async put(key, bytes) {
      writeFileAtomically(pathOf(key), bytes);
      await syncPath(root);
    },
    async putFile(key, file, modifiedAtMs) {
      const copy = join(root, randomUUID());
      await copyFile(file.path, copy);
      if (modifiedAtMs !== undefined) await utimes(copy, modifiedAtMs / 1000, modifiedAtMs / 1000);
      await moveIntoPlace({ path: copy }, pathOf(key));
    },
    remove: (key) => rm(pathOf(key), { recursive: true, force: true }),
  };
}

/** Prepares a data folder for a restore, and keeps servers out of it until its mark is removed. */
export async function claimFolder(root: string): Promise<void> {
  const other = /^(restore-unfinished|holdover\.db\.lock(-journal)?|lost\+found|set-aside)$/;
  await claim(placeInFolder(root), {
    mark: UNFINISHED_RESTORE,
    found: (await readdir(root)).map((key) => ({ key })),
    isOurs: (name) => !other.test(name),
    text: `the data folder ${root} is not empty: give another --data-dir, or move its content into its folder set-aside`,
  });
}

/** Prepares a bucket for a restore, and keeps servers out of it until its mark is removed. */
export async function claimBucket({ objects, identity }: OpenedBucket): Promise<void> {
  const ours = /^(folder\.id|ledger\.id|(blobs|blobs-unrecorded|blobs-leaving|userdata)\/.*)$/s;
  await claim(objects, {
    mark: UNFINISHED_COPY,
    found: objects.list(''),
    isOurs: (key) => ours.test(key),
    text: `--files ${identity.url} is not empty: use another PREFIX`,
  });
}

type Claim = {
  readonly mark: string;
  readonly found: Iterable<Key> | AsyncIterable<Key>;
  /** True for the names that a restore removes when it begins again. */
  readonly isOurs: (key: string) => boolean;
  readonly text: string;
};

/** Removes what an interrupted restore has left. Throws when the place has other files. */
async function claim(place: FilesPlace, { mark, found, isOurs, text }: Claim): Promise<void> {
  const isUnfinished = (await place.text(mark)) !== undefined;
  for await (const { key } of found) {
    if (!isOurs(key)) continue;
    if (!isUnfinished) throw new Error(text);
    await place.remove(key);
  }
  await place.put(mark, Buffer.from('restore'));
}

/** Throws when one folder is inside the other: a backup inside the data folder would be lost with it. */
export function refuseNested(backup: string, dataDir: string): void {
  const [one, other] = [realPathOf(resolve(backup)), realPathOf(resolve(dataDir))];
  if (!isWithin(one, other) && !isWithin(other, one)) return;
  throw new Error(
    `backup (${backup}) and data folder (${dataDir}) must be separate: one is inside the other`,
  );
}
