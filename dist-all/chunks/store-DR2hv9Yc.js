import { E as lacksDatabase, O as setAside, S as LedgerLacksFiles, h as openDataDir, i as lockDatabase, k as setWalAside, m as makeDataDir, o as openSqliteLedger, p as databasePath, t as DamagedLedger, w as newLedgerText, y as refuseUnfinishedRestore } from "./sqlite-ledger-SmMeTYVz.js";
import { n as watchFiles, t as openBucketOf } from "./stored-files-LhEgLRqB.js";
import { n as openSpool, t as openSharedSpool } from "./spool-folder-D7Sfa-Em.js";
import { join } from "node:path";
import { closeSync, openSync, readFileSync, statSync } from "node:fs";
import { randomUUID } from "node:crypto";
// src/upstreams/imported-asset.ts
/** The job id of imported files: no job made them, since a v1 server had them before. */
const IMPORTED = "imported";
/**
* Returns the record of an imported file. It never expires, and an imported output counts for v1's
* file counter.
*/
function importedAsset(file) {
	return {
		...file,
		tagsJson: null,
		expiresAtMs: null,
		jobId: IMPORTED
	};
}
/** True when a file was imported from a v1 server. An upload cannot claim this job id. */
function isImported({ jobId }) {
	return jobId === IMPORTED;
}
// src/data-folder/watch.ts
const CHECK_INTERVAL_MS = 1e3;
/** The errors that mean that a file is gone. Others are ignored: a network disk may not answer for a moment. */
const ABSENT_CODES = /* @__PURE__ */ new Set([
	"ENOENT",
	"ENOTDIR",
	"ESTALE"
]);
/** Thrown when the data directory is not the one that this process opened. */
var DataDirLost = class extends Error {};
/**
* Watches the directory, its `folder.id`, and the files in it that this process has open. Keeps the directory open,
* so that the system cannot give its inode number to another one. Set `hasId` to false when the files are in a
* bucket: then there is no `folder.id`.
*/
function watchDataDir(root, { openFiles = [], hasId = true } = {}) {
	const handle = openSync(root, "r");
	const watchedFiles = [root, ...openFiles].map((path) => ({
		path,
		...identityOf(path)
	}));
	const idFile = join(root, "folder.id");
	const openedId = hasId ? readFileSync(idFile, "utf8") : void 0;
	let reportLoss = () => {};
	const lost = new Promise((resolve) => reportLoss = resolve);
	function check() {
		for (const file of watchedFiles) if (!isSame(file)) throw dataDirLost(file.path);
	}
	function checkAll() {
		try {
			check();
			if (hasId && readFileSync(idFile, "utf8") !== openedId) throw dataDirLost(idFile);
		} catch (error) {
			if (error instanceof DataDirLost) reportLoss(error);
			else if (isAbsent(error)) reportLoss(dataDirLost(idFile));
		}
	}
	function dataDirLost(path) {
		return new DataDirLost(`--data-dir ${root} is gone or was replaced while in use (${path} is not the one that was opened): nothing can be kept any more, so this process stops; start it again once the directory is back`);
	}
	const timer = setInterval(checkAll, CHECK_INTERVAL_MS).unref();
	return {
		/** Resolves when the directory is gone or was replaced. Never rejects. */
		lost,
		/**
		* Throws when the directory is gone or was replaced. Call it before a change is acknowledged; it takes
		* microseconds.
		*/
		check() {
			try {
				check();
			} catch (error) {
				reportLoss(error);
				throw error;
			}
		},
		close() {
			clearInterval(timer);
			closeSync(handle);
		}
	};
}
/**
* Reads the identity of a file without opening it: to close a handle of the database would release the locks of
* SQLite.
*/
function identityOf(path) {
	const { dev, ino } = statSync(path);
	return {
		dev,
		ino
	};
}
function isSame({ path, dev, ino }) {
	try {
		const found = statSync(path);
		return found.dev === dev && found.ino === ino;
	} catch (error) {
		return !isAbsent(error);
	}
}
function isAbsent(error) {
	return ABSENT_CODES.has(error.code);
}
// src/app/store.ts
/** Opens the store as configured. Throws an error that says what to change. */
async function openStore(options, log) {
	const { ledger: ledgerSource } = options;
	refuseUnfinishedRestore(options.dataDir);
	const bucket = await openBucketOf(options.files, log);
	try {
		if (ledgerSource.kind === "redis") return await openSharedStore(ledgerSource.url, {
			...options,
			log,
			bucket
		});
		return await openStoreOfOne({
			...options,
			log,
			bucket
		});
	} catch (error) {
		await bucket?.close();
		throw error;
	}
}
async function openStoreOfOne(options) {
	const { ledger, dir } = await openOwnStore(options);
	openSpool(dir.spool);
	const close = () => ledger.close();
	return watched({
		ledger,
		dir,
		links: void 0,
		useWriteTokens: () => {},
		instance: randomUUID(),
		lost: [],
		openFiles: [dir.database],
		close
	}, options.bucket);
}
/** Returns the store of a ledger. Its folder and its files are watched until it is closed. */
function watched(opened, bucket) {
	const { dir, openFiles, lost, ...more } = opened;
	const files = watchFiles(dir, bucket);
	const folder = watchDataDir(dir.root, {
		openFiles,
		hasId: dir.bucketId === void 0
	});
	return {
		...more,
		dir,
		files,
		lost: Promise.race([
			...lost,
			folder.lost,
			files.lost
		]),
		checkDataDir: folder.check,
		async close() {
			folder.close();
			await opened.close();
			await files.close();
		}
	};
}
async function openOwnStore(options) {
	try {
		return await openDatabase(options);
	} catch (error) {
		const isRecoverable = error instanceof LedgerLacksFiles || error instanceof DamagedLedger;
		if (options.startAnew !== true || !isRecoverable || options.bucket) throw error;
		const unlock = lockDatabase(databasePath(options.dataDir));
		setFilesAside(options);
		unlock();
		return await openDatabase(options);
	}
}
async function openDatabase({ dataDir, acceptFiles = false, bucket }) {
	makeDataDir(dataDir);
	if (lacksDatabase(dataDir)) {
		if (!acceptFiles) throw new LedgerLacksFiles(newLedgerText(dataDir, "folder"));
		setWalAside(dataDir, /* @__PURE__ */ new Date());
	}
	const ledger = openSqliteLedger({ path: databasePath(dataDir) });
	try {
		return {
			ledger,
			dir: await openDir(dataDir, ledger.identity, {
				acceptFiles,
				bucket
			})
		};
	} catch (error) {
		await ledger.close();
		throw error;
	}
}
function openDir(root, identity, { acceptFiles = false, bucket }) {
	return openDataDir(root, identity, {
		acceptFiles,
		bucket: bucket?.identity
	});
}
function setFilesAside({ dataDir, log }) {
	const folder = setAside(dataDir, /* @__PURE__ */ new Date());
	log.warn({
		event: "data_dir.set_aside",
		folder
	}, "the ledger is new: the files of the earlier one are set aside");
}
async function openSharedStore(url, options) {
	const { log } = options;
	const instance = randomUUID();
	const { openSharedRedis } = await import("./open-shared-BKmRs9SW.js");
	const redis = await openSharedRedis({
		url,
		log
	});
	try {
		const sharedDir = await openSharedDir(redis, options);
		const spool = openSharedSpool(sharedDir.spool, instance);
		const { ledger, links, useWriteTokens, lost } = redis;
		const close = async () => {
			spool.close();
			await redis.close();
		};
		return watched({
			ledger,
			dir: {
				...sharedDir,
				spool: spool.path
			},
			links,
			useWriteTokens,
			instance,
			lost: [lost],
			openFiles: [],
			close
		}, options.bucket);
	} catch (error) {
		await redis.close();
		throw error;
	}
}
async function openSharedDir({ identity, withStartLock: exclusively }, options) {
	const open = () => openDir(options.dataDir, identity, options);
	if (options.startAnew !== true || options.bucket) return open();
	return exclusively(async () => {
		try {
			return await open();
		} catch (error) {
			if (!(error instanceof LedgerLacksFiles)) throw error;
			setFilesAside(options);
			return await open();
		}
	});
}
export { isImported as i, IMPORTED as n, importedAsset as r, openStore as t };
