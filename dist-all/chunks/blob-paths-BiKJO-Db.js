import { normalize, sep } from "node:path";
// src/upstreams/blob-paths.ts
/** `blake3:<64 hex>`: the form of a hash, with its digits as the group. */
const BLOB_HASH = /^blake3:([0-9a-f]{64})$/;
/** The number of digits of a hash that name its folder. */
const FOLDER_DIGITS = 2;
/** Returns the 64 digits of a hash; throws when the text is not a hash. */
function hexOf(hash) {
	const hex = BLOB_HASH.exec(hash)?.[1];
	if (!hex) throw new Error(`not a blake3 hash: ${JSON.stringify(hash)}`);
	return hex;
}
/** Returns the hash of bytes that were set aside: it is the first part of their name. */
function hashOfAside(name) {
	return `blake3:${name.split(".")[0]}`;
}
/**
* Returns paths below a folder of blobs. `<dir>/<2 hex>/<64 hex>` holds the bytes of a hash. An
* empty file in `<dir>-unrecorded` is the marker of bytes that may have no record.
*/
function createBlobPaths(given) {
	const dir = normalize(given);
	const folderOf = (hex) => `${dir}${sep}${hex.slice(0, FOLDER_DIGITS)}`;
	const markersDir = `${dir}-unrecorded`;
	return {
		dir,
		markersDir,
		/** Returns all folders that may exist. */
		folders: () => Array.from({ length: 16 ** FOLDER_DIGITS }, (_, n) => folderOf(n.toString(16).padStart(FOLDER_DIGITS, "0"))),
		pathOf: (hash) => {
			const hex = hexOf(hash);
			return `${folderOf(hex)}${sep}${hex}`;
		},
		markerOf: (hash) => `${markersDir}${sep}${hexOf(hash)}`
	};
}
export { hexOf as i, createBlobPaths as n, hashOfAside as r, BLOB_HASH as t };
