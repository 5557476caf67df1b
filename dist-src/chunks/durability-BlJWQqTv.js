import { l as forEachConcurrently } from "./concurrency-DwpPd4rK.js";
import { closeSync, constants, fsync, fsyncSync, openSync } from "node:fs";
import { promisify } from "node:util";
// src/lib/absent-file.ts
/** Returns the result of a call about a file; `undefined` when the file does not exist. */
async function undefinedIfAbsent(answer) {
	try {
		return await answer;
	} catch (error) {
		if (error.code === "ENOENT") return void 0;
		throw error;
	}
}
// src/lib/durability.ts
/** Makes the content at a path survive a power cut: a file, or the names in a folder. */
async function syncPath(path) {
	const file = openSync(path, constants.O_RDONLY);
	try {
		await syncFile(file);
	} finally {
		closeSync(file);
	}
}
const syncFile = promisify(fsync);
/** libuv has four threads. */
const MAX_SYNCS = 4;
/**
* Makes several paths survive a power cut, except those that do not exist any more. They are synced
* together, so that the file system writes its journal once for all of them.
*/
function syncAll(paths) {
	return forEachConcurrently(MAX_SYNCS, paths, (path) => undefinedIfAbsent(syncPath(path)));
}
/** Syncs a path in one call, which blocks the thread until the disk has the content. */
function syncPathNow(path) {
	const file = openSync(path, constants.O_RDONLY);
	try {
		fsyncSync(file);
	} finally {
		closeSync(file);
	}
}
export { undefinedIfAbsent as i, syncPath as n, syncPathNow as r, syncAll as t };
