import { n as syncPath, r as syncPathNow } from "./durability-BlJWQqTv.js";
import { o as systemClock, r as yieldToEventLoop } from "./event-loop-BDDWO5Ig.js";
import { a as END_NAMES, c as MODEL_CALL_COLUMNS, d as PROMPT_COLUMNS, f as REPLAY_COLUMNS, i as CLAIMED_ASSET_COLUMNS, n as ASSET_COLUMNS, o as FILE_COLUMNS, r as CALL_COUNT_COLUMNS, s as JOB_COLUMNS, t as createOutlineCache, u as OUTLINE_NAMES } from "./outline-cache-BLjCgPfz.js";
import { link, mkdir, open, rename, rm, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { chmodSync, closeSync, constants as constants$1, copyFileSync, existsSync, fdatasync, lstatSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { LRUCache } from "lru-cache";
import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as setTimeout$1 } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
// src/lib/rename-new.ts
/** The errors of file systems without hard links. */
const NO_HARD_LINK_CODES = /* @__PURE__ */ new Set([
	"EPERM",
	"ENOTSUP",
	"EOPNOTSUPP",
	"ENOSYS",
	"EMLINK",
	"EACCES"
]);
/**
* Gives a file an unused name atomically, even when other processes or machines want the same name.
*/
async function linkOrRenameNew(from, to) {
	try {
		await link(from, to);
		return "linked";
	} catch (error) {
		if (codeOf(error) === "EEXIST") return "taken";
		if (!NO_HARD_LINK_CODES.has(codeOf(error))) throw error;
		return await renameReserved(from, to);
	}
}
/** Moves a file to an unused name. */
async function renameNew(from, to) {
	const outcome = await linkOrRenameNew(from, to);
	if (outcome !== "linked") return outcome;
	try {
		await unlink(from);
		return "renamed";
	} catch (error) {
		await rm(to, { force: true });
		throw error;
	}
}
/** Moves a spooled file to its final name. The move is on disk when this resolves. */
async function moveIntoPlace(file, target, existing = "replace") {
	const folder = dirname(resolve(target));
	const createdFolder = await mkdir(folder, {
		recursive: true,
		mode: 448
	});
	await syncPath(file.path);
	if (existing === "replace") await rename(file.path, target);
	else if (await renameNew(file.path, target) === "taken") return "taken";
	const top = createdFolder === void 0 ? folder : dirname(resolve(createdFolder));
	for (let at = folder; at.length >= top.length; at = dirname(at)) {
		await syncPath(at);
		if (at === top) break;
	}
	return "adopted";
}
/**
* Moves a file to a name that was reserved by an empty file. Between the two steps the name is that
* of the empty file.
*/
async function renameReserved(from, to) {
	try {
		await (await open(to, "wx", 384)).close();
	} catch (error) {
		if (codeOf(error) === "EEXIST") return "taken";
		throw error;
	}
	try {
		await rename(from, to);
		return "renamed";
	} catch (error) {
		await rm(to, { force: true });
		throw error;
	}
}
function codeOf(error) {
	return error.code ?? "";
}
// src/data-folder/set-aside.ts
/** The folder for the files of earlier ledgers, below the data directory. */
const SET_ASIDE = "set-aside";
const WAL_FILE = "holdover.db-wal";
/** The folders of a data directory that hold files of users. */
const USER_FILE_FOLDERS = [
	"blobs",
	"blobs-leaving",
	"userdata"
];
/**
* The files and folders of one ledger, in the order in which they are moved. Running processes notice a moved
* `folder.id` and stop.
*/
const MOVED_NAMES = [
	"folder.id",
	"ledger.id",
	"holdover.db",
	WAL_FILE,
	"holdover.db-shm",
	"blobs-unrecorded",
	...USER_FILE_FOLDERS
];
/** Copied and not moved: users keep their ids, and the folder that is set aside is a complete data directory. */
const COPIED_NAMES = ["secret.key"];
/** Returns true when a data directory contains files of users. */
function holdsFiles(root) {
	return USER_FILE_FOLDERS.some((name) => hasFile(join(root, name)));
}
function hasFile(folder) {
	if (!existsSync(folder)) return false;
	return readdirSync(folder, { withFileTypes: true }).some((entry) => entry.isDirectory() ? hasFile(join(folder, entry.name)) : true);
}
/** Returns true when the database is missing, but its last transactions or files exist. */
function lacksDatabase(root) {
	if (sizeOf(join(root, "holdover.db")) > 0) return false;
	return holdsFiles(root) || sizeOf(join(root, WAL_FILE)) > 0;
}
function sizeOf(path) {
	return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
/** Moves the ledger and the files of a data directory into a new dated folder inside it. Returns that folder. */
function setAside(root, now) {
	const folder = makeAsideFolder(root, now);
	for (const name of COPIED_NAMES) if (existsSync(join(root, name))) copyFileSync(join(root, name), join(folder, name));
	moveInto(folder, root, MOVED_NAMES);
	return folder;
}
/** Moves the last transactions of a missing database into a new dated folder. */
function setWalAside(root, now) {
	if (sizeOf(join(root, WAL_FILE)) > 0) moveInto(makeAsideFolder(root, now), root, [WAL_FILE]);
}
function moveInto(folder, root, names) {
	for (const name of names) if (existsSync(join(root, name))) renameSync(join(root, name), join(folder, name));
}
/** Creates a dated folder in `set-aside` and returns its path. */
function makeAsideFolder(root, now) {
	const time = now.toISOString().replace(/\.\d+Z$/, "Z").replaceAll(":", "-");
	const folder = unusedName(join(root, SET_ASIDE, time));
	mkdirSync(folder, {
		recursive: true,
		mode: 448
	});
	return folder;
}
function unusedName(path) {
	for (let copy = 1;; copy += 1) {
		const name = copy === 1 ? path : `${path}-${copy}`;
		if (!existsSync(name)) return name;
	}
}
/** Returns the folder with this id that was set aside, if there is one. */
function findSetAside(root, folderId) {
	const parent = join(root, SET_ASIDE);
	if (!existsSync(parent)) return void 0;
	return readdirSync(parent).map((name) => join(parent, name)).find((folder) => {
		const id = join(folder, "folder.id");
		return existsSync(id) && readFileSync(id, "utf8") === folderId;
	});
}
// src/data-folder/bind-ledger.ts
/** Thrown when the ledger is new and the data directory has files that another ledger recorded. */
var LedgerLacksFiles = class extends Error {};
const ID_CHARS = randomUUID().length;
/**
* How long to wait for another process to write an id. On file systems without hard links the file is empty at first.
*/
const ID_WRITE_TIMEOUT_MS = 2e3;
/**
* Binds a ledger and a data directory to each other. Throws an error that says what to do when the directory has
* files of another ledger, and `LedgerLacksFiles` when the ledger is new.
*/
async function bindDataDir(root, ledger, { acceptFiles = false } = {}) {
	const hasFiles = holdsFiles(root);
	const boundFolderId = await ledger.folder();
	const recordedBy = readIdIn(root, "ledger.id");
	if (boundFolderId !== void 0) refuseOtherFolder({
		root,
		ledger,
		boundFolderId,
		hasFiles
	});
	if (hasFiles && recordedBy !== ledger.id) {
		if (boundFolderId === void 0 && !ledger.predatesFolders && !acceptFiles) throw new LedgerLacksFiles(newLedgerText$1(root, ledger.storedIn));
		if (recordedBy !== void 0 && !acceptFiles) throw new Error(otherLedgerText$1(root));
	}
	const folderId = await folderIdIn(root, boundFolderId);
	if (await ledger.tie(folderId) !== folderId) throw new Error(wrongFolderText(root, ledger));
	if (recordedBy !== ledger.id) writeFileAtomically(join(root, "ledger.id"), ledger.id);
}
function refuseOtherFolder({ root, ledger, boundFolderId, hasFiles }) {
	const folderIdFound = readIdIn(root, "folder.id");
	if (folderIdFound === boundFolderId) return;
	if (ledger.storedIn === "folder" && (folderIdFound === void 0 || !hasFiles)) return;
	throw new Error(wrongFolderText(root, ledger, boundFolderId));
}
/** Returns the id of a data folder, and the id of the ledger that recorded its files. */
function idsOfFolder(root) {
	return {
		folderId: readIdIn(root, "folder.id"),
		ledgerId: readIdIn(root, "ledger.id")
	};
}
function readIdIn(root, name) {
	const path = join(root, name);
	return existsSync(path) ? readFileSync(path, "utf8") : void 0;
}
/**
* Returns the id of a folder. When several processes start on an empty folder, one creates the id and the others wait
* for it.
*/
async function folderIdIn(root, boundFolderId) {
	const path = join(root, "folder.id");
	if (boundFolderId !== void 0 && readIdIn(root, "folder.id") !== boundFolderId) writeFileAtomically(path, boundFolderId);
	if (!existsSync(path)) await writeNewFile(path, randomUUID());
	for (const untilMs = Date.now() + ID_WRITE_TIMEOUT_MS; Date.now() < untilMs; await setTimeout$1(20)) {
		const id = readFileSync(path, "utf8");
		if (id.length === ID_CHARS) return id;
	}
	throw new Error(`${path} is damaged: restore it from a copy`);
}
/**
* Returns the text of the error about a data directory whose files no ledger has recorded, with the possible
* solutions.
*/
function newLedgerText$1(root, storedIn) {
	return `--data-dir ${root} holds files, and ${storedIn === "folder" ? "the ledger in it" : "this --ledger"} is new${formerLedgerHint(root, storedIn)}: restore the ledger that recorded them (from a backup with "holdover restore"), record them again with "holdover check --repair", or start once with --start-anew, which moves them into ${join(root, "set-aside")} and removes nothing`;
}
/** Says which kind of ledger recorded the files: ids of Redis ledgers are UUIDs, ids of databases are not. */
function formerLedgerHint(root, storedIn) {
	const isInRedis = readIdIn(root, "ledger.id")?.includes("-");
	if (storedIn === "folder" && isInRedis) return " (a ledger in Redis recorded them, see --ledger)";
	if (storedIn === "service" && isInRedis) return " (another ledger in Redis recorded them)";
	return storedIn === "service" ? " (the database in the folder recorded them)" : "";
}
function otherLedgerText$1(root) {
	return `--data-dir ${root} has files that belong to another --ledger: use that one, or another folder`;
}
function wrongFolderText(root, { storedIn }, boundFolderId) {
	if (storedIn === "service") return `--data-dir ${root} is not the folder that other processes of this --ledger use: give all of them the same one`;
	const setAsideFolder = boundFolderId === void 0 ? void 0 : findSetAside(root, boundFolderId);
	const where = setAsideFolder === void 0 ? "" : `; its own are in ${setAsideFolder}`;
	return `the ledger ${join(root, "holdover.db")} does not belong to the files in --data-dir ${root}${where}: put ledger and files of one data directory together again`;
}
/** Writes a file, unless another process has written it. Resolves when the file is on the disk. */
async function writeNewFile(path, content) {
	const temporaryPath = `${path}.${randomUUID()}`;
	try {
		writeFileSync(temporaryPath, content, {
			mode: 384,
			flush: true
		});
		await linkOrRenameNew(temporaryPath, path);
		await syncPath(dirname(path));
	} finally {
		rmSync(temporaryPath, { force: true });
	}
}
/** Writes a small file completely or not at all, also when the process is killed. */
function writeFileAtomically(path, content) {
	const temporaryPath = `${path}.${randomUUID()}`;
	writeFileSync(temporaryPath, content, {
		mode: 384,
		flush: true
	});
	renameSync(temporaryPath, path);
}
// src/data-folder/bind-bucket.ts
/** The name of a small file that exists while files are copied into a place. Its text is the id of the copy. */
const UNFINISHED_COPY = "copy-unfinished";
/** Returns the text of the error about a place with an unfinished copy. */
function unfinishedCopyText(place) {
	return `${place} has a copy of files that was interrupted: run the same "holdover migrate" or "holdover restore" again`;
}
/**
* Binds a ledger and a bucket to each other, as `bindDataDir` does with a folder. Returns the id of the bucket.
* Throws an error that says what to do. Throws `LedgerLacksFiles` when the ledger is new and the bucket has files.
*/
async function bindBucket(bucket, ledger, { acceptFiles = false, unusedFolderId } = {}) {
	const hasFiles = await bucket.holdsFiles();
	const boundId = await ledger.folder();
	const recordedBy = await bucket.readId("ledger.id");
	const foundId = await bucket.readId("folder.id");
	if (boundId !== void 0 && foundId !== boundId && !(foundId === void 0 && !hasFiles && boundId === unusedFolderId)) throw new Error(wrongBucketText(bucket, ledger));
	if (hasFiles && recordedBy !== ledger.id && !acceptFiles) {
		if (boundId === void 0) throw new LedgerLacksFiles(newLedgerText(bucket));
		throw new Error(otherLedgerText(bucket));
	}
	await bucket.createId("folder.id", boundId ?? randomUUID());
	const folderId = await bucket.readId("folder.id");
	if (folderId === void 0 || await ledger.tie(folderId) !== folderId) throw new Error(wrongBucketText(bucket, ledger));
	if (recordedBy !== ledger.id) await bucket.writeId("ledger.id", ledger.id);
	return folderId;
}
function wrongBucketText({ url }, { storedIn }) {
	return `--files ${url} does not have the files of this ledger: ${storedIn === "service" ? "give all processes of this --ledger the same --files" : "use the --files it was used with, or copy its files there first"}`;
}
function newLedgerText({ url }) {
	return `--files ${url} holds files, and this ledger is new: restore the ledger that recorded them, record them again with "holdover check --repair", or use another PREFIX`;
}
function otherLedgerText({ url }) {
	return `--files ${url} has files that belong to another ledger: use that one, or another PREFIX`;
}
/**
* Opens the data directory of a ledger. Throws an error that says what to do when its files belong to another ledger
* or to none.
*/
async function openDataDir(root, ledger, { bucket, ...options } = {}) {
	makeDataDir(root);
	return {
		root,
		/** The id of the bucket with its files; `undefined` when they are in this directory. */
		bucketId: bucket ? await bindFilesInBucket(root, ledger, {
			...options,
			bucket
		}) : await bindFilesInFolder(root, ledger, options),
		database: databasePath(root),
		spool: join(root, "spool"),
		userData: join(root, "userdata"),
		/** The folder with copies of node definitions, which are used after a restart. */
		objectInfo: join(root, "object-info"),
		/**
		* Signs download links, and derives user ids from keys. It is created once; only the owner of the file can read
		* it.
		*/
		secret: await loadSecret(root, ledger)
	};
}
/** The name of the file with the URL of the bucket, so that a start without `--files` is refused. */
const BUCKET_FILE = "files.url";
async function bindFilesInFolder(root, ledger, options) {
	await refuseOtherPlace(root, void 0);
	if (existsSync(join(root, "copy-unfinished"))) throw new Error(unfinishedCopyText(`--data-dir ${root}`));
	await bindDataDir(root, ledger, options);
}
/**
* Throws when the files are in the other place, or incomplete: when no bucket is given and one has the files, and
* when a bucket is given but its files were copied into the directory.
*/
async function refuseOtherPlace(root, bucket) {
	const url = bucketOf(root);
	if (bucket === void 0) {
		if (url === void 0) return;
		throw new Error(`the files of --data-dir ${root} are in a bucket: give --files ${url} as before`);
	}
	if (await bucket.readId("copy-unfinished") !== void 0) throw new Error(unfinishedCopyText(`--files ${bucket.url}`));
	const { folderId } = idsOfFolder(root);
	if (url !== void 0 || folderId === void 0 || !holdsFiles(root)) return;
	if (await bucket.readId("folder.id") === folderId) throw new Error(`the files of --data-dir ${root} are in that folder: leave --files out`);
}
/** Returns the URL of the bucket that has the files of a data directory; `undefined` when the directory has them. */
function bucketOf(root) {
	const path = join(root, BUCKET_FILE);
	return existsSync(path) ? readFileSync(path, "utf8") : void 0;
}
/** Stores the URL of the bucket that has the files; `undefined` when the directory has them. */
function placeBucketOf(root, url) {
	const path = join(root, BUCKET_FILE);
	if (url !== void 0) writeFileAtomically(path, url);
	else rmSync(path, { force: true });
	syncPathNow(root);
}
async function bindFilesInBucket(root, ledger, { bucket, ...options }) {
	await refuseOtherPlace(root, bucket);
	const unusedFolderId = holdsFiles(root) ? void 0 : idsOfFolder(root).folderId;
	const id = await bindBucket(bucket, ledger, {
		...options,
		unusedFolderId
	});
	writeFileAtomically(join(root, BUCKET_FILE), bucket.url);
	return id;
}
/** Creates the data directory if it does not exist. Throws when it cannot be used. */
function makeDataDir(root) {
	try {
		mkdirSync(join(root, "spool"), {
			recursive: true,
			mode: 448
		});
	} catch (error) {
		const reason = error instanceof Error ? error.message : String(error);
		throw new Error(`--data-dir ${root} cannot be used: ${reason}`, { cause: error });
	}
}
/** The folder with the verified copy of a backup, while its files are moved into the data directory. */
const UNFINISHED_RESTORE = "restore-unfinished";
/** Throws when a restore was interrupted: then only some files are those of the backup. */
function refuseUnfinishedRestore(root) {
	if (!existsSync(join(root, "restore-unfinished"))) return;
	throw new Error(`--data-dir ${root} has a restore that was interrupted: run "holdover restore" again, with --replace, which removes nothing`);
}
/** Returns the path of the database of a data directory. */
function databasePath(root) {
	return join(root, "holdover.db");
}
async function loadSecret(root, ledger) {
	if (ledger.secret === void 0) return readSecret(root);
	return ledger.secret(existsSync(secretPath(root)) ? readSecret(root) : randomBytes(32));
}
/** Writes the secret of a Redis ledger into the folder of a process with its own database. */
function placeSecret(root, secret) {
	writeFileAtomically(secretPath(root), secret);
}
/** Returns the secret in the folder; `undefined` when there is none. Throws when it is damaged. */
function secretIn(root) {
	return existsSync(secretPath(root)) ? readSecret(root) : void 0;
}
function secretPath(root) {
	return join(root, "secret.key");
}
function readSecret(root) {
	const path = secretPath(root);
	if (!existsSync(path)) writeFileAtomically(path, randomBytes(32));
	const secret = readFileSync(path);
	if (secret.length !== 32) throw new Error(`${path} is damaged: remove it, and all users of keys become new users`);
	return secret;
}
// src/ledger/sqlite/sql-columns.ts
/** Makes the parts of SQL statements for one kind of record from its columns. */
function sqlColumns(columns) {
	const names = Object.keys(columns);
	const flags = names.filter((name) => columns[name].type === "flag");
	const selected = (name) => `${columns[name].sql} AS "${name}"`;
	const valuesOf = (row, given) => {
		const values = [];
		for (const name of given) {
			const value = row[name];
			values.push(typeof value === "boolean" ? Number(value) : value);
		}
		return values;
	};
	return {
		/** The columns for `SELECT`, each under the name of its property: all of them, or the given ones. */
		select: (some = names) => some.map(selected).join(", "),
		/** `(columns) VALUES (?, …)`, for an `INSERT` that runs with `values(row)`. */
		insert: `(${names.map((name) => columns[name].sql).join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
		values: (row) => valuesOf(row, names),
		/** `column = ?, …` for an `UPDATE`, and its values. Properties that are `undefined` are not changed. */
		assignments(patch) {
			const given = names.filter((name) => patch[name] !== void 0);
			return {
				sql: given.map((name) => `${columns[name].sql} = ?`).join(", "),
				values: valuesOf(patch, given)
			};
		},
		/** Converts the flags of a selected row to booleans. */
		row(found) {
			if (found === void 0 || flags.length === 0) return found;
			const row = found;
			return {
				...row,
				...Object.fromEntries(flags.map((name) => [name, row[name] === 1]))
			};
		}
	};
}
/** Adds the columns that a table of an earlier version lacks. Earlier versions ignore added columns. */
function addMissingColumns(db, table, columns) {
	const found = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all();
	const existing = new Set(found.map(({ name }) => name));
	for (const { sql, added } of Object.values(columns)) if (!existing.has(sql) && added !== void 0) db.exec(`ALTER TABLE ${table} ADD COLUMN ${sql} ${added}`);
}
// src/ledger/sqlite/assets.ts
const SQL$4 = sqlColumns(ASSET_COLUMNS);
const COLUMNS$3 = SQL$4.select();
/** The asset records of the embedded engine; the bytes are files of their own. */
function assetStore(db, writer, lists) {
	const sql = statements$1(db);
	const claimed = assetKeyLookup(db);
	const row = (found) => found;
	const rows = (found) => found;
	const claimKey = ({ user, id: assetId, createdAtMs: claimedAtMs }, { key, fingerprint, createdNew }) => {
		const values = {
			user,
			key,
			fingerprint,
			assetId,
			createdNew: createdNew ? 1 : 0,
			claimedAtMs
		};
		return sql.claim.run(values).changes === 1 ? void 0 : claimed(user, key);
	};
	const insertClaimed = (asset, claim) => writer.write(() => {
		const holder = claimKey(asset, claim);
		if (!holder) sql.insert.run(...SQL$4.values(asset));
		return holder;
	});
	return {
		insert: (asset, claim, durability) => claim ? insertClaimed(asset, claim) : writer.writeOne(() => void sql.insert.run(...SQL$4.values(asset)), durability),
		get: async (id) => row(sql.get.get(id)),
		byHash: async (user, hash) => row(sql.byHash.get(hash, user)),
		byFilePath: async (user, filePath) => row(sql.byPath.get(user, filePath)),
		ofJob: async (jobId) => rows(sql.ofJob.all(jobId)),
		outputPaths: async (user, prefix) => sql.paths.all(user, prefix, afterPrefix(prefix)).map((r) => r.filePath),
		expiredBy: async (nowMs) => rows(sql.expired.all(nowMs)),
		oldest: async (limit) => rows(sql.oldest.all(limit)),
		remove: (id) => lists.change(() => writer.write(() => {
			sql.removeInputNames.run({ id });
			sql.clearOutputNames.run({ id });
			sql.remove.run(id);
		})),
		countByHash: async (hash) => sql.count.get(hash).n,
		totalBytes: async () => sql.total.get().n
	};
}
/** A text that comes after all texts that start with `prefix`, so that the index can be searched for a prefix. */
function afterPrefix(prefix) {
	return `${prefix}\u{10ffff}`;
}
function statements$1(db) {
	const named = "user = (SELECT user FROM assets WHERE id = :id) AND asset_id = :id";
	return {
		insert: db.prepare(`INSERT INTO assets ${SQL$4.insert}`),
		claim: db.prepare(`INSERT OR IGNORE INTO asset_keys (user, key, fingerprint, asset_id,
      created_new, claimed_at_ms) VALUES (:user, :key, :fingerprint, :assetId, :createdNew,
      :claimedAtMs)`),
		get: db.prepare(`SELECT ${COLUMNS$3} FROM assets WHERE id = ?`),
		byHash: db.prepare(`SELECT ${COLUMNS$3} FROM assets WHERE hash = ? AND user = ? LIMIT 1`),
		byPath: db.prepare(`SELECT ${COLUMNS$3} FROM assets WHERE user = ? AND file_path = ?
      ORDER BY rowid DESC LIMIT 1`),
		ofJob: db.prepare(`SELECT ${COLUMNS$3} FROM assets WHERE job_id = ? ORDER BY rowid`),
		paths: db.prepare(`SELECT file_path AS filePath FROM assets WHERE user = ?
      AND file_path >= ? AND file_path < ? AND job_id IS NOT NULL`),
		expired: db.prepare(`SELECT ${COLUMNS$3} FROM assets WHERE expires_at_ms <= ?`),
		oldest: db.prepare(`SELECT ${COLUMNS$3} FROM assets ORDER BY created_at_ms, rowid LIMIT ?`),
		remove: db.prepare("DELETE FROM assets WHERE id = ?"),
		removeInputNames: db.prepare(`DELETE FROM files WHERE ${named} AND type <> 'output'`),
		clearOutputNames: db.prepare(`UPDATE files SET asset_id = '' WHERE ${named}`),
		count: db.prepare("SELECT count(*) AS n FROM assets WHERE hash = ?"),
		total: db.prepare(`SELECT coalesce(sum(size), 0) AS n FROM
      (SELECT max(size_bytes) AS size FROM assets GROUP BY hash)`)
	};
}
const KEYS = sqlColumns(CLAIMED_ASSET_COLUMNS);
/** Single-use idempotency keys, of jobs and of assets. */
function keyStore(db, writer) {
	const ofAsset = assetKeyLookup(db);
	const ofJobs = db.prepare("DELETE FROM keys WHERE claimed_at_ms < ?");
	const ofAssets = db.prepare("DELETE FROM asset_keys WHERE claimed_at_ms < ?");
	return {
		ofAsset: async (user, key) => ofAsset(user, key),
		expire: (beforeMs) => writer.write(() => {
			ofJobs.run(beforeMs);
			ofAssets.run(beforeMs);
		})
	};
}
/** Returns a function that reads the claim of an asset's key. */
function assetKeyLookup(db) {
	const find = db.prepare(`SELECT ${KEYS.select()} FROM asset_keys WHERE user = ? AND key = ?`);
	return (user, key) => KEYS.row(find.get(user, key));
}
// src/ledger/sqlite/call-counts.ts
const SQL$3 = sqlColumns(CALL_COUNT_COLUMNS);
const LIST = `SELECT ${SQL$3.select()} FROM v1_calls ORDER BY user, agent, route, client_id`;
/** Counts of v1 calls by client. */
function callCountStore(db, writer) {
	const add = db.prepare(`INSERT INTO v1_calls ${SQL$3.insert}
    ON CONFLICT (user, agent, client_id, route) DO UPDATE SET count = count + excluded.count,
    first_at_ms = min(first_at_ms, excluded.first_at_ms),
    last_at_ms = max(last_at_ms, excluded.last_at_ms)`);
	const list = db.prepare(LIST);
	const expire = db.prepare("DELETE FROM v1_calls WHERE last_at_ms < ?");
	return {
		add: (rows) => writer.write(() => rows.forEach((row) => add.run(...SQL$3.values(row)))),
		list: async () => list.all(),
		expire: (beforeMs) => writer.write(() => void expire.run(beforeMs))
	};
}
/** Reads the counts of a ledger that another process may have open; `undefined` when there is no file. */
function readCallCounts(path) {
	if (!existsSync(path)) return void 0;
	const db = new DatabaseSync(path, { readOnly: true });
	try {
		return db.prepare(`SELECT 1 FROM sqlite_schema WHERE name = 'v1_calls'`).get() === void 0 ? [] : db.prepare(LIST).all();
	} finally {
		db.close();
	}
}
// src/ledger/sqlite/files.ts
const SQL$2 = sqlColumns(FILE_COLUMNS);
const COLUMNS$2 = SQL$2.select();
/** v1 file names and the assets behind them. */
function fileStore(db, writer, lists) {
	const named = `user = ? AND type = ? AND subfolder = ? AND filename = ?`;
	const put = db.prepare(`INSERT OR REPLACE INTO files ${SQL$2.insert}`);
	const claim = db.prepare(`INSERT OR IGNORE INTO files ${SQL$2.insert}`);
	const get = db.prepare(`SELECT ${COLUMNS$2} FROM files WHERE ${named}`);
	const byAsset = db.prepare(`SELECT ${COLUMNS$2} FROM files WHERE user = ? AND asset_id = ?
    ORDER BY rowid LIMIT 1`);
	const newestNamed = db.prepare(`SELECT ${COLUMNS$2} FROM files WHERE user = ? AND type = ?
    AND filename = ? AND asset_id <> '' ORDER BY modified_at_ms DESC, rowid DESC LIMIT 1`);
	const list = db.prepare(`SELECT ${COLUMNS$2} FROM files WHERE user = ? AND type = ?
    AND asset_id <> '' ORDER BY modified_at_ms DESC, rowid DESC`);
	const remove = db.prepare(`DELETE FROM files WHERE ${named}`);
	const write = (apply, of, durability) => lists.change(() => writer.writeOne(apply, durability), of);
	return {
		put: (row, durability) => write(() => void put.run(...SQL$2.values(row)), row, durability),
		claim: (row, durability) => write(() => claim.run(...SQL$2.values(row)).changes === 1, row, durability),
		get: async (user, { type, subfolder, filename }) => get.get(user, type, subfolder, filename),
		byAsset: async (user, assetId) => byAsset.get(user, assetId),
		newestNamed: async (user, { type, filename }) => newestNamed.get(user, type, filename),
		list: async (user, type) => lists.of(user, type, () => list.all(user, type)),
		remove: (user, { type, subfolder, filename }) => write(() => void remove.run(user, type, subfolder, filename), {
			user,
			type
		})
	};
}
/** The settings of front ends, with one row for each setting. */
function settingStore(db, writer) {
	const all = db.prepare("SELECT id, value_json AS valueJson FROM settings WHERE user = ?");
	const put = db.prepare("INSERT OR REPLACE INTO settings (user, id, value_json) VALUES (?, ?, ?)");
	return {
		async all(user) {
			const rows = all.all(user);
			return Object.fromEntries(rows.map(({ id, valueJson }) => [id, valueJson]));
		},
		merge: (user, settings) => writer.write(() => Object.entries(settings).forEach(([id, json]) => put.run(user, id, json)))
	};
}
/** The most files in all cached lists together. */
const MAX_CACHED_FILES = 1e5;
/**
* Caches lists of files by user and type, because every request for the node definitions reads one and files change
* rarely. A change invalidates its list. No other process writes to the database.
*/
function createFileListCache() {
	const cached = new LRUCache({
		maxSize: MAX_CACHED_FILES,
		sizeCalculation: (rows) => rows.length + 1
	});
	const keyOf = (user, type) => `${type} ${user}`;
	const invalidate = (of) => {
		if (of) cached.delete(keyOf(of.user, of.type));
		else cached.clear();
	};
	return {
		of(user, type, read) {
			const key = keyOf(user, type);
			const rows = cached.get(key) ?? read();
			cached.set(key, rows);
			return rows;
		},
		/**
		* Runs a write to the table of files, which changes the list of one user and type; without `of`, any list.
		* The lists are invalidated at once, and again when the write fails.
		*/
		async change(write, of) {
			const writing = write();
			invalidate(of);
			try {
				return await writing;
			} catch (error) {
				invalidate(of);
				throw error;
			}
		}
	};
}
// src/ledger/sqlite/long-texts.ts
/** The characters written in one turn of the event loop, which takes two or three milliseconds. */
const PART_CHARS = 524288;
/** Begins a reference to a long text. No JSON text begins with this character. */
const REFERENCE_PREFIX = "@";
/**
* Stores texts that are too long to be written in one turn of the event loop. They are stored in parts, in a table of
* their own. The row has references in their place; when it is removed, triggers remove its long texts.
*/
function longTexts(db, writer) {
	const sql = {
		insert: db.prepare("INSERT INTO long_texts (owner, name, part, text) VALUES (?, ?, ?, ?)"),
		parts: db.prepare("SELECT text FROM long_texts WHERE owner = ? AND name = ? ORDER BY part"),
		names: db.prepare("SELECT DISTINCT name FROM long_texts WHERE owner = ?"),
		drop: db.prepare("DELETE FROM long_texts WHERE owner = ? AND name = ?"),
		orphans: db.prepare(`DELETE FROM long_texts WHERE owner NOT IN (SELECT key FROM prompts)
      AND owner NOT IN (SELECT 'job ' || id FROM jobs)`)
	};
	async function store(owner, name, text) {
		let part = 0;
		for (let start = 0; start < text.length;) {
			const end = endOfPart(text, start);
			const piece = text.slice(start, end);
			await writer.writeOne(() => void sql.insert.run(owner, name, part, piece));
			start = end;
			part++;
			await yieldToEventLoop();
		}
	}
	function textOf(owner, name) {
		return sql.parts.all(owner, name).map(({ text }) => text).join("");
	}
	return {
		isLong: (row, names) => names.some((name) => isLongText(row[name])),
		/** Stores the long texts of a row, and returns the row with references. Write that row afterwards. */
		async put(owner, row, names) {
			const referring = { ...row };
			for (const name of names) {
				const text = row[name];
				if (!isLongText(text)) continue;
				const stored = `${name}.${randomUUID()}`;
				await store(owner, stored, text);
				Object.assign(referring, { [name]: REFERENCE_PREFIX + stored });
			}
			return referring;
		},
		/** Replaces references in the row by getters that read the long text. Changes the row and returns it. */
		withTexts(owner, row, names) {
			for (const name of names) {
				const text = row[name];
				if (typeof text !== "string" || !text.startsWith(REFERENCE_PREFIX)) continue;
				const get = () => textOf(owner, text.slice(1));
				Object.defineProperty(row, name, {
					get,
					enumerable: true,
					configurable: true
				});
			}
			return row;
		},
		/** Removes the long texts of the owner to which the row does not refer. `undefined`: the row was not written. */
		async dropOthers(owner, row) {
			const referenced = new Set(Object.values(row ?? {}));
			for (const { name } of sql.names.all(owner)) if (!referenced.has(REFERENCE_PREFIX + name)) await writer.writeOne(() => void sql.drop.run(owner, name));
		},
		/** Removes long texts without a row, which a crashed process may have left. */
		dropOrphans: () => void sql.orphans.run()
	};
}
function isLongText(text) {
	return typeof text === "string" && text.length > 2 * PART_CHARS;
}
/** The end of the part that begins at `start`. It never splits a surrogate pair, because SQLite stores UTF-8. */
function endOfPart(text, start) {
	const end = Math.min(text.length, start + PART_CHARS);
	const last = text.charCodeAt(end - 1);
	return end < text.length && last >= 55296 && last <= 56319 ? end - 1 : end;
}
// src/ledger/sqlite/jobs.ts
const SQL$1 = sqlColumns(JOB_COLUMNS);
const COLUMNS$1 = SQL$1.select();
/** Must equal the condition of the index `jobs_by_expiry`. */
const ENDED = `status NOT IN ('queued', 'running', 'canceling')`;
const LONG_COLUMNS$1 = ["workflowJson", "provenanceJson"];
/** The owner of a job's long texts. */
function ownerOf(jobId) {
	return `job ${jobId}`;
}
/** The jobs of the embedded engine. */
function jobStore(db, writer) {
	const texts = longTexts(db, writer);
	const sql = statements(db);
	const update = createUpdate(db);
	const withTexts = (found) => {
		const row = found;
		return row && texts.withTexts(ownerOf(row.id), row, LONG_COLUMNS$1);
	};
	const rows = (found) => found.flatMap((row) => withTexts(row) ?? []);
	const insert = (row, key, durability) => key === row.id ? writer.writeOne(() => sql.insertNew.run(...SQL$1.values(row)).changes === 1, durability) : insertClaiming(row, key, durability);
	const insertClaiming = (row, key, durability) => writer.write(() => {
		const { id: jobId, user, createdAtMs } = row;
		const isFree = key === void 0 || sql.claim.run({
			user,
			key,
			createdAtMs,
			jobId
		}).changes === 1;
		if (isFree) sql.insert.run(...SQL$1.values(row));
		return isFree;
	}, durability);
	return {
		async insert(row, key, durability) {
			if (!texts.isLong(row, LONG_COLUMNS$1)) return await insert(row, key, durability);
			const owner = ownerOf(row.id);
			const isFree = await insert(await texts.put(owner, row, LONG_COLUMNS$1), key, durability);
			if (!isFree) await texts.dropOthers(owner, sql.get.get(row.id));
			return isFree;
		},
		update: (id, patch, durability, files) => writer.writeOne(() => update(id, patch), durability, files),
		get: async (id) => withTexts(sql.get.get(id)),
		list: async (user, { limit, before }) => rows(before === void 0 ? sql.list.all(user, limit) : sql.listBefore.all(user, before, limit)),
		unfinished: async () => rows(sql.unfinished.all()),
		expiredBy: async (nowMs) => rows(sql.expired.all(nowMs)),
		remove: (id) => writer.write(() => void sql.remove.run(id))
	};
}
/** Prepares one statement for each combination of columns; the engine changes few combinations. */
function createUpdate(db) {
	const prepared = /* @__PURE__ */ new Map();
	return (id, patch) => {
		const { sql, values } = SQL$1.assignments(patch);
		if (values.length === 0) return;
		const statement = prepared.get(sql) ?? db.prepare(`UPDATE jobs SET ${sql} WHERE id = ?`);
		prepared.set(sql, statement);
		statement.run(...values, id);
	};
}
function statements(db) {
	return {
		insert: db.prepare(`INSERT INTO jobs ${SQL$1.insert}`),
		insertNew: db.prepare(`INSERT INTO jobs ${SQL$1.insert} ON CONFLICT (id) DO NOTHING`),
		claim: db.prepare(`INSERT INTO keys (user, key, claimed_at_ms, job_id)
      VALUES (:user, :key, :createdAtMs, :jobId) ON CONFLICT (user, key) DO UPDATE
      SET job_id = excluded.job_id, claimed_at_ms = excluded.claimed_at_ms WHERE job_id IS NULL`),
		get: db.prepare(`SELECT ${COLUMNS$1} FROM jobs WHERE id = ?`),
		list: db.prepare(`SELECT ${COLUMNS$1} FROM jobs WHERE user = ? ORDER BY rowid DESC LIMIT ?`),
		listBefore: db.prepare(`SELECT ${COLUMNS$1} FROM jobs WHERE user = ?
      AND rowid < (SELECT rowid FROM jobs WHERE id = ?) ORDER BY rowid DESC LIMIT ?`),
		unfinished: db.prepare(`SELECT ${COLUMNS$1} FROM jobs WHERE rowid IN (SELECT rowid FROM jobs
      INDEXED BY jobs_by_user EXCEPT SELECT rowid FROM jobs INDEXED BY jobs_by_expiry WHERE ${ENDED})
      ORDER BY turn, rowid`),
		expired: db.prepare(`SELECT ${COLUMNS$1} FROM jobs WHERE expires_at_ms <= ? AND ${ENDED}`),
		remove: db.prepare("DELETE FROM jobs WHERE id = ?")
	};
}
// src/ledger/sqlite/models.ts
const REPLAYS = sqlColumns(REPLAY_COLUMNS);
const CALLS = sqlColumns(MODEL_CALL_COLUMNS);
/** The idempotency keys of the model router and their stored answers. */
function replayStore(db, writer) {
	const sql = replayStatements(db);
	const find = (scope, key) => sql.get.get(scope, key);
	return {
		reserve: (row, freeBeforeMs) => writer.write(() => {
			sql.expireOne.run(row.scope, row.key, freeBeforeMs);
			return sql.reserve.run({ ...row }).changes === 1 ? void 0 : find(row.scope, row.key);
		}),
		record: (holder, answer) => writer.write(() => void sql.record.run({
			...pick(holder),
			...answer
		})),
		consume: (holder, atMs) => writer.write(() => void sql.consume.run({
			...pick(holder),
			atMs
		})),
		release: (holder) => writer.write(() => void sql.release.run(pick(holder))),
		expire: (beforeMs) => writer.write(() => void sql.expire.run(beforeMs)),
		recordedBytes: async () => sql.bytes.get().n
	};
}
/** The parameters of `held`. SQLite refuses parameters that a statement does not name. */
function pick({ scope, key, requestId }) {
	return {
		scope,
		key,
		requestId
	};
}
function replayStatements(db) {
	const held = "scope = :scope AND key = :key AND request_id = :requestId";
	return {
		get: db.prepare(`SELECT ${REPLAYS.select()}
      FROM model_replays WHERE scope = ? AND key = ?`),
		expireOne: db.prepare(`DELETE FROM model_replays WHERE scope = ? AND key = ? AND at_ms < ?`),
		reserve: db.prepare(`INSERT OR IGNORE INTO model_replays (scope, key, fingerprint, request_id,
      state, at_ms) VALUES (:scope, :key, :fingerprint, :requestId, 'reserved', :atMs)`),
		record: db.prepare(`UPDATE model_replays SET state = 'recorded', at_ms = :atMs,
      status = :status, content_type = :contentType, body = :body, body_bytes = length(:body)
      WHERE ${held}`),
		consume: db.prepare(`UPDATE model_replays SET state = 'consumed', at_ms = :atMs, status = NULL,
      content_type = NULL, body = NULL, body_bytes = 0 WHERE ${held}`),
		release: db.prepare(`DELETE FROM model_replays WHERE ${held}`),
		expire: db.prepare("DELETE FROM model_replays WHERE at_ms < ?"),
		bytes: db.prepare(`SELECT coalesce(sum(body_bytes), 0) AS n FROM model_replays
      WHERE state = 'recorded'`)
	};
}
/** The audit records of the model router. */
function modelCallStore(db, writer) {
	const insert = db.prepare(`INSERT INTO model_calls ${CALLS.insert}`);
	const amend = db.prepare(`UPDATE model_calls SET error_type = :errorType,
    charged_cents = :chargedCents WHERE request_id = :requestId`);
	const get = db.prepare(`SELECT ${CALLS.select()} FROM model_calls WHERE request_id = ?`);
	const charged = db.prepare(`SELECT coalesce(sum(charged_cents), 0) AS n FROM model_calls
    WHERE workspace = ? AND charged_cents > 0`);
	const expire = db.prepare("DELETE FROM model_calls WHERE ended_at_ms < ? AND charged_cents = 0");
	return {
		insert: (row) => writer.write(() => void insert.run(...CALLS.values(row))),
		amend: (requestId, { errorType, chargedCents }) => writer.write(() => void amend.run({
			requestId,
			errorType,
			chargedCents
		})),
		get: async (requestId) => CALLS.row(get.get(requestId)),
		chargedCents: async (workspace) => charged.get(workspace).n,
		expire: (beforeMs) => writer.write(() => void expire.run(beforeMs))
	};
}
// src/ledger/sqlite/prompts.ts
const SQL = sqlColumns(PROMPT_COLUMNS);
const COLUMNS = SQL.select();
/** A larger number does not come from the counter: a client sent it to be first or last in the queue. */
const HIGHEST_COUNTED = 1e9;
const SET_END = END_NAMES.map((name) => `${PROMPT_COLUMNS[name].sql} = :${name}`).join(", ");
const NO_END = Object.fromEntries(END_NAMES.map((name) => [name, null]));
const LONG_COLUMNS = ["graphJson", "extraDataJson"];
/** The prompts of v1, unfinished and done. */
function promptStore(db, writer) {
	const texts = longTexts(db, writer);
	/** Prepares a query whose rows have their long texts. */
	const reader = (sql) => {
		const statement = db.prepare(sql);
		const rowOf = (found) => {
			const row = found;
			return row && texts.withTexts(row.key, row, LONG_COLUMNS);
		};
		return {
			get: (...values) => rowOf(statement.get(...values)),
			all: (...values) => statement.all(...values).flatMap((row) => rowOf(row) ?? [])
		};
	};
	const references = db.prepare(`SELECT substr(graph_json, 1, 100) AS graph,
    substr(extra_data_json, 1, 100) AS extraData FROM prompts WHERE key = ?`);
	const dropReplaced = (key) => texts.dropOthers(key, references.get(key));
	const parts = {
		db,
		writer,
		texts,
		reader,
		dropReplaced
	};
	return {
		...liveStore(parts),
		...lookups(parts),
		...historyStore(parts)
	};
}
/** The functions that change prompts that have not ended. */
function liveStore({ db, writer, texts, dropReplaced }) {
	const writing = (sql) => {
		const statement = db.prepare(sql);
		return (values, durability) => writer.writeOne(() => void statement.run(...values), durability);
	};
	const insert = writing(`INSERT INTO prompts ${SQL.insert}`);
	const setState = writing(`UPDATE prompts SET state = ? WHERE key = ? AND state <> 'done'`);
	const setPlan = writing(`UPDATE prompts SET intent_json = ?, targets_json = ? WHERE key = ?
    AND job_id IS NULL AND state <> 'done'`);
	const askCancel = writing(`UPDATE prompts SET cancel_asked_at_ms = ? WHERE key = ?`);
	const linkJob = writing(`UPDATE prompts SET state = 'live', prompt_id = ?, job_id = ?,
    graph_json = coalesce(?, graph_json), targets_json = ? WHERE key = ?`);
	const unlinkJob = writing(`UPDATE prompts SET state = 'outbox', job_id = NULL, intent_json = ?,
    targets_json = ? WHERE key = ? AND state = 'live'`);
	const remove = writing(`DELETE FROM prompts WHERE key = ?`);
	const begin = writing(`UPDATE prompts SET started_at_ms = ? WHERE key = ?
    AND started_at_ms IS NULL AND state <> 'done'`);
	const link = (key, patch, durability) => {
		const { promptId, jobId, graphJson, targetsJson } = patch;
		return linkJob([
			promptId,
			jobId,
			graphJson ?? null,
			targetsJson,
			key
		], durability);
	};
	const withoutLongTexts = (row) => texts.isLong(row, LONG_COLUMNS) ? texts.put(row.key, row, LONG_COLUMNS) : row;
	return {
		async insert(row) {
			const stored = withoutLongTexts(row);
			await insert(SQL.values(stored instanceof Promise ? await stored : stored));
		},
		async insertBeforeLater(row) {
			return { stored: insert(SQL.values(await withoutLongTexts(row)), "soon") };
		},
		setState: (key, state) => setState([state, key]),
		setPlan: (key, { intentJson, targetsJson }) => setPlan([
			intentJson,
			targetsJson,
			key
		]),
		askCancel: (key, atMs) => askCancel([atMs, key]),
		async linkJob(key, patch, durability) {
			if (!texts.isLong(patch, ["graphJson"])) return await link(key, patch, durability);
			await link(key, await texts.put(key, patch, ["graphJson"]), durability);
			await dropReplaced(key);
		},
		unlinkJob: (key, { intentJson, targetsJson }) => unlinkJob([
			intentJson,
			targetsJson,
			key
		]),
		begin: (key, atMs, durability) => begin([atMs, key], durability),
		remove: (key) => remove([key])
	};
}
/** The functions that find prompts. */
function lookups({ db, reader }) {
	const ended = `FROM prompts INDEXED BY prompts_done WHERE state = 'done'`;
	const live = reader(`SELECT ${COLUMNS} FROM prompts WHERE rowid IN (SELECT rowid FROM prompts
    INDEXED BY prompts_by_id EXCEPT SELECT rowid ${ended}) ORDER BY rowid`);
	const liveOf = reader(`SELECT ${COLUMNS} FROM prompts WHERE rowid IN (SELECT rowid FROM prompts
    INDEXED BY prompts_by_id WHERE user = ? EXCEPT SELECT rowid ${ended} AND user = ?)
    ORDER BY rowid`);
	const liveKeys = db.prepare(`SELECT key FROM prompts WHERE rowid IN (SELECT rowid FROM prompts
    INDEXED BY prompts_by_id WHERE user = ? EXCEPT SELECT rowid ${ended} AND user = ?)
    ORDER BY rowid`);
	const find = reader(`SELECT ${COLUMNS} FROM prompts WHERE user = ? AND prompt_id = ?
    ORDER BY rowid DESC LIMIT 1`);
	const findByJob = reader(`SELECT ${COLUMNS} FROM prompts WHERE user = ? AND job_id = ?`);
	const hasJob = db.prepare(`SELECT 1 FROM prompts WHERE job_id = ? LIMIT 1`);
	const get = reader(`SELECT ${COLUMNS} FROM prompts WHERE key = ?`);
	const entry = db.prepare(`SELECT entry_json AS entryJson FROM prompts WHERE key = ? AND state = 'done'`);
	const highest = db.prepare(`SELECT coalesce(max(abs(number)), -1) AS highest FROM prompts
    WHERE abs(number) <= ${HIGHEST_COUNTED}`);
	return {
		live: async (user) => user === void 0 ? live.all() : liveOf.all(user, user),
		liveKeys: async (user) => liveKeys.all(user, user).map(({ key }) => key),
		find: async (user, promptId) => find.get(user, promptId),
		findByJob: async (user, jobId) => findByJob.get(user, jobId),
		hasJob: async (jobId) => hasJob.get(jobId) !== void 0,
		get: async (key) => get.get(key),
		entries: async (keys) => keys.map((key) => entry.get(key)?.entryJson ?? null),
		highestNumber: async () => highest.get().highest
	};
}
/** The functions for done prompts: their end, and the history of their user. */
function historyStore({ db, writer, reader, dropReplaced }) {
	const done = `FROM prompts WHERE user = ? AND state = 'done'`;
	const newest = reader(`SELECT ${COLUMNS} ${done} ORDER BY done_seq DESC LIMIT ?`);
	const page = reader(`SELECT ${COLUMNS} ${done} ORDER BY done_seq LIMIT ? OFFSET ?`);
	const sql = historyStatements(db, done);
	const outlines = createOutlines(db);
	/** Invalidates the outlines after a failed write, because they may have been read with it. */
	const write = (written) => written.catch((error) => {
		outlines.invalidate();
		throw error;
	});
	return {
		async finish(key, { shortened, ...outcome }, durability) {
			const { graphJson = null, extraDataJson = null } = shortened ?? {};
			const values = {
				key,
				...NO_END,
				...outcome,
				graphJson,
				extraDataJson
			};
			await write(writer.writeOne(() => void sql.finish.run(values), durability));
			if (shortened) await dropReplaced(key);
		},
		async history(user, { maxItems, offset }) {
			if (maxItems !== void 0 && maxItems <= 0) return [];
			if (maxItems !== void 0 && (offset === void 0 || offset < 0)) return newest.all(user, maxItems).toReversed();
			return page.all(user, maxItems ?? -1, Math.max(0, offset ?? 0));
		},
		outlines: outlines.of,
		deleteHistory: (user, promptIds) => write(writer.write(() => {
			promptIds.forEach((id) => sql.deleteDone.run(user, id));
			outlines.invalidate(user);
		})),
		clearHistory: (user) => write(writer.write(() => {
			sql.clearDone.run(user);
			outlines.invalidate(user);
		})),
		pruneHistory: ({ count, bytes }) => write(writer.write(() => {
			for (const { user } of sql.overLimits.all(count, bytes)) {
				sql.prune.run({
					user,
					count,
					bytes
				});
				outlines.invalidate(user);
			}
		}))
	};
}
function historyStatements(db, done) {
	return {
		finish: db.prepare(`UPDATE prompts SET state = 'done', ${SET_END},
      graph_json = coalesce(:graphJson, graph_json),
      extra_data_json = coalesce(:extraDataJson, extra_data_json),
      stored_bytes = length(CAST(:entryJson AS BLOB)) + coalesce(length(:nodeTimesJson), 0)
        + length(CAST(coalesce(:graphJson, graph_json) AS BLOB))
        + length(CAST(coalesce(:extraDataJson, extra_data_json) AS BLOB))
        + (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM long_texts WHERE owner = :key
          AND '@' || name IN (coalesce(:graphJson, graph_json),
            coalesce(:extraDataJson, extra_data_json))),
      done_seq = (SELECT coalesce(max(done_seq), 0) + 1 FROM prompts AS all_of
        WHERE all_of.state = 'done' AND all_of.user = prompts.user) WHERE key = :key`),
		deleteDone: db.prepare(`DELETE ${done} AND prompt_id = ?`),
		clearDone: db.prepare(`DELETE ${done}`),
		overLimits: db.prepare(`SELECT user FROM prompts WHERE state = 'done'
      GROUP BY user HAVING count(*) > ? OR sum(stored_bytes) > ?`),
		prune: db.prepare(`DELETE FROM prompts WHERE user = :user AND state = 'done' AND done_seq <=
      (SELECT max(done_seq) FROM (SELECT done_seq,
          row_number() OVER newest AS place, sum(stored_bytes) OVER newest AS total
        FROM prompts WHERE user = :user AND state = 'done' WINDOW newest AS (ORDER BY done_seq DESC))
        WHERE place > :count OR (place > 1 AND total > :bytes))`)
	};
}
function createOutlines(db) {
	const after = db.prepare(`SELECT ${SQL.select(OUTLINE_NAMES)}, stored_bytes AS storedBytes
    FROM prompts INDEXED BY prompts_done WHERE user = ? AND state = 'done' AND done_seq > ?
    ORDER BY done_seq`);
	const newest = db.prepare(`SELECT coalesce(max(done_seq), 0) AS last FROM prompts
    INDEXED BY prompts_done WHERE user = ? AND state = 'done'`);
	return createOutlineCache((user, mark) => {
		const outlines = after.all(user, mark?.last ?? 0);
		const { last } = newest.get(user);
		return {
			mark: { last },
			isWhole: mark === void 0,
			outlines
		};
	});
}
// src/ledger/sqlite/schema.ts
/** Never edit a released step. Each step changes the schema to the next version. */
const MIGRATIONS = [
	`
  CREATE TABLE prompts (
    key TEXT PRIMARY KEY, user TEXT NOT NULL, prompt_id TEXT NOT NULL, job_id TEXT,
    number REAL NOT NULL, client_id TEXT, created_at_ms INTEGER NOT NULL,
    graph_json TEXT NOT NULL, extra_data_json TEXT NOT NULL, targets_json TEXT NOT NULL,
    state TEXT NOT NULL, entry_json TEXT, status_word TEXT,
    started_at_ms INTEGER, ended_at_ms INTEGER, done_seq INTEGER
  ) STRICT;
  CREATE INDEX prompts_by_id ON prompts (user, prompt_id);
  CREATE INDEX prompts_by_job ON prompts (user, job_id);
  CREATE INDEX prompts_live ON prompts (created_at_ms) WHERE state <> 'done';
  CREATE INDEX prompts_done ON prompts (user, done_seq) WHERE state = 'done';

  CREATE TABLE files (
    user TEXT NOT NULL, type TEXT NOT NULL, subfolder TEXT NOT NULL, filename TEXT NOT NULL,
    asset_id TEXT NOT NULL, hash TEXT, size_bytes INTEGER NOT NULL, content_type TEXT NOT NULL,
    modified_at_ms INTEGER NOT NULL,
    PRIMARY KEY (user, type, subfolder, filename)
  ) STRICT;
  CREATE INDEX files_by_asset ON files (user, asset_id);

  CREATE TABLE jobs (
    id TEXT PRIMARY KEY, user TEXT NOT NULL, status TEXT NOT NULL, turn REAL NOT NULL,
    created_at_ms INTEGER NOT NULL, started_at_ms INTEGER, completed_at_ms INTEGER,
    expires_at_ms INTEGER NOT NULL, workflow_json TEXT NOT NULL, provenance_json TEXT,
    metadata_json TEXT, outputs_json TEXT NOT NULL, error_json TEXT, extras_json TEXT
  ) STRICT;
  CREATE INDEX jobs_by_user ON jobs (user, created_at_ms);
  CREATE INDEX jobs_by_expiry ON jobs (expires_at_ms);
  CREATE INDEX jobs_unfinished ON jobs (turn) WHERE status IN ('queued', 'running', 'canceling');

  CREATE TABLE assets (
    id TEXT PRIMARY KEY, user TEXT NOT NULL, hash TEXT NOT NULL, size_bytes INTEGER NOT NULL,
    content_type TEXT NOT NULL, file_path TEXT NOT NULL, tags_json TEXT,
    created_at_ms INTEGER NOT NULL, expires_at_ms INTEGER, job_id TEXT
  ) STRICT;
  CREATE INDEX assets_by_hash ON assets (hash, user);
  CREATE INDEX assets_by_path ON assets (user, file_path);
  CREATE INDEX assets_by_job ON assets (job_id) WHERE job_id IS NOT NULL;
  CREATE INDEX assets_by_expiry ON assets (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
  CREATE INDEX assets_by_age ON assets (created_at_ms);

  CREATE TABLE keys (
    user TEXT NOT NULL, key TEXT NOT NULL, claimed_at_ms INTEGER NOT NULL, job_id TEXT,
    PRIMARY KEY (user, key)
  ) STRICT;
  CREATE INDEX keys_by_age ON keys (claimed_at_ms);

  CREATE TABLE settings (
    user TEXT NOT NULL, id TEXT NOT NULL, value_json TEXT NOT NULL, PRIMARY KEY (user, id)
  ) STRICT;
  `,
	`
  DROP INDEX jobs_by_user;
  CREATE INDEX jobs_by_user ON jobs (user);
  DROP INDEX prompts_live;
  CREATE INDEX prompts_live ON prompts (user) WHERE state <> 'done';
  `,
	`
  DROP INDEX prompts_done;
  CREATE INDEX prompts_done ON prompts (user, done_seq, key, prompt_id, status_word, created_at_ms,
    started_at_ms, ended_at_ms) WHERE state = 'done';
  `,
	`
  ALTER TABLE prompts ADD COLUMN intent_json TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE prompts ADD COLUMN cancel_asked_at_ms INTEGER;
  `,
	`
  CREATE TABLE model_replays (
    scope TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, request_id TEXT NOT NULL,
    state TEXT NOT NULL, at_ms INTEGER NOT NULL, status INTEGER, content_type TEXT,
    body_bytes INTEGER NOT NULL DEFAULT 0, body BLOB, PRIMARY KEY (scope, key)
  ) STRICT;
  CREATE INDEX model_replays_by_age ON model_replays (at_ms);
  CREATE INDEX model_replays_recorded ON model_replays (body_bytes) WHERE state = 'recorded';
  CREATE TABLE model_calls (
    request_id TEXT PRIMARY KEY, workspace TEXT NOT NULL, user TEXT NOT NULL, model TEXT NOT NULL,
    started_at_ms INTEGER NOT NULL, ended_at_ms INTEGER NOT NULL, status INTEGER NOT NULL,
    error_type TEXT, charged_cents INTEGER NOT NULL, replayed INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX model_calls_charged ON model_calls (workspace, charged_cents)
    WHERE charged_cents > 0;
  CREATE INDEX model_calls_by_age ON model_calls (ended_at_ms);
  `,
	`
  CREATE TABLE v1_calls (
    user TEXT NOT NULL, agent TEXT NOT NULL, client_id TEXT NOT NULL, route TEXT NOT NULL,
    count INTEGER NOT NULL, first_at_ms INTEGER NOT NULL, last_at_ms INTEGER NOT NULL,
    PRIMARY KEY (user, agent, client_id, route)
  ) STRICT;
  `,
	`
  DROP INDEX prompts_by_job;
  CREATE INDEX prompts_by_job ON prompts (user, job_id) WHERE job_id IS NOT NULL;
  `,
	`
  CREATE INDEX prompts_by_job_alone ON prompts (job_id) WHERE job_id IS NOT NULL;
  `,
	`
  DROP INDEX prompts_live;
  DROP INDEX prompts_by_job;
  `,
	`
  CREATE TABLE identity (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  INSERT INTO identity VALUES ('id', lower(hex(randomblob(16))));
  INSERT INTO identity SELECT 'predates_folders', user_version FROM pragma_user_version
    WHERE user_version > 0;
  `,
	`
  ALTER TABLE prompts ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE prompts SET stored_bytes = length(CAST(entry_json AS BLOB))
    + length(CAST(graph_json AS BLOB)) + length(CAST(extra_data_json AS BLOB))
    WHERE state = 'done' AND entry_json IS NOT NULL;
  DROP INDEX prompts_done;
  CREATE INDEX prompts_done ON prompts (user, done_seq, key, prompt_id, status_word, created_at_ms,
    started_at_ms, ended_at_ms, stored_bytes) WHERE state = 'done';
  `,
	`
  CREATE TABLE long_texts (
    owner TEXT NOT NULL, name TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (owner, name, part)
  ) STRICT;
  CREATE TRIGGER prompts_long_texts AFTER DELETE ON prompts
    BEGIN DELETE FROM long_texts WHERE owner = old.key; END;
  CREATE TRIGGER jobs_long_texts AFTER DELETE ON jobs
    BEGIN DELETE FROM long_texts WHERE owner = 'job ' || old.id; END;
  `,
	`
  CREATE TABLE asset_keys (
    user TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL, asset_id TEXT NOT NULL,
    created_new INTEGER NOT NULL, claimed_at_ms INTEGER NOT NULL, PRIMARY KEY (user, key)
  ) STRICT;
  CREATE INDEX asset_keys_by_age ON asset_keys (claimed_at_ms);
  `,
	`
  CREATE INDEX files_by_name ON files (user, filename, type, modified_at_ms);
  `,
	`
  DROP INDEX jobs_unfinished;
  DROP INDEX jobs_by_expiry;
  CREATE INDEX jobs_by_expiry ON jobs (expires_at_ms)
    WHERE status NOT IN ('queued', 'running', 'canceling');
  `
];
// src/ledger/sqlite/log-sync.ts
/**
* Syncs the log (`-wal`) of the database after commits. `PRAGMA synchronous` cannot do this: it cannot change within a
* transaction, and when a transaction begins it is unknown if one of its writes needs a sync. SQLite holds no locks on
* the log, so closing it here releases none.
*/
function createLogSync(databasePath, { clock = systemClock, syncFile = fdatasync } = {}) {
	let file;
	let files = [];
	let running;
	let next;
	let cancelTimer;
	function begin() {
		cancelTimer?.();
		cancelTimer = void 0;
		const pending = files.splice(0).flatMap((isOnDisk) => isOnDisk() ?? []);
		running = (pending.length === 0 ? syncLog() : Promise.all(pending).then(syncLog)).finally(() => running = void 0);
		return running;
	}
	function syncLog() {
		return new Promise((resolve, reject) => {
			file ??= openLog(databasePath);
			syncFile(file, (error) => error ? reject(error) : resolve());
		});
	}
	/** A running sync may have begun before the last commit: then the next sync is waited for. */
	function sync() {
		if (!running) return begin();
		next ??= running.catch(ignoreError).then(() => {
			next = void 0;
			return begin();
		});
		return next;
	}
	return {
		sync,
		syncSoon() {
			cancelTimer ??= clock.callAfter(100, () => void sync().catch(ignoreError));
		},
		waitFor: (more) => void files.push(more),
		async close() {
			cancelTimer?.();
			const pending = files.splice(0).flatMap((isOnDisk) => isOnDisk() ?? []);
			await Promise.allSettled(pending);
			await (next ?? running)?.catch(ignoreError);
			if (file !== void 0) closeSync(file);
			file = void 0;
		}
	};
}
function ignoreError() {}
/** Opens the log and syncs its folder, because SQLite creates the log again after each orderly end. */
function openLog(databasePath) {
	const file = openSync(`${databasePath}-wal`, constants$1.O_RDWR);
	try {
		syncPathNow(dirname(databasePath));
		return file;
	} catch (error) {
		closeSync(file);
		throw error;
	}
}
// src/ledger/sqlite/writer.ts
/** Transient writes are committed after this time if no other write comes. */
const TRANSIENT_MS = 20;
/**
* Group commit: the writes of one turn of the event loop share a transaction and at most one fsync. A transient write
* is committed with the next write of another durability, never after it. When its transaction fails, it is applied
* again at the beginning of the next one. A database in memory has no `log`.
*/
function createWriter(db, log) {
	const sql = {
		begin: db.prepare("BEGIN IMMEDIATE"),
		commit: db.prepare("COMMIT")
	};
	let batch = [];
	/** The transient writes of a failed transaction, which the next one applies again. */
	let retried = [];
	const waiters = [];
	let isOpen = false;
	let immediate;
	let timer;
	function begin() {
		if (isOpen) return;
		sql.begin.run();
		isOpen = true;
		applyRetried();
	}
	/** Drops a row that SQLite refuses. A full disk ends the transaction: then all of them wait for the next one. */
	function applyRetried() {
		for (let write = retried.shift(); write; write = retried.shift()) {
			batch.push(write);
			try {
				write.apply();
			} catch (cause) {
				rejectIfRolledBack(cause);
				if (!isOpen) throw cause;
			}
		}
	}
	function scheduleFlush(durability) {
		if (durability === "transient") timer ??= setTimeout(flush, TRANSIENT_MS);
		else immediate ??= setImmediate(flush);
	}
	function takeBatch() {
		clearImmediate(immediate);
		clearTimeout(timer);
		immediate = void 0;
		timer = void 0;
		isOpen = false;
		const taken = batch;
		batch = [];
		return taken;
	}
	function flush() {
		if (!isOpen) return;
		const waiting = takeBatch();
		try {
			sql.commit.run();
		} catch (cause) {
			rollBack(db);
			return failBatch(waiting, cause);
		}
		settleCommitted(waiting);
	}
	function failBatch(writes, cause) {
		retried = [...writes.filter(({ durability }) => durability === "transient"), ...retried];
		rejectAll([...writes, ...waiters.splice(0)], cause);
	}
	function settleCommitted(writes) {
		for (const { settle } of waiters.splice(0)) settle();
		for (const { files } of writes) if (files) log?.waitFor(files);
		const synced = [];
		for (const write of writes) if (log && write.durability === "fsync") synced.push(write);
		else write.settle();
		if (synced.length > 0) settleSynced(synced);
		else if (writes.some(({ durability }) => durability === "soon")) log?.syncSoon();
	}
	async function settleSynced(writes) {
		try {
			await log?.sync();
		} catch (cause) {
			return rejectAll(writes, cause);
		}
		for (const { settle } of writes) settle();
	}
	/** A refused row fails only its own write. A full disk ends the transaction, and fails all writes in it. */
	function rejectIfRolledBack(cause) {
		if (db.isOpen && !db.isTransaction) failBatch(takeBatch(), cause);
	}
	function undo(cause) {
		if (db.isOpen && db.isTransaction) db.exec("ROLLBACK TO one; RELEASE one");
		rejectIfRolledBack(cause);
	}
	function enqueueWrite(apply, { durability, files, onFailure }) {
		return new Promise((resolve, reject) => {
			try {
				begin();
				scheduleFlush(durability);
				const value = apply();
				batch.push({
					durability,
					files,
					apply,
					settle: () => resolve(value),
					reject
				});
				if (durability === "transient") resolve(value);
			} catch (cause) {
				rejectAll([{ reject }], cause);
				onFailure(cause);
			}
		});
	}
	return {
		/** Commits the pending writes. */
		flush,
		/** Resolves when all writes that are applied now are committed. */
		async committed() {
			if (!isOpen && retried.length === 0) return;
			await new Promise((settle, reject) => void waiters.push({
				settle,
				reject
			}));
		},
		/** Like `write`, for a single statement, which SQLite itself applies wholly or not at all. */
		writeOne: (apply, durability = "fsync", files) => enqueueWrite(apply, {
			durability,
			files,
			onFailure: rejectIfRolledBack
		}),
		/** Applies a write at once, so that later reads see it. Resolves when it has the requested durability. */
		write: (apply, durability = "fsync") => enqueueWrite(() => inSavepoint(apply), {
			durability,
			files: void 0,
			onFailure: undo
		})
	};
	function inSavepoint(apply) {
		db.exec("SAVEPOINT one");
		const value = apply();
		db.exec("RELEASE one");
		return value;
	}
}
/** Rolls back, unless SQLite has already done so. The caller rejects the pending writes. */
function rollBack(db) {
	try {
		if (db.isTransaction) db.exec("ROLLBACK");
	} catch {}
}
function rejectAll(waiting, cause) {
	const reason = cause instanceof Error ? cause.message : String(cause);
	const error = new Error(`the ledger could not be written: ${reason}`, { cause });
	for (const { reject } of waiting) reject(error);
}
// src/ledger/sqlite/sqlite-ledger.ts
const IN_MEMORY = ":memory:";
/** How long a write waits for another program that has locked the file, for example a backup or a shell. */
const BUSY_TIMEOUT_MS = 1e3;
const SQLITE_BUSY = 5;
/** The codes SQLITE_CORRUPT and SQLITE_NOTADB. */
const DAMAGED = [11, 26];
/**
* Opens the ledger in one SQLite file, which one process at a time may use. Throws an error with a sentence for the
* operator when the file is in use, damaged, or of a newer version. Never replaces an existing file.
*/
function openSqliteLedger(options) {
	const { path } = options;
	const opened = [];
	const closeAll = () => opened.splice(0).forEach((db) => db.close());
	try {
		if (path !== IN_MEMORY) {
			mkdirSync(dirname(path), {
				recursive: true,
				mode: 448
			});
			opened.push(lockFile(path));
			createPrivate(path);
		}
		const db = refuseNulTexts(new DatabaseSync(path, {
			timeout: BUSY_TIMEOUT_MS,
			enableForeignKeyConstraints: false
		}));
		opened.unshift(db);
		prepare(db);
		return createLedger(db, path, closeAll);
	} catch (cause) {
		closeAll();
		throw new (isDamage(cause) ? DamagedLedger : Error)(`the ledger ${path} ${failureReason(cause)}`, { cause });
	}
}
/** The file exists and cannot be read as a database. */
var DamagedLedger = class extends Error {};
/** Messages of damage. The package sets no code when a statement fails while its rows are read. */
const DAMAGE = /^(database disk image is malformed|file is not a database)$/;
/** True for an error with which SQLite reports a damaged file. */
function isDamage(cause) {
	const { errcode, message = "" } = cause;
	return DAMAGED.includes(errcode) || DAMAGE.test(message);
}
function createLedger(db, path, closeAll) {
	const log = path === IN_MEMORY ? void 0 : createLogSync(path);
	const writer = createWriter(db, log);
	longTexts(db, writer).dropOrphans();
	const lists = createFileListCache();
	return {
		identity: sqliteIdentity(db, writer),
		prompts: promptStore(db, writer),
		files: fileStore(db, writer, lists),
		jobs: jobStore(db, writer),
		assets: assetStore(db, writer, lists),
		keys: keyStore(db, writer),
		settings: settingStore(db, writer),
		replays: replayStore(db, writer),
		modelCalls: modelCallStore(db, writer),
		calls: callCountStore(db, writer),
		committed: () => writer.committed(),
		synced: async () => await log?.sync(),
		async close() {
			if (!db.isOpen) return;
			writer.flush();
			await log?.close();
			if (!db.isOpen) return;
			writer.flush();
			checkpoint(db);
			closeAll();
		}
	};
}
/**
* Moves the log into the main file, so that this file alone can be copied. Closing the database does not do this,
* because the package keeps the connection until its prepared statements are garbage collected.
*/
function checkpoint(db) {
	try {
		db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
	} catch {}
}
/** Another process holds the lock. */
var LedgerInUse = class extends Error {};
/** Locks the database against other processes until the returned function is called. */
function lockDatabase(path) {
	try {
		const lock = lockFile(path);
		return () => lock.close();
	} catch (cause) {
		throw new Error(`the ledger ${path} ${failureReason(cause)}`, { cause });
	}
}
/**
* Locks the database for this process; closing the result releases the lock. The operating system releases it when
* the process ends, also after `kill -9`. Throws `LedgerInUse` when another process has the lock.
*/
function lockFile(path) {
	const lockPath = `${path}.lock`;
	createPrivate(lockPath);
	const lock = new DatabaseSync(lockPath);
	try {
		lock.exec("BEGIN EXCLUSIVE");
		return lock;
	} catch (cause) {
		lock.close();
		throw cause.errcode === SQLITE_BUSY ? new LedgerInUse("the lock is taken", { cause }) : cause;
	}
}
/**
* Creates the file with mode 0600. SQLite would create it, and then its -wal file, with wider permissions. An
* existing file is not opened, because closing it would release the locks that this process holds on it.
*/
function createPrivate(path) {
	try {
		writeFileSync(path, "", {
			flag: "wx",
			mode: 384
		});
	} catch (error) {
		if (error.code !== "EEXIST") throw error;
		chmodSync(path, 384);
	}
}
function prepare(db) {
	db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
	const { quick_check: verdict } = db.prepare("PRAGMA quick_check(1)").get();
	if (verdict !== "ok") throw Object.assign(new Error(verdict), { errcode: DAMAGED[0] });
	migrate(db);
	db.exec("PRAGMA synchronous = NORMAL");
}
/** Updates the schema in one transaction, so that after a kill the earlier schema is complete. */
function migrate(db) {
	const { user_version: version } = db.prepare("PRAGMA user_version").get();
	if (version > MIGRATIONS.length) throw new Error(`it was written by a newer Holdover (schema ${version})`);
	if (version < MIGRATIONS.length) {
		db.exec("BEGIN IMMEDIATE");
		for (const step of MIGRATIONS.slice(version)) db.exec(step);
		db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
		db.exec("COMMIT");
	}
	addMissingColumns(db, "prompts", PROMPT_COLUMNS);
	addMissingColumns(db, "jobs", JOB_COLUMNS);
}
/** The rest of the message that begins with "the ledger <path>". */
function failureReason(cause) {
	if (cause instanceof LedgerInUse) return "is in use by another Holdover: stop it, or use another --data-dir";
	const reason = (cause instanceof Error ? cause.message : String(cause)).split("\n", 1)[0];
	if (!isDamage(cause)) return `cannot be opened: ${reason}`;
	return `is damaged (${reason}): "holdover check" says how, put a backup back with "holdover restore", or start once with --start-anew, which moves it and all files aside and removes nothing`;
}
/** A text contains a NUL character, at which the database would cut it. */
var NulInText = class extends Error {
	name = "NulInText";
};
/**
* Makes the statements of the database refuse texts with a NUL character. The package passes each text to SQLite only
* up to the first NUL, so a write to `a\0b` would replace `a`.
* @internal
*/
function refuseNulTexts(db) {
	const prepare = db.prepare.bind(db);
	replace(db, "prepare", (...given) => {
		const statement = prepare(...given);
		for (const name of [
			"run",
			"get",
			"all",
			"iterate"
		]) {
			const method = statement[name];
			replace(statement, name, (...parameters) => {
				refuseNul(parameters);
				return method.apply(statement, parameters);
			});
		}
		return statement;
	});
	return db;
}
/** Replaces a method. The methods of the package cannot be assigned to. */
function replace(object, name, value) {
	Object.defineProperty(object, name, { value });
}
function refuseNul(parameters) {
	for (const value of parameters) if (typeof value === "string" ? value.includes("\0") : hasNulMember(value)) throw new NulInText("a text with a NUL character cannot be stored or searched for");
}
/** True for an object of named parameters with a text that contains a NUL character. */
function hasNulMember(value) {
	if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return false;
	return Object.values(value).some((member) => typeof member === "string" && member.includes("\0"));
}
/** The identity in the table `identity`, which has one row for each name. */
function sqliteIdentity(db, writer) {
	const select = db.prepare("SELECT value FROM identity WHERE name = ?");
	const insert = db.prepare("INSERT OR IGNORE INTO identity (name, value) VALUES (?, ?)");
	const valueOf = (name) => select.get(name)?.value;
	return {
		id: valueOf("id") ?? "",
		storedIn: "folder",
		predatesFolders: valueOf("predates_folders") !== void 0,
		folder: async () => valueOf("folder"),
		tie: (folderId) => writer.write(() => {
			insert.run("folder", folderId);
			return valueOf("folder") ?? folderId;
		})
	};
}
export { linkOrRenameNew as A, idsOfFolder as C, makeAsideFolder as D, lacksDatabase as E, setAside as O, LedgerLacksFiles as S, writeFileAtomically as T, placeSecret as _, lockFile as a, secretIn as b, longTexts as c, UNFINISHED_RESTORE as d, bucketOf as f, placeBucketOf as g, openDataDir as h, lockDatabase as i, moveIntoPlace as j, setWalAside as k, readCallCounts as l, makeDataDir as m, LedgerInUse as n, openSqliteLedger as o, databasePath as p, isDamage as r, createWriter as s, DamagedLedger as t, sqlColumns as u, refuseOtherPlace as v, newLedgerText$1 as w, UNFINISHED_COPY as x, refuseUnfinishedRestore as y };
