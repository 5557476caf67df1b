import { n as addServerOptions } from "./flags-x94JVf1p.js";
import { n as bucketUrl, r as filesSource, t as FILES_FLAGS } from "./files-IQBw9w4W.js";
import { f as InvalidSetting, r as redisNodes, t as ledgerSource, u as silentLogger } from "./ledger-B4DYGOuk.js";
import { _ as placeSecret, b as secretIn, c as longTexts, f as bucketOf, g as placeBucketOf, i as lockDatabase, m as makeDataDir, o as openSqliteLedger, p as databasePath, s as createWriter, u as sqlColumns, x as UNFINISHED_COPY } from "./sqlite-ledger-CF5LsL03.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { r as withOpen, t as runCommand } from "./shared-options-ihEXDHvk.js";
import { t as withFiles } from "./with-files-BMOWCFeK.js";
import { a as END_NAMES } from "./outline-cache-BLjCgPfz.js";
import { n as recordId, t as RECORD_KINDS } from "./records-BuFDbUDU.js";
import { i as ledgerIdIn, n as copyDatabase } from "./inspect-0NrKY5YP.js";
import { r as syncPathNow } from "./durability-BlJWQqTv.js";
import { t as openBucket } from "./open-bucket-D1Sj5Gaz.js";
import { n as finishCopy, t as copyFiles } from "./copy-files-0TPfu0jF.js";
import { i as removeCopying, n as placeInBucket, r as placeInFolder } from "./places-D6OXpE2A.js";
import { t as createProgress } from "./progress-or88hgGp.js";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { createHash, randomBytes } from "node:crypto";
import { Command } from "commander";
import { DatabaseSync } from "@photostructure/sqlite";
// src/cli/migrate/copy-records.ts
const KINDS = Object.keys(RECORD_KINDS);
/** Returns the number of records in a ledger. */
async function countRecords({ records }) {
	let rows = 0;
	for (const kind of KINDS) for await (const _row of records.read(kind)) rows += 1;
	return rows;
}
/** Copies every record that the target does not have. Calls `onRow` after each record of the source. */
async function copyRecords(from, to, onRow) {
	for (const kind of KINDS) {
		const copied = await idsOf(to, kind);
		for await (const row of from.records.read(kind)) {
			if (!copied.has(recordId(kind, row))) await writeRow(to, kind, row);
			reached("migrate-row");
			onRow(0);
		}
	}
}
/** Returns one sentence for each kind of records that differs between the ledgers; none when they are equal. */
async function differences(from, to) {
	const found = [];
	for (const kind of KINDS) {
		const [source, target] = [await tallyOf(from, kind), await tallyOf(to, kind)];
		if (source.rows !== target.rows) found.push(`${kind}: ${source.rows} records in the source, ${target.rows} in the target`);
		else if (source.hash !== target.hash) found.push(`${kind}: the records are not the same`);
	}
	return found;
}
async function idsOf({ records }, kind) {
	const ids = /* @__PURE__ */ new Set();
	for await (const row of records.read(kind)) if (isWhole(kind, row)) ids.add(recordId(kind, row));
	return ids;
}
/**
* Hashes the rows of each user in their order, then the users by id: in a cluster the rows of different users have no
* order.
*/
async function tallyOf({ records }, kind) {
	const ofUsers = /* @__PURE__ */ new Map();
	let rows = 0;
	for await (const row of records.read(kind)) {
		const user = "user" in row ? row.user : "";
		const hash = ofUsers.get(user) ?? createHash("sha256");
		ofUsers.set(user, hash.update(textOf(kind, row)).update("\n"));
		rows += 1;
	}
	const whole = createHash("sha256");
	for (const user of [...ofUsers.keys()].toSorted()) whole.update(ofUsers.get(user)?.digest() ?? "");
	return {
		rows,
		hash: whole.digest("hex")
	};
}
/** Returns a row as text, which is equal for SQLite and Redis. */
function textOf(kind, row) {
	const values = row;
	return JSON.stringify(Object.keys(RECORD_KINDS[kind].columns).map((name) => plain(values[name] ?? null)));
}
function plain(value) {
	return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;
}
const WRITERS = {
	settings: ({ ledger }, { user, id, valueJson }) => ledger.settings.merge(user, { [id]: valueJson }),
	calls: ({ ledger }, row) => ledger.calls.add([row]),
	modelCalls: ({ ledger }, row) => ledger.modelCalls.insert(row),
	replays: ({ ledger }, row) => writeReplay(ledger, row),
	assets: ({ ledger }, row) => ledger.assets.insert(row),
	assetKeys: ({ records }, row) => records.writeKey("assetKeys", row),
	files: ({ ledger }, row) => ledger.files.claim(row),
	jobs: ({ ledger }, row) => ledger.jobs.insert(row),
	jobKeys: ({ records }, row) => records.writeKey("jobKeys", row),
	prompts: ({ ledger }, row) => writePrompt(ledger, row)
};
async function writeRow(to, kind, row) {
	await WRITERS[kind](to, row);
}
/**
* Returns false for a row that an interrupted copy may not have finished: a reserved replay, or a prompt that is not
* done.
*/
function isWhole(kind, row) {
	if (kind === "prompts") return row.state === "done";
	return kind !== "replays" || row.state !== "reserved";
}
async function writeReplay({ replays }, row) {
	const { state, atMs, status, contentType, body } = row;
	await replays.reserve(row, 0);
	if (state === "consumed") await replays.consume(row, atMs);
	if (state !== "recorded" || status === null || contentType === null || body === null) return;
	await replays.record(row, {
		atMs,
		status,
		contentType,
		body
	});
}
/** Writes a prompt. A done prompt is inserted and then finished, because history is in the order of ends. */
async function writePrompt({ prompts }, row) {
	const { entryJson, statusWord, startedAtMs, endedAtMs } = row;
	const isThere = await prompts.get(row.key) !== void 0;
	if (row.state !== "done" || entryJson === null) return isThere ? void 0 : prompts.insert(row);
	const unfinished = {
		...row,
		state: "live",
		entryJson: null,
		statusWord: null
	};
	if (!isThere) await prompts.insert(unfinished);
	const end = Object.fromEntries(END_NAMES.filter((name) => row[name] !== null).map((name) => [name, row[name]]));
	await prompts.finish(row.key, {
		...end,
		entryJson,
		statusWord: statusWord ?? "",
		startedAtMs,
		endedAtMs: endedAtMs ?? row.createdAtMs
	});
}
// src/cli/migrate/sqlite-records.ts
const BUSY_TIMEOUT_MS = 1e4;
/** The name of the source's id in the table `identity`. */
const SOURCE = "migrated_from";
/** The tables and order of the kinds that have an order. Other kinds are read by id. */
const ORDERED = {
	assets: ["assets ORDER BY rowid"],
	files: ["files ORDER BY rowid"],
	jobs: ["jobs ORDER BY rowid"],
	prompts: [`prompts WHERE state = 'done' ORDER BY user, done_seq`, `prompts WHERE state <> 'done' ORDER BY rowid`]
};
/** The table of each kind. */
const TABLES = {
	settings: "settings",
	calls: "v1_calls",
	modelCalls: "model_calls",
	replays: "model_replays",
	assets: "assets",
	assetKeys: "asset_keys",
	files: "files",
	jobs: "jobs",
	jobKeys: "keys",
	prompts: "prompts"
};
/** Opens a second connection to the database of a ledger. This process must have its lock. */
function openSqliteRecords(path) {
	const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
	const texts = longTexts(db, createWriter(db));
	/** Returns the row with its long texts, which the table `long_texts` has. */
	function whole(kind, row) {
		if (kind === "prompts") {
			const { key } = row;
			return texts.withTexts(key, row, ["graphJson", "extraDataJson"]);
		}
		if (kind !== "jobs") return row;
		const { id } = row;
		return texts.withTexts(`job ${id}`, row, ["workflowJson", "provenanceJson"]);
	}
	return {
		async *read(kind) {
			const sql = sqlColumns(RECORD_KINDS[kind].columns);
			const statement = db.prepare(`SELECT ${sql.select()} FROM ${TABLES[kind]} WHERE rowid = ?`);
			for (const at of rowsOf(db, kind)) {
				const found = statement.get(at);
				if (found) yield whole(kind, { ...sql.row(found) });
			}
		},
		async writeKey(kind, row) {
			const sql = sqlColumns(RECORD_KINDS[kind].columns);
			db.prepare(`INSERT OR IGNORE INTO ${TABLES[kind]} ${sql.insert}`).run(...sql.values(row));
		},
		async source() {
			return db.prepare("SELECT value FROM identity WHERE name = ?").get(SOURCE)?.value;
		},
		async setSource(ledgerId) {
			db.prepare("INSERT OR REPLACE INTO identity VALUES (?, ?)").run(SOURCE, ledgerId);
		},
		release: async () => {},
		close: () => db.close()
	};
}
function rowsOf(db, kind) {
	const ordered = ORDERED[kind];
	if (ordered) return ordered.flatMap((rows) => db.prepare(`SELECT rowid AS at FROM ${rows}`).all()).map(({ at }) => at);
	const { select } = sqlColumns(RECORD_KINDS[kind].columns);
	return db.prepare(`SELECT rowid AS at, ${select()} FROM ${TABLES[kind]}`).all().map((row) => [recordId(kind, row), row.at]).toSorted(([a], [b]) => a < b ? -1 : 1).map(([, at]) => at);
}
// src/cli/migrate/open-sides.ts
/** The name of a database until it is complete. */
const PARTIAL = ".migrating";
/** The name of a copy of the source. The copy is opened, so that not even the schema of the source changes. */
const SNAPSHOT = ".migration-source";
/** Opens the source of a migration. Locks a database; for Redis call `refuseUse`. Throws when there is no database. */
async function openSource(source, dataDir) {
	if (source.kind === "redis") return openRedisSide(source.url, { acceptMigration: false });
	const path = databasePath(dataDir);
	if (!existsSync(path)) throw new Error(`there is no ledger ${path}: nothing can be migrated`);
	const unlock = lockDatabase(path);
	if (ledgerIdIn(path) === void 0) throw new Error(`an older version wrote ${path}: start a server of this version on it once`);
	const snapshot = `${path}${SNAPSHOT}`;
	removeDatabase(snapshot);
	copyDatabase(path, snapshot);
	const side = openSqliteSide(snapshot);
	return {
		...side,
		async close() {
			await side.close();
			removeDatabase(snapshot);
			unlock();
		}
	};
}
/** Opens the target of a migration. Locks a database; for Redis call `refuseUse`. Throws when a database exists. */
async function openTarget(target, dataDir) {
	if (target.kind === "redis") return openRedisTarget(target.url);
	const path = databasePath(dataDir);
	if (existsSync(path)) throw new Error(`--to is not empty: move ${path} away (with its -wal) if it is an old one`);
	const unlock = lockDatabase(path);
	const partial = `${path}${PARTIAL}`;
	const side = openSqliteSide(partial);
	return {
		...side,
		isUnused: true,
		async takeSecret(secret) {
			if (secret) placeSecret(dataDir, secret);
		},
		async place() {
			await side.close();
			requireNoLog(partial);
			renameSync(partial, path);
			removeDatabase(partial);
			syncPathNow(dataDir);
		},
		async close() {
			await side.close();
			unlock();
		}
	};
}
/** Throws when the log of a closed database is not empty: then the file alone is not the whole database. */
function requireNoLog(path) {
	if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) throw new Error(`${path}-wal is not empty: run "holdover migrate" again`);
}
function openSqliteSide(path) {
	const ledger = openSqliteLedger({ path });
	const records = openSqliteRecords(path);
	let isOpen = true;
	return {
		ledger,
		records,
		identity: ledger.identity,
		refuseUse: async () => {},
		async close() {
			if (!isOpen) return;
			isOpen = false;
			records.close();
			await ledger.close();
			rmSync(`${path}.lock`, { force: true });
		}
	};
}
async function openRedisSide(url, options) {
	const { openSharedRedis } = await import("./open-shared-PHE3AM5a.js");
	const { isUnusedRedis } = await import("./stored-keys-BBFKgPAt.js");
	const { refuseRedisInUse, redisLedgerRecords } = await import("./redis-records-Dix_oV7w.js");
	const redis = await openSharedRedis({
		url,
		log: silentLogger(),
		...options
	});
	return {
		ledger: redis.ledger,
		records: redisLedgerRecords(redis.links),
		identity: redis.identity,
		isUnused: await isUnusedRedis(redis.links),
		refuseUse: () => refuseRedisInUse(redis.links),
		close: () => redis.close()
	};
}
async function openRedisTarget(url) {
	const side = await openRedisSide(url, { acceptMigration: true });
	return {
		...side,
		async takeSecret(secret) {
			if (secret) await side.identity.secret?.(secret);
		},
		place: () => side.records.release()
	};
}
/** Returns the secret of a ledger, from which the ids of users and signed links are derived. */
async function secretOf({ identity }, dataDir) {
	const inFolder = secretIn(dataDir);
	if (identity.secret === void 0) return inFolder;
	return identity.secret(inFolder ?? randomBytes(32));
}
function removeDatabase(path) {
	for (const end of [
		"",
		"-wal",
		"-shm",
		".lock"
	]) rmSync(`${path}${end}`, { force: true });
}
// src/cli/migrate/migrate.ts
/**
* Copies all records of a ledger into another one, and binds the files to that one. Returns the number of records.
* Call it again after an interruption. Throws when the ledgers and files do not belong together.
*/
async function migrate(options) {
	const { dataDir, from, to } = options;
	refuseOtherBucket(options);
	return withFiles(options, async ({ place, recordedBy }) => {
		const files = {
			place,
			recordedBy,
			folderId: await place.readSmall("folder.id")
		};
		return withOpen(await openSource(from, dataDir), async (source) => {
			await source.refuseUse();
			return withOpen(await openTarget(to, dataDir), async (target) => {
				await refuseMismatch({
					source,
					target,
					files
				});
				return await copy({
					source,
					target,
					files
				}, options);
			});
		});
	});
}
/** The files of the ledger stay where they are. */
function refuseOtherBucket({ files, dataDir }) {
	const named = bucketOf(dataDir);
	if (named !== void 0 && (files.kind === "folder" || bucketUrl(files) !== named)) throw new Error(`the files of --data-dir ${dataDir} are in a bucket: give --files ${named}`);
}
async function copy({ source, target, files }, { dataDir, progress }) {
	const secret = await secretOf(source, dataDir);
	await target.records.setSource(source.identity.id);
	const records = await countRecords(source);
	await copyRecords(source, target, progress({ records }));
	const found = await differences(source, target);
	if (found.length > 0) throw new Error(`the copy is not the same as its source: ${found.join("; ")}`);
	await source.refuseUse();
	reached("migrate-verified");
	await target.takeSecret(secret);
	const { place, folderId } = files;
	if (folderId !== void 0) await target.identity.tie(folderId);
	const { id } = target.identity;
	await place.writeSmall("ledger.id", id);
	reached("migrate-placed");
	await target.place();
	return records;
}
/** Throws when ledgers and files do not belong together, or the target has other records. */
async function refuseMismatch({ source, target, files }) {
	const { place, folderId, recordedBy } = files;
	const sourceId = source.identity.id;
	const targetId = target.identity.id;
	if (sourceId === targetId) throw new Error("--from and --to are the same ledger");
	await target.refuseUse();
	const begun = await target.records.source();
	if (begun !== void 0 && begun !== sourceId) throw new Error("--to has records of another ledger: give an empty one");
	if (begun === void 0 && !target.isUnused) throw new Error("--to is not empty: give an empty ledger, or move the old one away");
	if (recordedBy !== void 0 && recordedBy !== sourceId && !(begun === sourceId && recordedBy === targetId)) throw new Error(`${place.name} has files of another ledger than --from`);
	const tied = await source.identity.folder();
	if (tied !== void 0 && tied !== folderId) throw new Error(`--from belongs to another folder than ${place.name}`);
}
// src/cli/migrate/migrate-files.ts
/**
* Copies the files of a ledger from its data folder into a bucket, or back, and verifies them. Returns the number of
* files. Does not change the source. Call it again after an interruption. Throws when the files and the ledger do not
* belong together.
*/
async function migrateFiles(options) {
	const { dataDir, bucket: source } = options;
	const bucket = await openBucket({
		source,
		env: process.env,
		log: silentLogger()
	});
	return withOpen(bucket, async () => withOpen(await openSource(options.ledger, dataDir), (ledger) => copyOf(options, ledger, placesOf(options, bucket))));
}
function placesOf({ dataDir, to }, opened) {
	const folder = placeInFolder(dataDir);
	const bucket = placeInBucket(opened, dataDir);
	return to === "bucket" ? {
		from: folder,
		to: bucket
	} : {
		from: bucket,
		to: folder
	};
}
async function copyOf(options, ledger, places) {
	const { dataDir, progress } = options;
	const { from, to } = places;
	await ledger.refuseUse();
	const folderId = await requireFiles(options, ledger, places);
	makeDataDir(dataDir);
	try {
		const files = await copyFiles({
			from,
			to,
			id: folderId,
			progress
		});
		await ledger.refuseUse();
		await giveTo(options, ledger, {
			to,
			folderId
		});
		return files;
	} finally {
		removeCopying(dataDir);
	}
}
/**
* Gives the files to the ledger. The order matters: servers may use the source until `placeBucketOf`, and the target
* after `finishCopy`.
*/
async function giveTo({ dataDir, bucket, to: kind }, { identity }, { to, folderId }) {
	await to.writeSmall("ledger.id", identity.id);
	await to.writeSmall("folder.id", folderId);
	reached("copy-named");
	placeBucketOf(dataDir, kind === "bucket" ? bucketUrl(bucket) : void 0);
	reached("copy-bound");
	await finishCopy(to);
}
/** Returns the id of the source. Throws when the source does not have all files of the ledger. */
async function requireFiles({ dataDir, bucket, to: kind }, { identity }, { from, to }) {
	const url = bucketUrl(bucket);
	const named = bucketOf(dataDir);
	const isBound = kind === "bucket" ? named === url : named === void 0;
	const isUnfinished = await to.readSmall(UNFINISHED_COPY) !== void 0;
	if (named !== void 0 && named !== url) throw new Error(`the files of --data-dir ${dataDir} are in ${named}`);
	if (kind === "bucket" && isBound && !isUnfinished) throw new Error(`the files of --data-dir ${dataDir} are in ${url} already`);
	if (await from.readSmall("copy-unfinished") !== void 0) throw new Error(`${from.name} has a copy of files that was interrupted`);
	const folderId = await from.readSmall("folder.id");
	if (!(await from.readSmall("ledger.id") === identity.id && folderId === await identity.folder()) || folderId === void 0) throw new Error(`${from.name} does not have the files of this ledger`);
	return folderId;
}
// src/cli/migrate.ts
/**
* `holdover migrate`: copies the records of a ledger into another ledger, or its files to another place. Resolves
* with the exit code.
*/
function migrateCommand(argv) {
	const command = new Command("holdover migrate").description("Copies all records of one ledger into another, empty one, or all files of one ledger from its folder into a bucket or back, and verifies them. Stop all servers and workers first. The source stays as it is; run again, it goes on where it stopped.").option("--from <LEDGER>", "\"sqlite\" in the data directory, or redis://…, which names several nodes of a cluster").option("--to <LEDGER>", "the same; its address may carry a password").option("--from-files <PLACE>", "\"folder\" (the data directory), or s3://BUCKET/PREFIX").option("--to-files <PLACE>", "the same");
	return runCommand(addServerOptions(command, [
		"dataDir",
		"ledger",
		...FILES_FLAGS
	]), argv, run);
}
async function run(command) {
	const settings = command.opts();
	const { from, to, fromFiles, toFiles } = settings;
	const given = (name) => command.getOptionValueSource(name) === "cli";
	if (from !== void 0 && to !== void 0 && fromFiles === void 0 && toFiles === void 0) {
		if (given("ledger")) throw new InvalidSetting(NOT_LEDGER);
		return await runLedger(settings, {
			from,
			to
		});
	}
	if (fromFiles !== void 0 && toFiles !== void 0 && from === void 0 && to === void 0) {
		if (given("files")) throw new InvalidSetting(NOT_FILES);
		return await runFiles(settings, {
			fromFiles,
			toFiles
		});
	}
	throw new InvalidSetting(ONE_PAIR);
}
const ONE_PAIR = "give either '--from' and '--to', or '--from-files' and '--to-files'";
const NOT_LEDGER = "option '--ledger' goes with '--from-files': '--from' and '--to' name ledgers";
const NOT_FILES = "option '--files' goes with '--from': '--from-files' and '--to-files' name places";
async function runLedger(settings, names) {
	const from = ledgerSource(names.from);
	const to = ledgerSource(names.to);
	if (kindOf(from) === kindOf(to)) throw new InvalidSetting("'--from' and '--to' must be two of these: \"sqlite\", redis://… of one Redis, redis://… of a cluster");
	const progress = createProgress();
	const records = await migrate({
		from,
		to,
		dataDir: settings.dataDir,
		files: filesSource(settings, process.env),
		progress: progress.start
	}).finally(progress.stop);
	process.stdout.write(`Copied and verified ${records} records. Start the servers with --ledger ${to.kind === "redis" ? "redis://…" : "sqlite"}.\n`);
	return 0;
}
async function runFiles(settings, { fromFiles, toFiles }) {
	const placeOf = (files) => filesSource({
		...settings,
		files
	}, process.env);
	const [from, to] = [placeOf(fromFiles), placeOf(toFiles)];
	const bucket = to.kind === "bucket" ? to : from;
	if (bucket.kind === "folder" || from.kind === to.kind) throw new InvalidSetting(ONE_OF_EACH);
	const progress = createProgress();
	const files = await migrateFiles({
		dataDir: settings.dataDir,
		ledger: ledgerSource(settings.ledger),
		bucket,
		to: to.kind,
		progress: progress.start
	}).finally(progress.stop);
	const flag = to.kind === "bucket" ? `with --files ${bucketUrl(to)}` : "without --files";
	process.stdout.write(`Copied and verified ${files} files. Start the servers ${flag}.\n`);
	return 0;
}
const ONE_OF_EACH = "one of '--from-files' and '--to-files' must be \"folder\", and one s3://BUCKET/PREFIX";
function kindOf(source) {
	if (source.kind === "sqlite") return source.kind;
	return redisNodes(source.url).length > 1 ? "cluster" : "redis";
}
export { migrateCommand };
