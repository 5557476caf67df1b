import { i as monotonicClock } from "./event-loop-BDDWO5Ig.js";
import { i as undefinedIfAbsent, n as syncPath, t as syncAll } from "./durability-BlJWQqTv.js";
import { i as hexOf, n as createBlobPaths, r as hashOfAside, t as BLOB_HASH } from "./blob-paths-BiKJO-Db.js";
import { access, copyFile, link, mkdir, open, readFile, readdir, rename, stat, unlink, writeFile } from "node:fs/promises";
import path, { join } from "node:path";
import { constants as constants$1, existsSync, unlinkSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
// src/upstreams/rare-lists.ts
/** A bucket charges for each list, and only a killed process leaves anything to find. */
const LIST_EVERY_MS = 216e5;
/**
* Returns blobs that search for leftovers of killed processes at the first sweep, and then some
* times a day. In between, the lists are empty. Bytes that the ledger releases are always removed
* at once.
*/
function listLeftoversRarely(blobs, clock = monotonicClock) {
	const isUnrecordedDue = every(clock);
	const isAsideDue = every(clock);
	const isAbandonedDue = every(clock);
	return {
		...blobs,
		async *listUnrecorded() {
			if (isUnrecordedDue()) yield* blobs.listUnrecorded();
		},
		async *listAside() {
			if (isAsideDue()) yield* blobs.listAside();
		},
		async removeAbandoned() {
			if (isAbandonedDue()) await blobs.removeAbandoned();
		}
	};
}
function every(clock) {
	let nextMs = -Infinity;
	return () => {
		if (clock.now() < nextMs) return false;
		nextMs = clock.now() + LIST_EVERY_MS;
		return true;
	};
}
// src/upstreams/assets/file-stream.ts
const CHUNK_BYTES = 1048576;
/**
* Streams the bytes of an open file from `start` to `end`, inclusive. Closes the file at the end.
*/
var FileStream = class extends Readable {
	#handle;
	#position;
	#end;
	#receiver;
	/** The buffers of the last chunk and of the chunk before. */
	#last;
	#beforeLast;
	constructor(handle, { start, end }) {
		super({ highWaterMark: CHUNK_BYTES });
		this.#handle = handle;
		this.#position = start;
		this.#end = end;
	}
	/**
	* From now on a buffer is used again when `receiver` has passed its bytes on: to allocate memory
	* costs more than to read the bytes. Only for a receiver that gets the chunks themselves.
	*/
	reuseBuffersFor(receiver) {
		this.#receiver = receiver;
	}
	_read() {
		const length = Math.min(CHUNK_BYTES, this.#end + 1 - this.#position);
		if (length <= 0) return void this.push(null);
		const buffer = this.#nextBuffer(length);
		this.#handle.read(buffer, 0, length, this.#position).then(({ bytesRead }) => {
			this.#position += bytesRead;
			this.push(bytesRead === 0 ? null : buffer.subarray(0, bytesRead));
		}, (error) => this.destroy(error));
	}
	_destroy(error, done) {
		this.#handle.close().then(() => done(error), (failed) => done(error ?? failed));
	}
	#nextBuffer(length) {
		const used = this.#beforeLast;
		const buffer = this.#receiver?.writableLength === 0 && this.readableLength <= (this.#last?.length ?? 0) && used && used.length >= length ? used : Buffer.allocUnsafeSlow(length);
		[this.#beforeLast, this.#last] = [this.#last, buffer];
		return buffer;
	}
};
// src/upstreams/folder/folder-blobs.ts
/**
* Creates blobs in a folder: `<dir>/<2 hex>/<64 hex>`, complete or absent, never in part. Folders
* are created when they are first needed.
*/
function createFolderBlobs(dir) {
	const { markersDir, pathOf, markerOf } = createBlobPaths(dir);
	const markRecorded = async (hash) => removeNow(markerOf(hash));
	return {
		blobsDir: path.resolve(dir),
		pathOf,
		markRecorded,
		markUnrecorded: (hash) => writeMarker(markerOf(hash)),
		async moveIntoPlace(file) {
			const target = pathOf(file.hash);
			if (!await exists(target)) await writeMarker(markerOf(file.hash));
			await mkdir(path.dirname(target), { recursive: true });
			await syncPath(file.path);
			await rename(file.path, target);
			await Promise.all([syncPath(path.dirname(target)), syncPath(dir)]);
		},
		put: () => Promise.reject(/* @__PURE__ */ new Error("worker threads write into the folder themselves")),
		async sync(hashes) {
			const paths = hashes.map(pathOf);
			const folders = new Set(paths.map((file) => path.dirname(file)));
			await syncAll([
				...paths,
				...folders,
				dir
			]);
		},
		isInPlace: (hash) => existsSync(pathOf(hash)),
		sizeOf: async (hash) => (await undefinedIfAbsent(stat(pathOf(hash))))?.size,
		async open(hash, range) {
			const flags = constants$1.O_RDONLY | constants$1.O_NOFOLLOW;
			const handle = await undefinedIfAbsent(open(pathOf(hash), flags));
			if (!handle) return void 0;
			const end = range?.end ?? (await handle.stat()).size - 1;
			return new FileStream(handle, {
				start: range?.start ?? 0,
				end
			});
		},
		read: (hash) => undefinedIfAbsent(readFile(pathOf(hash))),
		async copyTo(hash, target) {
			const source = pathOf(hash);
			const copied = link(source, target).catch(() => copyFile(source, target));
			return await undefinedIfAbsent(copied.then(() => true)) ?? false;
		},
		async remove(hash) {
			await removeIfThere(pathOf(hash));
			await markRecorded(hash);
		},
		async *listUnrecorded() {
			for (const name of await readdir(markersDir).catch(() => [])) {
				const stats = await stat(path.join(markersDir, name)).catch(() => void 0);
				const hash = `blake3:${name}`;
				if (stats && BLOB_HASH.test(hash)) yield {
					hash,
					sinceMs: stats.mtimeMs
				};
			}
		},
		async *list() {
			for (const folder of await readdir(dir).catch(() => [])) for (const name of await readdir(path.join(dir, folder)).catch(() => [])) {
				const hash = `blake3:${name}`;
				const stats = BLOB_HASH.test(hash) && await stat(pathOf(hash)).catch(() => void 0);
				if (!stats) continue;
				const { size: sizeBytes, mtimeMs: modifiedAtMs, ctimeMs: placedAtMs } = stats;
				yield {
					hash,
					sizeBytes,
					modifiedAtMs,
					placedAtMs
				};
			}
		},
		...createAside(`${dir}-leaving`, pathOf),
		removeAbandoned: async () => {}
	};
}
function createAside(asideDir, pathOf) {
	return {
		async setAside(hash) {
			await mkdir(asideDir, {
				recursive: true,
				mode: 448
			});
			const name = `${hexOf(hash)}.${randomUUID()}`;
			const moved = rename(pathOf(hash), path.join(asideDir, name)).then(() => name);
			return await undefinedIfAbsent(moved);
		},
		async putBack(name) {
			await undefinedIfAbsent(rename(path.join(asideDir, name), pathOf(hashOfAside(name))));
		},
		removeAside: (name) => removeIfThere(path.join(asideDir, name)),
		async *listAside() {
			for (const name of await readdir(asideDir).catch(() => [])) {
				const stats = await stat(path.join(asideDir, name)).catch(() => void 0);
				const sinceMs = stats && Math.max(stats.ctimeMs, stats.mtimeMs);
				if (sinceMs !== void 0) yield {
					name,
					hash: hashOfAside(name),
					sinceMs
				};
			}
		}
	};
}
async function writeMarker(target) {
	try {
		await writeFile(target, "");
	} catch (error) {
		if (error.code !== "ENOENT") throw error;
		await mkdir(path.dirname(target), {
			recursive: true,
			mode: 448
		});
		await writeFile(target, "");
	}
}
/** Removes a file with one system call; `rm` makes three. */
async function removeIfThere(target) {
	await undefinedIfAbsent(unlink(target));
}
/**
* Removes an empty file synchronously: the system call takes less time than passing it to another
* thread.
*/
function removeNow(target) {
	try {
		unlinkSync(target);
	} catch (error) {
		if (error.code !== "ENOENT") throw error;
	}
}
function exists(target) {
	return access(target).then(() => true, () => false);
}
// src/app/stored-files.ts
/**
* Opens the bucket of `--files`. Throws one sentence that names the bucket when it cannot be used.
*/
async function openBucketOf(source, log) {
	if (source.kind === "folder") return void 0;
	const { openBucket } = await import("./open-bucket-D1Sj5Gaz.js").then((n) => n.n);
	return await openBucket({
		source,
		env: process.env,
		log
	});
}
/** Returns the files of a data directory. A bucket is watched. */
function watchFiles(dir, bucket) {
	if (bucket === void 0 || dir.bucketId === void 0) return {
		blobs: createFolderBlobs(join(dir.root, "blobs")),
		bucket: void 0,
		lost: new Promise(() => {}),
		close: async () => {}
	};
	const watch = bucket.watch(dir.bucketId);
	return {
		blobs: listLeftoversRarely(bucket.blobs),
		bucket,
		lost: watch.lost,
		async close() {
			watch.close();
			await bucket.close();
		}
	};
}
export { watchFiles as n, createFolderBlobs as r, openBucketOf as t };
