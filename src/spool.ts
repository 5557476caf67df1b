import { randomUUID } from 'node:crypto';
import { constants, mkdirSync, rmSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createHash } from 'blake3';
import type { SpooledFile } from './wire/jobs.ts';

/** Why bytes were not taken: too many, no room, or cut off. */
export type SpoolRefusal = {
  readonly ok: false;
  readonly status: 400 | 413 | 415 | 507;
  readonly message: string;
};

export type Spooled = { readonly ok: true; readonly value: SpooledFile } | SpoolRefusal;

/** The one place that knows how BLAKE3 is computed; an accelerator goes behind it. */
export type Hasher = { update(chunk: Uint8Array): void; digest(): string };

const WRITE_NEW =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);

export function createHasher(): Hasher {
  const hash = createHash();
  return {
    update: (chunk) => void hash.update(chunk),
    digest: () => `blake3:${hash.digest('hex')}`,
  };
}

/** Writes a stream to a new file below `dir`, hashing on the way; memory stays flat, failures leave nothing. */
export async function spoolStream(
  source: Readable,
  options: { readonly dir: string; readonly maxBytes: number },
): Promise<Spooled> {
  const path = join(options.dir, randomUUID());
  const handle = await open(path, WRITE_NEW, 0o600);
  try {
    const value = await writeAll(source, { handle, path, maxBytes: options.maxBytes });
    await handle.sync();
    await handle.close();
    return { ok: true, value };
  } catch (error) {
    await handle.close().catch(() => {});
    await rm(path, { force: true });
    return refusalOf(error, options.maxBytes);
  }
}

/** Writes bytes already in memory as a spooled file. */
export async function spoolBytes(
  bytes: Uint8Array,
  options: { readonly dir: string },
): Promise<SpooledFile> {
  const source = Readable.from([bytes], { objectMode: false });
  const spooled = await spoolStream(source, { dir: options.dir, maxBytes: bytes.length });
  if (!spooled.ok) throw new Error(spooled.message);
  return spooled.value;
}

/** Moves a spooled file to its place for good: on disk, under its name, before this resolves. */
export async function adoptFile(path: string, target: string): Promise<void> {
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  await rename(path, target);
  const folder = await open(dirname(target), constants.O_RDONLY);
  await folder.sync().finally(() => folder.close());
}

/** Empties the spool at start: what a killed process left there belongs to nobody. */
export function wipeSpool(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true, mode: 0o700 });
}

/** What the v1 server says when a body is over the limit. */
export function tooLargeText(maxBytes: number): string {
  return `Maximum request body size ${maxBytes} exceeded.`;
}

class TooLarge extends Error {}

async function writeAll(
  source: Readable,
  { handle, path, maxBytes }: { handle: FileHandle; path: string; maxBytes: number },
): Promise<SpooledFile> {
  const hasher = createHasher();
  let sizeBytes = 0;
  const sink = new Writable({
    highWaterMark: 1024 * 1024,
    write(chunk: Buffer, _encoding, done) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) return done(new TooLarge());
      hasher.update(chunk);
      handle.write(chunk).then(() => done(), done);
    },
  });
  await pipeline(source, sink);
  return { path, sizeBytes, hash: hasher.digest() };
}

function refusalOf(error: unknown, maxBytes: number): SpoolRefusal {
  if (error instanceof TooLarge) return { ok: false, status: 413, message: tooLargeText(maxBytes) };
  const { code } = error as NodeJS.ErrnoException;
  const full = code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG';
  return full
    ? { ok: false, status: 507, message: 'There is no room left to keep this file.' }
    : { ok: false, status: 400, message: 'The upload was cut off.' };
}
