import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { KINDS, RECORD_KINDS, type RecordKind, type StoredRecord } from '../../ledger/records.ts';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { syncPath } from '../../lib/durability.ts';
import { createHasher } from '../../lib/hash.ts';

/** The file of a backup with all that is not bytes of files. It gets this name when the backup is complete. */
export const RECORDS_FILE = 'records.jsonl';

const HASH = z.string().regex(/^blake3:[0-9a-f]{64}$/);
const COUNT = z.number().int().nonnegative();
const PATH = z.string().refine(isPathBelow);

/** The first line. */
const HEADER = z.object({
  kind: z.literal('backup'),
  format: z.literal(1),
  holdover: z.string(),
  createdAt: z.string(),
  ledger: z.enum(['sqlite', 'redis']),
  ledgerId: z.string(),
  folderId: z.string(),
  /** The content of `secret.key` in base64. */
  secret: z.base64(),
});

/** A file that a front end has saved. Its bytes are in `blobs`, too. */
const USER_FILE = z.object({
  kind: z.literal('userFile'),
  path: PATH,
  hash: HASH,
  sizeBytes: COUNT,
  modifiedAtMs: z.number(),
});

/** Bytes on record that were missing or damaged when the backup was made. */
const MISSING = z.object({ kind: z.literal('missing'), hash: HASH, why: z.string() });

/** The last line: the number of lines before it and their hash. */
const END = z.object({ kind: z.literal('end'), lines: COUNT, hash: HASH });

const RECORD = z.object({ kind: z.enum(KINDS), row: z.record(z.string(), z.unknown()) });

const LINE = z.discriminatedUnion('kind', [HEADER, USER_FILE, MISSING, END, RECORD]);

export type BackupHeader = z.infer<typeof HEADER>;
export type UserFile = z.infer<typeof USER_FILE>;
export type MissingBlob = z.infer<typeof MISSING>;
export type BackupLine = BackupHeader | UserFile | MissingBlob | StoredRecord;

/** Returns false for a path that would leave its folder. A restore trusts no backup, and a backup no bucket. */
export function isPathBelow(path: string): boolean {
  const isPlain = path.split('/').every((part) => !['', '.', '..'].includes(part));
  return isPlain && (process.platform !== 'win32' || !/[\\\0]|^[a-z]:/i.test(path));
}

/** Returns the path of a blob, relative to its data folder or backup. */
export function blobPath(hash: string): string {
  const hex = hash.slice('blake3:'.length);
  return `blobs/${hex.slice(0, 2)}/${hex}`;
}

/** Writes the lines and the last line, synced to the disk. */
export async function writeLines(path: string, lines: AsyncIterable<BackupLine>): Promise<void> {
  const hasher = createHasher();
  async function* texts(): AsyncGenerator<string> {
    let count = 0;
    for await (const line of lines) {
      const text = textOf('row' in line ? { kind: line.kind, row: plainRow(line) } : line);
      hasher.update(Buffer.from(text));
      count += 1;
      yield text;
    }
    yield textOf({ kind: 'end', lines: count, hash: hasher.digest() });
  }
  await pipeline(texts, createWriteStream(path, { mode: 0o600 }));
  await syncPath(path);
}

/** Returns a row as JSON values, which are equal for SQLite and Redis. */
function plainRow({ kind, row }: StoredRecord): object {
  const values = row as { readonly [name: string]: unknown };
  const cells = Object.keys(RECORD_KINDS[kind].columns).map((name) => {
    const value = values[name] ?? null;
    return [name, value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value];
  });
  return Object.fromEntries(cells) as object;
}

/** In Node 24 `readLines` also splits at these two, which JSON allows in texts. */
function textOf(line: object): string {
  const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16)}`;
  return `${JSON.stringify(line).replace(/[\u2028\u2029]/g, escaped)}\n`;
}

/** Reads the first line of a backup; `undefined` when there is none. */
export async function headerOf(folder: string): Promise<BackupHeader | undefined> {
  try {
    for await (const line of linesOf(folder)) if (line.kind === 'backup') return line;
  } catch {
    // The next backup takes the place of one that cannot be read.
  }
  return undefined;
}

/** Reads the lines of a backup, the header first. Throws at the end when they are not all as they were written. */
export async function* linesOf(folder: string, name = RECORDS_FILE): AsyncGenerator<BackupLine> {
  const file = await undefinedIfAbsent(open(join(folder, name)));
  if (!file) throw new Error(`${folder} is not a complete backup: it has no ${name}`);
  const damaged = (cause?: unknown): Error =>
    new Error(`the backup ${folder} is damaged: ${name} is not as it was written`, { cause });
  const hasher = createHasher();
  let count = 0;
  let isEnded = false;
  try {
    for await (const text of file.readLines()) {
      const line = parsed(text, damaged);
      if (isEnded || (count === 0) !== (line.kind === 'backup')) throw damaged();
      isEnded = line.kind === 'end';
      if (line.kind === 'end') {
        if (line.lines !== count || line.hash !== hasher.digest()) throw damaged();
        continue;
      }
      hasher.update(Buffer.from(`${text}\n`));
      count += 1;
      yield line;
    }
  } finally {
    await file.close();
  }
  if (!isEnded) throw damaged();
}

function parsed(
  text: string,
  damaged: (cause: unknown) => Error,
): BackupLine | z.infer<typeof END> {
  try {
    const line = LINE.parse(JSON.parse(text));
    if (!('row' in line)) return line;
    if (line.kind === 'assets') HASH.parse(line.row['hash']);
    return { kind: line.kind, row: storedRow(line.kind, line.row) } as StoredRecord;
  } catch (cause) {
    throw damaged(cause);
  }
}

/** A property that a later version added has no value in an older backup. */
function storedRow(kind: RecordKind, values: { readonly [name: string]: unknown }): object {
  const cells = Object.entries(RECORD_KINDS[kind].columns).map(([name, { type }]) => {
    const value = values[name] ?? null;
    const isBase64 = type === 'bytes' && typeof value === 'string';
    return [name, isBase64 ? Buffer.from(value, 'base64') : value];
  });
  return Object.fromEntries(cells) as object;
}
