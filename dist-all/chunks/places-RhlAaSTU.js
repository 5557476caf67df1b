import { T as writeFileAtomically, j as moveIntoPlace } from "./sqlite-ledger-SmMeTYVz.js";
import { i as undefinedIfAbsent } from "./durability-qSQjSt39.js";
import { i as hashOfStream, n as hashFile } from "./hash-DYRd5MjV.js";
import { a as filesBelow } from "./progress-BQg5eG0n.js";
import { lstat, rm } from "node:fs/promises";
import { join, sep } from "node:path";
import { createWriteStream, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { pipeline } from "node:stream/promises";
// src/cli/files/places.ts
/** The folders with files of users. They have the same names in a data folder and in a bucket. */
const FOLDERS = [
	"blobs",
	"blobs-unrecorded",
	"blobs-leaving",
	"userdata"
];
/** Returns true for the paths in a data folder whose files are in the bucket, when there is one. */
function isInBucket(path) {
	return FOLDERS.some((folder) => path.startsWith(`${folder}/`));
}
/** The folder for files that are being copied out of a bucket. */
const COPYING_FOLDER = "copying";
/** Returns the files in a data folder as a place. */
function placeInFolder(root) {
	const pathOf = (path) => join(root, ...path.split("/"));
	return {
		name: `--data-dir ${root}`,
		isTaken: async () => false,
		async list() {
			const files = [];
			for (const folder of FOLDERS) for (const below of await filesBelow(join(root, folder))) {
				const path = [folder, ...below.split(sep)].join("/");
				files.push({
					path,
					sizeBytes: (await lstat(pathOf(path))).size
				});
			}
			return files;
		},
		async withFile(path, work) {
			const found = await undefinedIfAbsent(hashFile(pathOf(path)));
			return await work(found && {
				path: pathOf(path),
				...found
			});
		},
		hashOf: async (path) => (await undefinedIfAbsent(hashFile(pathOf(path))))?.hash,
		put: async (path, file) => void await moveIntoPlace(file, pathOf(path)),
		remove: (path) => rm(pathOf(path), { force: true }),
		async readSmall(name) {
			return existsSync(join(root, name)) ? readFileSync(join(root, name), "utf8") : void 0;
		},
		writeSmall: async (name, text) => writeFileAtomically(join(root, name), text)
	};
}
/** Returns the files in a bucket as a place. Temporary files go into the data folder. */
function placeInBucket({ objects, identity }, dataDir) {
	const copying = join(dataDir, COPYING_FOLDER);
	return {
		name: `--files ${identity.url}`,
		isTaken: async () => await objects.text("folder.id") !== void 0,
		async list() {
			const files = [];
			for (const folder of FOLDERS) for await (const { key, sizeBytes } of objects.list(`${folder}/`)) if (!key.endsWith("/")) files.push({
				path: plainPath(key),
				sizeBytes
			});
			return files;
		},
		async withFile(path, work) {
			const stream = await objects.open(path);
			if (stream === void 0) return await work(void 0);
			mkdirSync(copying, {
				recursive: true,
				mode: 448
			});
			const local = join(copying, randomUUID());
			try {
				await pipeline(stream, createWriteStream(local, {
					flags: "wx",
					mode: 384
				}));
				return await work({
					path: local,
					...await hashFile(local)
				});
			} finally {
				await rm(local, { force: true });
			}
		},
		async hashOf(path) {
			const stream = await objects.open(path);
			return stream && await hashOfStream(stream);
		},
		put: (path, file) => objects.putFile(path, file),
		remove: (path) => objects.remove(path),
		readSmall: (name) => objects.text(name),
		writeSmall: async (name, text) => void await objects.put(name, Buffer.from(text))
	};
}
/** Removes the temporary files of a copy. */
function removeCopying(dataDir) {
	rmSync(join(dataDir, COPYING_FOLDER), {
		recursive: true,
		force: true
	});
}
/** Returns the key as a path. Throws when the path would leave the folder: other programs may write into a bucket. */
function plainPath(key) {
	if (key.split("/").every((part) => part !== "" && part !== "." && part !== "..") && !/[\\\0]/.test(key)) return key;
	throw new Error(`the bucket has an object that cannot be a file: ${JSON.stringify(key)}`);
}
export { removeCopying as i, placeInBucket as n, placeInFolder as r, isInBucket as t };
