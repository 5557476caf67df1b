import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../telemetry.ts';
import type { Text } from './outcome.ts';

/** The last good text of one source for one account, for the time after a restart. */
export type Copy = {
  read(): Promise<(Text & { readonly confirmedAtMs: number }) | undefined>;
  write(text: Text): Promise<void>;
  /** The source says it still holds. */
  confirm(atMs: number): Promise<void>;
};

/** All copies; those not confirmed for longest make room. */
export type Copies = {
  of(source: string, account: string): Copy;
  /** Resolves when nothing is being written any more. */
  settled(): Promise<void>;
};

const MAX_BYTES = 256 * 1024 * 1024;

/** A copy is one file: a line that says where the text is from, then the text. */
export function createCopies(deps: {
  readonly root: string;
  readonly log: Logger;
  readonly maxBytes?: number;
}): Copies {
  const { root, log, maxBytes = MAX_BYTES } = deps;
  const told = (error: unknown): void => {
    log.warn({ err: error }, 'node definitions could not be kept on disk');
  };
  let writing = Promise.resolve();
  return {
    of(source, account) {
      const path = join(root, nameOf(source, account));
      return {
        read: () => readCopy(path),
        // One after the other: each may be large.
        write: (text) =>
          (writing = writing
            .then(() => writeCopy({ root, path, text }))
            .then(() => prune(root, maxBytes))
            .catch(told)),
        confirm: (atMs) => utimes(path, new Date(atMs), new Date(atMs)).catch(() => {}),
      };
    },
    settled: () => writing,
  };
}

function nameOf(source: string, account: string): string {
  const digest = createHash('sha256').update(`${source}\0${account}`).digest('hex');
  return `${digest.slice(0, 32)}.json`;
}

/** No copy, or one that is damaged: both mean to start without. */
async function readCopy(path: string): Promise<(Text & { confirmedAtMs: number }) | undefined> {
  try {
    const { mtimeMs } = await stat(path);
    const whole = await readFile(path);
    const end = whole.indexOf('\n');
    const head = JSON.parse(whole.toString('utf8', 0, end)) as Omit<Text, 'bytes'>;
    if (typeof head.from !== 'number' || typeof head.validators !== 'object') return undefined;
    return { ...head, bytes: whole.subarray(end + 1), confirmedAtMs: mtimeMs };
  } catch {
    return undefined;
  }
}

async function writeCopy(deps: { root: string; path: string; text: Text }): Promise<void> {
  const { bytes, from, validators } = deps.text;
  await mkdir(deps.root, { recursive: true, mode: 0o700 });
  // Whole or not at all.
  const fresh = `${deps.path}.${randomUUID()}`;
  const file = await open(fresh, 'wx', 0o600);
  try {
    await file.writev([Buffer.from(`${JSON.stringify({ from, validators })}\n`), bytes]);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(fresh, deps.path);
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
