import path from 'node:path';

/** `blake3:<64 hex>`: the form of a hash, with its digits as the group. */
export const BLOB_HASH = /^blake3:([0-9a-f]{64})$/;

/**
 * Paths below a folder of blobs: `<dir>/<2 hex>/<64 hex>` holds the bytes of a hash. An empty file in
 * `<dir>-unrecorded` is the marker of bytes that may have no record.
 */
export function createBlobPaths(dir: string) {
  const markersDir = `${dir}-unrecorded`;
  const hexOf = (hash: string): string => {
    const hex = BLOB_HASH.exec(hash)?.[1];
    if (!hex) throw new Error(`not a blake3 hash: ${JSON.stringify(hash)}`);
    return hex;
  };
  return {
    dir,
    markersDir,
    pathOf: (hash: string): string => {
      const hex = hexOf(hash);
      return path.join(dir, hex.slice(0, 2), hex);
    },
    markerOf: (hash: string): string => path.join(markersDir, hexOf(hash)),
  };
}
