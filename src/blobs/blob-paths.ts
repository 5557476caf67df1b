/** `blake3:<64 hex>`: the form of a hash, with its digits as the group. */
export const BLOB_HASH = /^blake3:([0-9a-f]{64})$/;

/** Returns the 64 digits of a hash; throws when the text is not a hash. */
export function hexOf(hash: string): string {
  const hex = BLOB_HASH.exec(hash)?.[1];
  if (!hex) throw new Error(`not a blake3 hash: ${JSON.stringify(hash)}`);
  return hex;
}

/** Returns the path of a blob below its data folder, bucket or backup. */
export function blobPath(hash: string): string {
  const hex = hexOf(hash);
  return `blobs/${hex.slice(0, 2)}/${hex}`;
}

/** Returns the hash of bytes that were set aside: it is the first part of their name. */
export function hashOfAside(name: string): string {
  return `blake3:${name.split('.')[0]}`;
}
