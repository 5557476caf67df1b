import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { readAtMost } from '../../lib/read-at-most.ts';
import type { Blobs, StoredBlob } from '../../blobs/blobs.ts';
import { importedAsset } from '../../engine/imported-asset.ts';
import type { Ledger } from '../../ledger/ledger.ts';

/** The record that a file without one was given. */
export type NewRecord = {
  readonly hash: string;
  readonly user: string;
  readonly filePath: string;
};

type RecordOrphansOptions = {
  readonly blobs: Blobs;
  readonly ledger: Ledger;
  /** The user who gets the files. */
  readonly user: string;
};

/** Known first bytes of files: hex digits, their offset in bytes, extension, content type. */
const SIGNATURES: readonly (readonly [string, number, string, string])[] = [
  ['89504e470d0a1a0a', 0, '.png', 'image/png'],
  ['ffd8ff', 0, '.jpg', 'image/jpeg'],
  ['47494638', 0, '.gif', 'image/gif'],
  ['57454250', 8, '.webp', 'image/webp'],
  ['57415645', 8, '.wav', 'audio/wav'],
  ['664c6143', 0, '.flac', 'audio/flac'],
  ['4f676753', 0, '.ogg', 'audio/ogg'],
  ['66747970', 4, '.mp4', 'video/mp4'],
  ['1a45dfa3', 0, '.webm', 'video/webm'],
];
const SIGNATURE_BYTES = 12;
const UNKNOWN = ['.bin', 'application/octet-stream'] as const;

/** Records undamaged files that have no record in the ledger, as outputs with new names. */
export async function recordOrphans(
  { blobs, ledger, user }: RecordOrphansOptions,
  orphans: readonly StoredBlob[],
): Promise<readonly NewRecord[]> {
  const recorded: NewRecord[] = [];
  for (const { hash, sizeBytes, modifiedAtMs } of orphans) {
    const [extension, contentType] = sizeBytes === 0 ? UNKNOWN : await detectType(blobs, hash);
    const filename = `${hash.slice('blake3:'.length, 'blake3:'.length + 16)}${extension}`;
    const [type, subfolder] = ['output', 'recovered'] as const;
    const filePath = posix.join(type, subfolder, filename);
    const [id, file] = [randomUUID(), { user, hash, sizeBytes, contentType }];
    const name = { type, subfolder, filename, modifiedAtMs: Math.round(modifiedAtMs) };
    await Promise.all([
      ledger.assets.insert(importedAsset({ ...file, id, filePath, createdAtMs: Date.now() })),
      ledger.files.put({ ...file, ...name, assetId: id }),
    ]);
    recorded.push({ hash, user, filePath });
  }
  return recorded;
}

async function detectType(blobs: Blobs, hash: string): Promise<readonly [string, string]> {
  const stream = await blobs.open(hash, { start: 0, end: SIGNATURE_BYTES - 1 });
  const hex = stream && (await readAtMost(SIGNATURE_BYTES, stream))?.toString('hex');
  const found = SIGNATURES.find(([start, at]) => hex?.startsWith(start, at * 2));
  return found ? [found[2], found[3]] : UNKNOWN;
}
