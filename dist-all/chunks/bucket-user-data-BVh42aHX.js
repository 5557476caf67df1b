import { t as I } from "./index.min-rxNe_V92.js";
import { j as moveIntoPlace } from "./sqlite-ledger-SmMeTYVz.js";
import { o as createKeyedMutex } from "./concurrency-B9CCxp_8.js";
import { i as isStorageFull } from "./storage-errors-D5OCISk9.js";
import { p as withinRoot, u as safeName } from "./file-headers-Di12YiA_.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { lstat, readFile, readdir, unlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createHash } from "node:crypto";
// src/files/folder-paths.ts
const MAX_PATH_BYTES = 1024;
const MAX_DEPTH = 32;
const ABSENT_CODES = /* @__PURE__ */ new Set([
	"ENOENT",
	"ENOTDIR",
	"ENAMETOOLONG"
]);
/**
* Checks a path. v1 resolves `.` and `..`. Front ends store lists of their own under names that
* begin with a dot.
*/
function safePathBelow(requestedPath) {
	const path = withinRoot(requestedPath);
	if (path === void 0) return {
		ok: false,
		reason: "outside"
	};
	const parts = path.split("/");
	return Buffer.byteLength(path) <= MAX_PATH_BYTES && parts.length <= MAX_DEPTH && parts.every((part) => safeName(part.replace(/^\.+/, "")) !== void 0) ? {
		ok: true,
		path
	} : {
		ok: false,
		reason: "unsafe"
	};
}
/** Checks every step of the path, so that no link is followed. */
async function statPath(root, path) {
	const steps = path === "" ? [] : path.split("/");
	let current = root;
	let stats = await lstatOrUndefined(current);
	for (const step of steps) {
		if (stats === void 0) return {
			kind: "absent",
			path: join(root, path)
		};
		if (!stats.isDirectory()) return {
			kind: "blocked",
			path: join(root, path)
		};
		current = join(current, step);
		stats = await lstatOrUndefined(current);
	}
	if (stats === void 0) return {
		kind: "absent",
		path: current
	};
	if (stats.isFile()) return {
		kind: "file",
		path: current,
		stats
	};
	return {
		kind: stats.isDirectory() ? "folder" : "blocked",
		path: current
	};
}
/** Lists everything below a folder, in the order of the paths. Links and devices are left out. */
async function listBelow(folder, options) {
	const found = [];
	const folders = [""];
	for (const subfolder of folders) for (const entry of await entriesIn(folder, subfolder)) {
		found.push(entry);
		if (entry.isFolder && options.depth === "all") folders.push(entry.path);
	}
	return found.toSorted((a, b) => a.path < b.path ? -1 : 1);
}
async function entriesIn(top, subfolder) {
	const names = await undefinedIfAbsent(readdir(join(top, subfolder))) ?? [];
	return (await Promise.all(names.map(async (name) => {
		const path = subfolder === "" ? name : `${subfolder}/${name}`;
		const stats = await lstatOrUndefined(join(top, path));
		return stats && (stats.isFile() || stats.isDirectory()) ? [{
			path,
			name,
			isFolder: stats.isDirectory(),
			stats
		}] : [];
	}))).flat();
}
/** Returns the state of a path itself; links are not followed. `undefined`: it does not exist. */
function lstatOrUndefined(path) {
	return undefinedIfAbsent(lstat(path));
}
async function undefinedIfAbsent(answer) {
	try {
		return await answer;
	} catch (error) {
		if (ABSENT_CODES.has(error.code ?? "")) return void 0;
		throw error;
	}
}
// src/files/user-data-store.ts
/** The maximum number of entries of one user. Folders count, since a client cannot remove them. */
const MAX_USER_ENTRIES = 2e4;
const MAX_USAGES = 1e3;
/** How long a counted usage is valid: other processes may change the files of a user. */
const USAGE_VALID_MS = 6e4;
/** Stores files of users in one place, within the quota of each user. */
function storeIn(place, quotaBytes) {
	const inUserOrder = createKeyedMutex();
	const usages = new I({
		...atMost(MAX_USAGES),
		ttl: USAGE_VALID_MS
	});
	async function countUsage(user) {
		const usage = await place.count(user);
		usages.set(user, usage);
		return usage;
	}
	async function hasRoom(user, added) {
		const fits = ({ bytes, entries }) => bytes + added.bytes <= quotaBytes && entries + added.entries <= MAX_USER_ENTRIES;
		const known = usages.get(user);
		return known !== void 0 && fits(known) || fits(await countUsage(user));
	}
	/**
	* Adds to the usage. The sum may be too large, since all folders of a new path count as new; the
	* files are counted again before a refusal.
	*/
	function addUsage(user, { bytes, entries }) {
		const usage = usages.get(user);
		if (usage === void 0) return;
		usage.bytes += bytes;
		usage.entries += entries;
	}
	/** Writes the file if nothing is in the way and there is space. */
	async function write(user, { path, how, bytes }, act) {
		const target = await place.look(user, path);
		const refusal = refusalFor(target, how);
		if (refusal) return refusal;
		const added = {
			bytes: bytes - (target.kind === "file" ? target.stats.size : 0),
			entries: place.entriesOf(path)
		};
		if (!await hasRoom(user, added)) return "full";
		addUsage(user, added);
		try {
			return await act(target.path);
		} catch (error) {
			usages.delete(user);
			if (isStorageFull(error)) return "full";
			throw error;
		}
	}
	async function move(user, from, to, how) {
		const source = await place.look(user, from);
		if (source.kind !== "file") return noFile(source);
		return write(user, {
			path: to,
			how,
			bytes: 0
		}, (path) => place.move(source.path, path, how));
	}
	async function remove(user, path) {
		const target = await place.look(user, path);
		if (target.kind !== "file") return noFile(target);
		if (!await place.remove(target.path)) return "absent";
		addUsage(user, {
			bytes: -target.stats.size,
			entries: -1
		});
	}
	return {
		...place,
		put: (user, path, file, how) => inUserOrder(user, () => write(user, {
			path,
			how,
			bytes: file.sizeBytes
		}, (to) => place.put(file, to, how))),
		move: (user, ...more) => inUserOrder(user, () => move(user, ...more)),
		remove: (user, path) => inUserOrder(user, () => remove(user, path))
	};
}
/** Stores files of users below one folder. */
function createUserDataStore(options) {
	const root = resolve(options.root);
	const folderFor = (user) => join(root, folderNameOf(user));
	return storeIn({
		folderFor,
		look: (user, path) => statPath(folderFor(user), path),
		list: (user, path, how) => listBelow(join(folderFor(user), path), how),
		async count(user) {
			const entries = await listBelow(folderFor(user), { depth: "all" });
			return {
				bytes: entries.map(({ stats, isFolder }) => isFolder ? 0 : stats.size).reduce((sum, size) => sum + size, 0),
				entries: entries.length
			};
		},
		entriesOf: (path) => path.split("/").length,
		put: moveInto,
		move: (path, to, how) => moveInto({ path }, to, how).catch(ifAbsent("absent")),
		remove: (path) => unlink(path).then(() => true).catch(ifAbsent(false))
	}, options.quotaBytes);
}
async function moveInto(file, path, { overwrite }) {
	return await moveIntoPlace(file, path, overwrite ? "replace" : "keep") === "taken" ? "exists" : {
		kind: "file",
		path,
		stats: await lstat(path)
	};
}
function ifAbsent(instead) {
	return (error) => {
		if (error.code === "ENOENT") return instead;
		throw error;
	};
}
function noFile({ kind }) {
	return kind === "blocked" ? "blocked" : "absent";
}
/** Returns the reason why a file must not be put there, if there is one. */
function refusalFor(target, { overwrite }) {
	if (target.kind === "file") return overwrite ? void 0 : "exists";
	return target.kind === "absent" ? void 0 : "blocked";
}
/**
* Returns the folder name of a user. Ids are hex digests or plain words; any other id is hashed.
*/
function folderNameOf(user) {
	if (/^\w{1,64}$/.test(user)) return user;
	return `_${createHash("sha256").update(user).digest("hex")}`;
}
// src/files/bucket-user-data.ts
const ROOT = "userdata/";
/** Larger files are put without the condition that the key is new: that was checked just before. */
const CONDITIONAL_BYTES = 4 * 2 ** 20;
/** Files of users in a bucket. A folder exists as long as a file is in it. */
function createBucketUserData({ objects, quotaBytes }) {
	const folderFor = (user) => `${ROOT}${folderNameOf(user)}`;
	const keyOf = (user, path) => `${folderFor(user)}/${path}`;
	async function hasObjects(prefix) {
		for await (const _object of objects.list(prefix)) return true;
		return false;
	}
	async function look(user, path) {
		const key = path === "" ? folderFor(user) : keyOf(user, path);
		const found = path === "" ? void 0 : await objects.stat(key);
		if (found) return {
			kind: "file",
			path: key,
			stats: statsOf(found)
		};
		if (await hasObjects(`${key}/`)) return {
			kind: "folder",
			path: key
		};
		const parents = path.split("/").slice(0, -1);
		for (let depth = 1; depth <= parents.length; depth += 1) {
			const parent = keyOf(user, parents.slice(0, depth).join("/"));
			if (await objects.stat(parent)) return {
				kind: "blocked",
				path: key
			};
		}
		return {
			kind: "absent",
			path: key
		};
	}
	async function fileAt(key) {
		const found = await objects.stat(key);
		return found ? {
			kind: "file",
			path: key,
			stats: statsOf(found)
		} : "absent";
	}
	return storeIn({
		folderFor,
		look,
		content: (user, path) => objects.open(keyOf(user, path)),
		async list(user, path, { depth }) {
			const prefix = path === "" ? `${folderFor(user)}/` : `${keyOf(user, path)}/`;
			const entries = /* @__PURE__ */ new Map();
			for await (const { key, ...found } of objects.list(prefix)) {
				const below = key.slice(prefix.length);
				if (below === "" || below.endsWith("/")) continue;
				for (const entry of entriesOf(below, statsOf(found))) if (depth === "all" || !entry.path.includes("/")) entries.set(entry.path, entry);
			}
			return [...entries.values()].toSorted((a, b) => a.path < b.path ? -1 : 1);
		},
		async count(user) {
			const usage = {
				bytes: 0,
				entries: 0
			};
			for await (const { sizeBytes } of objects.list(`${folderFor(user)}/`)) {
				usage.bytes += sizeBytes;
				usage.entries += 1;
			}
			return usage;
		},
		entriesOf: () => 1,
		async put(file, key, { overwrite }) {
			if (file.sizeBytes > CONDITIONAL_BYTES) await objects.putFile(key, file);
			else if (!await objects.put(key, await readFile(file.path), { onlyNew: !overwrite })) return "exists";
			return await fileAt(key);
		},
		async move(from, to) {
			if (from === to) return await fileAt(to);
			if (!await objects.copy(from, to)) return "absent";
			await objects.remove(from);
			return await fileAt(to);
		},
		remove: (key) => objects.remove(key).then(() => true)
	}, quotaBytes);
}
/** Yields a file and the folders that it is in. */
function* entriesOf(path, stats) {
	const steps = path.split("/");
	for (const [at, name] of steps.entries()) {
		const isFolder = at < steps.length - 1;
		yield {
			path: steps.slice(0, at + 1).join("/"),
			name,
			isFolder,
			stats
		};
	}
}
function statsOf({ sizeBytes, modifiedAtMs }) {
	return {
		size: sizeBytes,
		mtimeMs: modifiedAtMs,
		ctimeMs: modifiedAtMs,
		ino: 0
	};
}
export { statPath as a, safePathBelow as i, createUserDataStore as n, lstatOrUndefined as r, createBucketUserData as t };
