import { createRequire } from "node:module";
import { createReadStream } from "node:fs";
// src/lib/hash.ts
let newBlake3;
/**
* Creates a hasher. No other module computes BLAKE3. The implementation is loaded when it is first
* needed.
*/
function createHasher() {
	newBlake3 ??= loadBlake3();
	const hash = newBlake3();
	return {
		update: (chunk) => void hash.update(chunk),
		/** Returns `blake3:<64 hex>`. No further call is allowed. */
		digest: () => `blake3:${hash.digest("hex")}`,
		/** Releases the memory of an unfinished hash that the garbage collector cannot reach. */
		discard: () => hash.dispose?.()
	};
}
/** Returns `blake3:<64 hex>` of complete bytes. */
function hashOf(bytes) {
	const hasher = createHasher();
	hasher.update(bytes);
	return hasher.digest();
}
/**
* Smaller pieces would mean more calls for a large file; larger ones more memory for thousands of
* small files.
*/
const READ_BYTES = 262144;
/** Reads a file piece by piece. */
async function hashFile(path) {
	const hasher = createHasher();
	let sizeBytes = 0;
	try {
		for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) {
			hasher.update(chunk);
			sizeBytes += chunk.length;
		}
		return {
			hash: hasher.digest(),
			sizeBytes
		};
	} finally {
		hasher.discard();
	}
}
/** Returns `blake3:<64 hex>` of all bytes of a stream. */
async function hashOfStream(stream) {
	const hasher = createHasher();
	try {
		for await (const chunk of stream) hasher.update(chunk);
		return hasher.digest();
	} finally {
		hasher.discard();
	}
}
/**
* Loads the implementation. Native code is eight times as fast; it is an optional package, since
* some platforms have none.
*/
function loadBlake3() {
	const load = createRequire(import.meta.url);
	try {
		const { Blake3Hasher } = load("@napi-rs/blake-hash");
		return () => new Blake3Hasher();
	} catch {
		return load("blake3").createHash;
	}
}
export { hashOfStream as i, hashFile as n, hashOf as r, createHasher as t };
