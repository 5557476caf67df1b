import { o as FILE_COLUMNS } from "./outline-cache-cWYTAZtt.js";
import { r as isDamage, u as sqlColumns } from "./sqlite-ledger-SmMeTYVz.js";
import { statSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
// src/ledger/sqlite/inspect.ts
const MAX_ERRORS = 100;
const BUSY_TIMEOUT_MS = 1e4;
/** Checks the whole database, to which another process may write meanwhile. Throws an error that is not damage. */
function inspectDatabase(path) {
	if (statSync(path, { throwIfNoEntry: false }) === void 0) return {
		state: "absent",
		errors: [`there is no database ${path}`]
	};
	try {
		return withDatabase(path, (db) => {
			const errors = db.prepare(`PRAGMA integrity_check(${MAX_ERRORS})`).all().map((row) => row.integrity_check).filter((text) => text !== "ok");
			if (errors.length > 0) return {
				state: "damaged",
				errors
			};
			if (!hasTable(db, "assets")) return {
				state: "empty",
				errors: ["it has no tables"]
			};
			return {
				state: "ok",
				errors
			};
		});
	} catch (error) {
		if (!isDamage(error)) throw error;
		return {
			state: "damaged",
			errors: [error.message]
		};
	}
}
/**
* Writes a consistent copy to a new file, while another process may write to the database. `VACUUM INTO` reads in one
* transaction, so the copy is the database at one moment, without its free pages.
*/
function copyDatabase(from, to) {
	withDatabase(from, (db) => db.prepare("VACUUM INTO ?").run(to));
}
/** The bytes that the asset records name, in the order in which they were first recorded. */
function recordedBlobs(path) {
	return withDatabase(path, (db) => {
		return db.prepare(`SELECT hash, max(size_bytes) AS sizeBytes FROM assets GROUP BY hash
      ORDER BY min(rowid)`).all();
	});
}
/** The asset records with these hashes, for reports to an operator. */
function assetsOf(path, hashes) {
	if (hashes.length === 0) return [];
	return withDatabase(path, (db) => {
		const ask = db.prepare("SELECT user, file_path AS filePath, hash FROM assets WHERE hash = ? ORDER BY rowid");
		return hashes.flatMap((hash) => ask.all(hash));
	});
}
/**
* The names of bytes whose asset record may be missing, oldest first: the outputs of all jobs, then the v1 names
* without an asset record. Files that were removed on purpose (`asset_id` is empty) are left out.
*/
function rememberedNames(path) {
	return withDatabase(path, (db) => {
		const outputs = db.prepare(`SELECT user, outputs_json AS outputsJson FROM jobs
      WHERE outputs_json <> '[]' ORDER BY rowid`);
		const files = db.prepare(`SELECT ${sqlColumns(FILE_COLUMNS).select()}
      FROM files WHERE asset_id <> '' AND hash IS NOT NULL
      AND asset_id NOT IN (SELECT id FROM assets) ORDER BY rowid`);
		return [...outputs.all().map((row) => ({
			kind: "output",
			...row
		})), ...files.all().map((row) => ({
			kind: "file",
			row
		}))];
	});
}
/** The id of a ledger; `undefined` for a ledger of an earlier version. */
function ledgerIdIn(path) {
	return withDatabase(path, (db) => {
		if (!hasTable(db, "identity")) return void 0;
		return db.prepare("SELECT value FROM identity WHERE name = 'id'").get()?.value;
	});
}
function hasTable(db, name) {
	return db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?`).get(name) !== void 0;
}
function withDatabase(path, read) {
	const db = new DatabaseSync(path, {
		readOnly: true,
		timeout: BUSY_TIMEOUT_MS
	});
	try {
		return read(db);
	} finally {
		db.close();
	}
}
export { recordedBlobs as a, ledgerIdIn as i, copyDatabase as n, rememberedNames as o, inspectDatabase as r, assetsOf as t };
