import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { KINDS, RECORD_KINDS, type StoredRecord } from '../../ledger/records.ts';
import { withinRoot } from '../../files/safe-name.ts';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { syncPath } from '../../lib/durability.ts';
import { createHasher } from '../../lib/hash.ts';
import { BLOB_HASH } from '../../blobs/blob-paths.ts';

/** The file of a backup with all that is not bytes of files. It gets this name when the backup is complete. */
export const RECORDS_FILE = 'records.jsonl';

const HASH = z.string().regex(BLOB_HASH);

const LINE = z.discriminatedUnion('kind', [
  /** The first line. */
  z.object({
    kind: z.literal('backup'),
    format: z.literal(1),
    holdover: z.string(),
    createdAt: z.string(),
    ledger: z.enum(['sqlite', 'redis']),
    ledgerId: z.string(),
    folderId: z.string(),
    /** The content of `secret.key` in base64. */
    secret: z.base64(),
  }),
  z.object({ kind: z.enum(KINDS), row: z.record(z.string(), z.unknown()) }),
  /** A file that a front end has saved. Its bytes are in `blobs`, too. */
  z.object({
    kind: z.literal('userFile'),
    path: z.string().refine(isPathBelow),
    hash: HASH,
    sizeBytes: z.number(),
    modifiedAtMs: z.number(),
  }),
  /** Bytes on record that were missing or damaged when the backup was made. */
  z.object({ kind: z.literal('missing'), hash: HASH, why: z.string() }),
  /** The last line: the hash of the lines before it. */
  z.object({ kind: z.literal('end'), hash: HASH }),
]);

type LineOf<Kind> = Extract<z.infer<typeof LINE>, { kind: Kind }>;

export type BackupHeader = LineOf<'backup'>;
export type UserFile = LineOf<'userFile'>;
export type MissingBlob = LineOf<'missing'>;
export type BackupLine = BackupHeader | UserFile | MissingBlob | StoredRecord;

/** Returns false for a path that would leave its folder. A restore trusts no backup, and a backup no bucket. */
export function isPathBelow(path: string): boolean {
  return path !== '' && withinRoot(path) === path;
}

/** Writes the lines and the last line, synced to the disk. */
export async function writeLines(path: string, lines: AsyncIterable<BackupLine>): Promise<void> {
  const hasher = createHasher();
  async function* texts(): AsyncGenerator<string> {
    for await (const line of lines) {
      const text = textOf('row' in line ? withCells(line, toJson) : line);
      hasher.update(Buffer.from(text));
      yield text;
    }
    yield textOf({ kind: 'end', hash: hasher.digest() });
  }
  await pipeline(texts, createWriteStream(path, { mode: 0o600 }));
  await syncPath(path);
}

/** In Node 24 `readLines` also splits at these two, which JSON allows in texts. */
function textOf(line: object): string {
  const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16)}`;
  return `${JSON.stringify(line).replace(/[\u2028\u2029]/g, escaped)}\n`;
}

/** Reads the lines of a backup, the header first. Throws at the end when they are not all as they were written. */
export async function* linesOf(folder: string, name = RECORDS_FILE): AsyncGenerator<BackupLine> {
  const file = await undefinedIfAbsent(open(join(folder, name)));
  if (!file) throw new Error(`${folder} is not a complete backup: it has no ${name}`);
  const hasher = createHasher();
  let [isBegun, isEnded] = [false, false];
  try {
    for await (const text of file.readLines()) {
      const line = LINE.parse(JSON.parse(text));
      if (isEnded || isBegun === (line.kind === 'backup')) throw new Error('a line is elsewhere');
      isBegun = true;
      isEnded = line.kind === 'end' && line.hash === hasher.digest();
      if (line.kind === 'end') continue;
      hasher.update(Buffer.from(`${text}\n`));
      yield 'row' in line ? (withCells(line, fromJson) as StoredRecord) : line;
    }
    if (!isEnded) throw new Error('lines are missing or changed');
  } catch (cause) {
    throw new Error(`the backup ${folder} is damaged: ${name} is not as it was written`, { cause });
  } finally {
    await file.close();
  }
}

/** Converts each property, so that rows are equal for SQLite and Redis. An older backup may lack a property. */
function withCells(
  { kind, row }: LineOf<StoredRecord['kind']> | StoredRecord,
  to: (value: never) => unknown,
) {
  const values = row as { readonly [name: string]: unknown };
  const cells = Object.entries(RECORD_KINDS[kind].columns).map(([name, { type }]) => {
    const value = values[name] ?? null;
    return [name, type === 'bytes' && value !== null ? to(value as never) : value];
  });
  return { kind, row: Object.fromEntries(cells) as object };
}

const toJson = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const fromJson = (text: string): Buffer => Buffer.from(text, 'base64');
