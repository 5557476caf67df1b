import { createHash } from 'node:crypto';
import type { FileRef } from '../protocol/v1.ts';

/** Marks the ids of this API, so that no other name in the same form has one of them. */
const NAMESPACE = 'holdover v1 asset';

/**
 * Returns the id of a file in the v1 assets API: a name-based UUID (RFC 9562, version 5). It stays
 * the same when the file gets other bytes, as on the original server, while v2 makes a new asset.
 */
export function assetIdOf(user: string, name: FileRef): string {
  const text = JSON.stringify([NAMESPACE, user, name.type, name.subfolder, name.filename]);
  const bytes = createHash('sha1').update(text).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
