import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createMutex } from '../lib/concurrency.ts';
import type { Logger } from '../observability/log.ts';
import type { DefinitionsText } from './fetcher.ts';

/** The last good text of one source for one account, for the time after a restart. */
export type CacheEntry = {
  read(): Promise<(DefinitionsText & { readonly confirmedAtMs: number }) | undefined>;
  write(text: DefinitionsText): Promise<void>;
  /** Records that the source confirmed the version. */
  confirm(atMs: number): Promise<void>;
};

/** All cached texts. The one that was confirmed longest ago is removed first. */
export type DefinitionsCache = ReturnType<typeof createDefinitionsCache>;

const MAX_BYTES = 256 * 1024 * 1024;

/** An entry is one file: a line with the origin of the text, then the text. */
export function createDefinitionsCache(options: {
  readonly root: string;
  readonly log: Logger;
  readonly maxBytes?: number;
}) {
  const { root, log, maxBytes = MAX_BYTES } = options;
  const logFailure = (error: unknown): void => {
    log.warn(
      { event: 'definitions.cache_failed', err: error },
      'could not store node definitions on disk',
    );
  };
  // One text at a time: each may be large.
  const inOrder = createMutex();
  const store = async (path: string, text: DefinitionsText): Promise<void> => {
    await writeEntry({ root, path, text });
    await prune(root, maxBytes);
  };
  return {
    entryFor(source: string, account: string): CacheEntry {
      const path = join(root, fileNameFor(source, account));
      return {
        read: () => readEntry(path),
        write: (text) => inOrder(() => store(path, text)).catch(logFailure),
        confirm: (atMs) => utimes(path, new Date(atMs), new Date(atMs)).catch(() => {}),
      };
    },
    /** Resolves when nothing is being written any more. */
    idle: (): Promise<void> => inOrder(async () => {}),
  };
}

function fileNameFor(source: string, account: string): string {
  const digest = createHash('sha256').update(`${source}\0${account}`).digest('hex');
  return `${digest.slice(0, 32)}.json`;
}

/** A missing and a damaged entry both return `undefined`. */
async function readEntry(
  path: string,
): Promise<(DefinitionsText & { confirmedAtMs: number }) | undefined> {
  try {
    const { mtimeMs } = await stat(path);
    const whole = await readFile(path);
    const end = whole.indexOf('\n');
    const head = JSON.parse(whole.toString('utf8', 0, end)) as Omit<DefinitionsText, 'bytes'>;
    if (typeof head.from !== 'number' || typeof head.validators !== 'object') return undefined;
    return { ...head, bytes: whole.subarray(end + 1), confirmedAtMs: mtimeMs };
  } catch {
    return undefined;
  }
}

async function writeEntry(options: {
  root: string;
  path: string;
  text: DefinitionsText;
}): Promise<void> {
  const { bytes, from, validators } = options.text;
  await mkdir(options.root, { recursive: true, mode: 0o700 });
  // Whole or not at all.
  const temporaryPath = `${options.path}.${randomUUID()}`;
  try {
    const content = [`${JSON.stringify({ from, validators })}\n`, bytes];
    await writeFile(temporaryPath, content, { mode: 0o600, flush: true });
    await rename(temporaryPath, options.path);
  } catch (error) {
    // A disk that is full would stay so.
    await rm(temporaryPath, { force: true }).catch(() => {});
    throw error;
  }
}

async function prune(root: string, maxBytes: number): Promise<void> {
  const names = await readdir(root);
  const files = await Promise.all(
    names.map(async (name) => ({
      path: join(root, name),
      ...(await sizeAndTime(join(root, name))),
    })),
  );
  let size = 0;
  for (const file of files.toSorted((a, b) => b.mtimeMs - a.mtimeMs)) {
    size += file.size;
    if (size > maxBytes) await rm(file.path, { force: true });
  }
}

async function sizeAndTime(path: string): Promise<{ size: number; mtimeMs: number }> {
  return stat(path).catch(() => ({ size: 0, mtimeMs: 0 }));
}
