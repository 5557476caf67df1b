import { normalize, sep } from 'node:path';

/** `blake3:<64 hex>`: the form of a hash, with its digits as the group. */
export const BLOB_HASH = /^blake3:([0-9a-f]{64})$/;

/** The number of digits of a hash that name its folder. */
const FOLDER_DIGITS = 2;

/** Returns the 64 digits of a hash; throws when the text is not a hash. */
export function hexOf(hash: string): string {
  const hex = BLOB_HASH.exec(hash)?.[1];
  if (!hex) throw new Error(`not a blake3 hash: ${JSON.stringify(hash)}`);
  return hex;
}

/** Returns the hash of bytes that were set aside: it is the first part of their name. */
export function hashOfAside(name: string): string {
  return `blake3:${name.split('.')[0]}`;
}

/**
 * Returns paths below a folder of blobs. `<dir>/<2 hex>/<64 hex>` holds the bytes of a hash. An
 * empty file in `<dir>-unrecorded` is the marker of bytes that may have no record.
 */
export function createBlobPaths(given: string) {
  const dir = normalize(given);
  const folderOf = (hex: string): string => `${dir}${sep}${hex.slice(0, FOLDER_DIGITS)}`;
  const markersDir = `${dir}-unrecorded`;
  return {
    dir,
    markersDir,
    pathOf: (hash: string): string => {
      const hex = hexOf(hash);
      return `${folderOf(hex)}${sep}${hex}`;
    },
    markerOf: (hash: string): string => `${markersDir}${sep}${hexOf(hash)}`,
  };
}
