import { a as recordedBlobs, i as ledgerIdIn, n as copyDatabase, o as rememberedNames, r as inspectDatabase, t as assetsOf } from "./inspect-0NrKY5YP.js";
import { p as databasePath } from "./sqlite-ledger-CF5LsL03.js";
import { rm } from "node:fs/promises";
import { join } from "node:path";
// src/cli/backup/records.ts
/** Returns the path of a blob, relative to its data folder or backup. */
function blobPath(hash) {
	const hex = hash.slice(7);
	return join("blobs", hex.slice(0, 2), hex);
}
/** Returns the records of a ledger: that in Redis if it is given, otherwise the database in the data folder. */
function recordedFiles(dataDir, redis) {
	return redis ? recordedInRedis(redis.ledger, redis.identity.id) : recordedInDatabase(dataDir);
}
/** Returns false when another ledger recorded the files. Returns true when an earlier version stored no id. */
function isRecordedBy(recorded, recordedBy) {
	const id = recorded.id();
	return id === void 0 || recordedBy === void 0 || recordedBy === id;
}
function recordedInDatabase(dataDir) {
	const path = databasePath(dataDir);
	return {
		kind: "sqlite",
		inspect: () => inspectDatabase(path),
		id: () => ledgerIdIn(path),
		list: async () => recordedBlobs(path),
		owners: async (hashes) => assetsOf(path, hashes),
		remembered: () => rememberedNames(path),
		async save(folder) {
			const copy = databasePath(folder);
			await rm(copy, { force: true });
			copyDatabase(path, copy);
			requireSound(copy, "it was not copied correctly");
			return recordedBlobs(copy);
		}
	};
}
/** Throws when a database is absent or damaged. */
function requireSound(path, advice) {
	const { state, errors } = inspectDatabase(path);
	if (state === "ok") return;
	throw new Error(`the ledger ${path} is ${state} (${errors[0]}): ${advice}`);
}
/** The records of a Redis ledger stay in Redis, and are backed up with Redis. */
function recordedInRedis({ assets }, id) {
	const rows = () => assets.oldest(Number.MAX_SAFE_INTEGER);
	const list = async () => {
		return [...new Map((await rows()).map(({ hash, sizeBytes }) => [hash, sizeBytes]))].map(([hash, sizeBytes]) => ({
			hash,
			sizeBytes
		}));
	};
	return {
		kind: "redis",
		inspect: () => ({
			state: "ok",
			errors: []
		}),
		id: () => id,
		list,
		async owners(hashes) {
			const wanted = new Set(hashes);
			return wanted.size === 0 ? [] : (await rows()).filter(({ hash }) => wanted.has(hash));
		},
		remembered: () => [],
		save: list
	};
}
export { requireSound as i, isRecordedBy as n, recordedFiles as r, blobPath as t };
