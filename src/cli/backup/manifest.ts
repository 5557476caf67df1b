import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writeFileAtomically } from '../../data-folder/bind-ledger.ts';
import { hashOf } from '../../lib/hash.ts';

const HASH = z.string().regex(/^blake3:[0-9a-f]{64}$/);
/** A path below the folder of the backup. The check does not trust the manifest. */
const PATH = z
  .string()
  .min(1)
  .refine((path) => path.split('/').every((part) => !['', '.', '..'].includes(part)))
  .refine((path) => !/[\\\0]|^[a-z]:/i.test(path) || process.platform !== 'win32');

const LISTED_FILE = z.object({
  path: PATH,
  hash: HASH,
  sizeBytes: z.number().int().nonnegative(),
  modifiedAtMs: z.number(),
});

const MISSING_FILE = z.object({ hash: HASH, why: z.string() });

const MANIFEST = z.object({
  format: z.literal(1),
  holdover: z.string(),
  createdAt: z.string(),
  /** Identifies the data folder. A folder of backups takes those of one data folder only. */
  source: z.string(),
  ledger: z.enum(['sqlite', 'redis']),
  files: z.array(LISTED_FILE),
  /** Files on record that were missing or damaged in the data folder when the backup was made. */
  missing: z.array(MISSING_FILE),
});

/** A file of a backup, by its path in the data folder. */
export type ListedFile = Readonly<z.infer<typeof LISTED_FILE>>;
type MissingFile = Readonly<z.infer<typeof MISSING_FILE>>;

/** The files of one backup. It is written last: a backup without it is incomplete. */
export type Manifest = Omit<Readonly<z.infer<typeof MANIFEST>>, 'files' | 'missing'> & {
  readonly files: readonly ListedFile[];
  readonly missing: readonly MissingFile[];
};

const MANIFEST_NAME = 'manifest.json';

/** Writes the manifest. After a crash the file is complete or absent. */
export function writeManifest(folder: string, manifest: Manifest): void {
  const hash = hashOf(Buffer.from(JSON.stringify(manifest)));
  const text = `${JSON.stringify({ hash, manifest })}\n`;
  writeFileAtomically(join(folder, MANIFEST_NAME), text);
}

/**
 * Reads the manifest. Throws when it is unusable; the message continues a sentence that begins with the name of the
 * folder.
 */
export function readManifest(folder: string): Manifest {
  let text: string;
  try {
    text = readFileSync(join(folder, MANIFEST_NAME), 'utf8');
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const reason = isAbsent ? `it has no ${MANIFEST_NAME}, which is written last` : String(cause);
    throw new Error(`is not a complete backup: ${reason}`, { cause });
  }
  try {
    const { hash, manifest } = z
      .object({ hash: HASH, manifest: z.unknown() })
      .parse(JSON.parse(text));
    if (hashOf(Buffer.from(JSON.stringify(manifest))) !== hash) throw new Error('wrong hash');
    return MANIFEST.parse(manifest);
  } catch (cause) {
    throw new Error(`is damaged: its ${MANIFEST_NAME} is not as it was written`, { cause });
  }
}
