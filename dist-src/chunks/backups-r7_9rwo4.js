import { T as writeFileAtomically } from "./sqlite-ledger-CF5LsL03.js";
import { r as hashOf } from "./hash-DYRd5MjV.js";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { z } from "zod";
// src/cli/backup/manifest.ts
const HASH = z.string().regex(/^blake3:[0-9a-f]{64}$/);
/** A path below the folder of the backup. The check does not trust the manifest. */
const PATH = z.string().min(1).refine((path) => path.split("/").every((part) => ![
	"",
	".",
	".."
].includes(part))).refine((path) => !/[\\\0]|^[a-z]:/i.test(path) || process.platform !== "win32");
const LISTED_FILE = z.object({
	path: PATH,
	hash: HASH,
	sizeBytes: z.number().int().nonnegative(),
	modifiedAtMs: z.number()
});
const MISSING_FILE = z.object({
	hash: HASH,
	why: z.string()
});
const MANIFEST = z.object({
	format: z.literal(1),
	holdover: z.string(),
	createdAt: z.string(),
	/** Identifies the data folder. A folder of backups takes those of one data folder only. */
	source: z.string(),
	ledger: z.enum(["sqlite", "redis"]),
	files: z.array(LISTED_FILE),
	/** Files on record that were missing or damaged in the data folder when the backup was made. */
	missing: z.array(MISSING_FILE)
});
const MANIFEST_NAME = "manifest.json";
/** Writes the manifest. After a crash the file is complete or absent. */
function writeManifest(folder, manifest) {
	const hash = hashOf(Buffer.from(JSON.stringify(manifest)));
	const text = `${JSON.stringify({
		hash,
		manifest
	})}\n`;
	writeFileAtomically(join(folder, MANIFEST_NAME), text);
}
/**
* Reads the manifest. Throws when it is unusable; the message continues a sentence that begins with the name of the
* folder.
*/
function readManifest(folder) {
	let text;
	try {
		text = readFileSync(join(folder, MANIFEST_NAME), "utf8");
	} catch (cause) {
		const reason = cause.code === "ENOENT" ? `it has no ${MANIFEST_NAME}, which is written last` : String(cause);
		throw new Error(`is not a complete backup: ${reason}`, { cause });
	}
	try {
		const { hash, manifest } = z.object({
			hash: HASH,
			manifest: z.unknown()
		}).parse(JSON.parse(text));
		if (hashOf(Buffer.from(JSON.stringify(manifest))) !== hash) throw new Error("wrong hash");
		return MANIFEST.parse(manifest);
	} catch (cause) {
		throw new Error(`is damaged: its ${MANIFEST_NAME} is not as it was written`, { cause });
	}
}
// src/cli/backup/backups.ts
/** For example `0007-2026-11-22T17-40-01Z`. The number gives the order, because a clock may be set back. */
const BACKUP_NAME = /^(\d{4,})-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/;
/** The backup that is being made, or that a process left unfinished. */
const PARTIAL_NAME = "partial";
/** The lock that a process holds while it makes a backup. */
const BACKUP_LOCK = "backup";
const OWN_NAMES = /^(partial|backup\.lock(-journal)?|lost\+found)$/;
/** Returns the path of the unfinished backup. */
function partialPath(folder) {
	return join(folder, PARTIAL_NAME);
}
/** Makes the folder of backups if it is absent. Throws when it contains anything other than backups. */
function openBackupFolder(folder) {
	mkdirSync(folder, {
		recursive: true,
		mode: 448
	});
	if (readdirSync(folder).filter((name) => !OWN_NAMES.test(name) && !BACKUP_NAME.test(name)).length === 0) return;
	throw new Error(`${folder} contains other files than backups: give a folder for backups only`);
}
/** Returns the backups in a folder, oldest first, and those that cannot be used. */
function backupsIn(folder) {
	const complete = [];
	const unusable = [];
	for (const name of namesIn(folder)) {
		const path = join(folder, name);
		try {
			complete.push({
				name,
				path,
				manifest: readManifest(path)
			});
		} catch (error) {
			unusable.push({
				name,
				why: error.message
			});
		}
	}
	if (existsSync(partialPath(folder))) unusable.push({
		name: PARTIAL_NAME,
		why: "is not a complete backup: it was never finished"
	});
	return {
		complete,
		unusable
	};
}
/** Gives the finished backup its name, and returns that name. */
async function finishPartial(folder, atMs) {
	const last = Math.max(0, ...namesIn(folder).map(numberOf));
	const time = new Date(atMs).toISOString().slice(0, 19).replaceAll(":", "-");
	const name = `${String(last + 1).padStart(4, "0")}-${time}Z`;
	await rename(partialPath(folder), join(folder, name));
	return name;
}
/**
* Removes a backup. Removes its manifest first: a backup without one counts as incomplete, so half a backup is never
* used.
*/
async function removeBackup({ path }) {
	await rm(join(path, "manifest.json"), { force: true });
	await rm(path, {
		recursive: true,
		force: true
	});
}
function namesIn(folder) {
	return (existsSync(folder) ? readdirSync(folder) : []).filter((name) => BACKUP_NAME.test(name)).toSorted((a, b) => numberOf(a) - numberOf(b));
}
function numberOf(name) {
	return Number(BACKUP_NAME.exec(name)?.[1] ?? 0);
}
export { partialPath as a, openBackupFolder as i, backupsIn as n, removeBackup as o, finishPartial as r, writeManifest as s, BACKUP_LOCK as t };
