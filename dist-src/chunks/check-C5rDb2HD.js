import { t as readAtMost } from "./read-at-most-0g521mbO.js";
import { r as importedAsset, t as openStore } from "./store-DmnZ7I1J.js";
import { d as UNFINISHED_RESTORE, p as databasePath } from "./sqlite-ledger-CF5LsL03.js";
import { l as forEachConcurrently } from "./concurrency-DwpPd4rK.js";
import { t as createHasher } from "./hash-DYRd5MjV.js";
import { a as isStorageUnavailable } from "./storage-errors-D5OCISk9.js";
import { n as WrongBytes } from "./errors-omDftraz.js";
import { l as tryLock, n as totalOf, o as inUseText, t as createProgress } from "./progress-or88hgGp.js";
import { n as isRecordedBy, r as recordedFiles, t as blobPath } from "./records-Dr5K81Jh.js";
import { r as refuseSharedUse } from "./spool-folder-D7Sfa-Em.js";
import { r as filesSource, t as FILES_FLAGS } from "./files-IQBw9w4W.js";
import { t as ledgerSource, u as silentLogger } from "./ledger-B4DYGOuk.js";
import { t as LOCAL_USER } from "./identity-Dwa03of1.js";
import { n as addServerOptions } from "./flags-x94JVf1p.js";
import { t as withFiles } from "./with-files-BMOWCFeK.js";
import { a as printableName, i as megabytes, n as withRedis, t as runCommand } from "./shared-options-ihEXDHvk.js";
import { join, posix, resolve } from "node:path";
import { existsSync, statSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { Command } from "commander";
// src/cli/backup/record-orphans.ts
/**
* Known first bytes of files: hex digits, their offset in bytes, extension, content type. Used when the name is lost.
*/
const SIGNATURES = [
	[
		"89504e470d0a1a0a",
		0,
		".png",
		"image/png"
	],
	[
		"ffd8ff",
		0,
		".jpg",
		"image/jpeg"
	],
	[
		"47494638",
		0,
		".gif",
		"image/gif"
	],
	[
		"57454250",
		8,
		".webp",
		"image/webp"
	],
	[
		"57415645",
		8,
		".wav",
		"audio/wav"
	],
	[
		"424d",
		0,
		".bmp",
		"image/bmp"
	],
	[
		"664c6143",
		0,
		".flac",
		"audio/flac"
	],
	[
		"4f676753",
		0,
		".ogg",
		"audio/ogg"
	],
	[
		"66747970",
		4,
		".mp4",
		"video/mp4"
	],
	[
		"1a45dfa3",
		0,
		".webm",
		"video/webm"
	]
];
const SIGNATURE_BYTES = 12;
const UNKNOWN = [".bin", "application/octet-stream"];
/** Records files that have no record in the ledger, and returns the new records. Skips damaged files. */
async function recordOrphans(options, orphans, remembered) {
	const known = formerRecords(remembered);
	const restored = [];
	for (const orphan of orphans.filter(({ whole }) => whole)) {
		const former = known.get(orphan.hash) ?? [];
		for (const row of former) restored.push(await restoreRecord(options, orphan, row));
		if (former.length === 0) restored.push(await recordAsNew(options, orphan));
	}
	return restored;
}
/**
* Groups the former records by hash. The first record of an asset id is used: jobs, which know more, come before v1
* names.
*/
function formerRecords(remembered) {
	const byHash = /* @__PURE__ */ new Map();
	for (const one of remembered) for (const former of one.kind === "output" ? fromJob(one) : fromFile(one.row)) {
		const known = byHash.get(former.hash) ?? [];
		if (known.some(({ id }) => id === former.id)) continue;
		byHash.set(former.hash, [...known, former]);
	}
	return byHash;
}
function fromFile({ user, type, subfolder, filename, assetId, hash, contentType }) {
	const filePath = posix.join(type, subfolder, filename);
	return [{
		id: assetId,
		user,
		hash: hash ?? "",
		contentType,
		filePath,
		jobId: null
	}];
}
function fromJob({ user, outputsJson }) {
	return JSON.parse(outputsJson).flatMap((output) => {
		const { id, hash, name, job_id: jobId = null, content_type: contentType } = output;
		if (hash === null || hash === void 0) return [];
		const folder = output.x_temp === true ? "temp" : "output";
		return [{
			id,
			user,
			hash,
			contentType,
			filePath: posix.join(folder, output.x_subfolder ?? "", name),
			jobId
		}];
	});
}
async function restoreRecord({ ledger }, orphan, former) {
	const { hash, sizeBytes, modifiedAtMs } = orphan;
	const job = former.jobId === null ? void 0 : await ledger.jobs.get(former.jobId);
	const row = {
		...former,
		sizeBytes,
		createdAtMs: modifiedAtMs
	};
	await ledger.assets.insert(job ? {
		...importedAsset(row),
		jobId: job.id
	} : importedAsset(row));
	return {
		hash,
		user: former.user,
		filePath: former.filePath,
		as: "remembered"
	};
}
async function recordAsNew({ blobs, ledger, user, now }, { hash, sizeBytes, modifiedAtMs }) {
	const [extension, contentType] = sizeBytes === 0 ? UNKNOWN : await detectType(blobs, hash);
	const filename = `${hash.slice(7, 23)}${extension}`;
	const [type, subfolder] = ["output", "recovered"];
	const filePath = posix.join(type, subfolder, filename);
	const commonFields = {
		user,
		hash,
		sizeBytes,
		contentType
	};
	const id = randomUUID();
	await Promise.all([ledger.assets.insert(importedAsset({
		...commonFields,
		id,
		filePath,
		createdAtMs: now()
	})), ledger.files.put({
		...commonFields,
		type,
		subfolder,
		filename,
		assetId: id,
		modifiedAtMs
	})]);
	return {
		hash,
		user,
		filePath,
		as: "new name"
	};
}
async function detectType(blobs, hash) {
	const stream = await blobs.open(hash, {
		start: 0,
		end: 11
	});
	const hex = stream && (await readAtMost(SIGNATURE_BYTES, stream))?.toString("hex");
	const found = SIGNATURES.find(([start, at]) => hex?.startsWith(start, at * 2));
	return found ? [found[2], found[3]] : UNKNOWN;
}
// src/cli/backup/check.ts
const MAX_CONCURRENT = 4;
/** The age up to which a running server may still record a file. */
const RECENT_MS = 6e4;
/** Checks all files against the records. Changes nothing; a server may run meanwhile. */
async function check(options) {
	const { dataDir, recorded } = options;
	const { state, errors } = recorded.inspect();
	const common = {
		dataDir,
		ledger: {
			kind: recorded.kind,
			state,
			errors
		},
		belongs: state !== "ok" || isRecordedBy(recorded, options.recordedBy),
		secret: recorded.kind === "redis" ? "elsewhere" : secretIn(dataDir),
		unfinishedRestore: existsSync(join(dataDir, UNFINISHED_RESTORE))
	};
	if (state === "damaged") return {
		...common,
		recorded: null,
		trouble: [],
		orphans: []
	};
	const named = state === "ok" ? await recorded.list() : [];
	const found = await compare(options, named, state);
	return {
		...common,
		recorded: totalOf(named),
		...found
	};
}
/** Returns true when the report shows no problem. */
function isSound(report) {
	const { ledger, belongs, secret, unfinishedRestore, trouble, orphans } = report;
	const hasSecret = secret === "ok" || secret === "elsewhere";
	return ledger.state === "ok" && belongs && hasSecret && !unfinishedRestore && trouble.length === 0 && orphans.length === 0;
}
async function compare(options, named, state) {
	const { blobs, recorded, inUse, now, progress } = options;
	const onRecord = new Set(named.map(({ hash }) => hash));
	const unrecorded = [];
	for await (const blob of blobs.list()) if (!onRecord.has(blob.hash)) unrecorded.push(blob);
	const { files, bytes } = totalOf(named);
	const reportProgress = progress({
		files: files + unrecorded.length,
		bytes
	});
	const damage = /* @__PURE__ */ new Map();
	await forEachConcurrently(MAX_CONCURRENT, named, async ({ hash, sizeBytes }) => {
		const why = await inspectBlob(blobs, hash);
		if (why) damage.set(hash, why);
		reportProgress(sizeBytes);
	});
	const orphans = [];
	const createdBeforeMs = inUse ? now() - RECENT_MS : Infinity;
	await forEachConcurrently(MAX_CONCURRENT, unrecorded, async (blob) => {
		const orphan = blob.placedAtMs > createdBeforeMs ? void 0 : await inspectOrphan(blobs, blob);
		if (orphan) orphans.push(orphan);
		reportProgress(0);
	});
	const after = state === "ok" ? new Set((await recorded.list()).map(({ hash }) => hash)) : null;
	return {
		trouble: await withNames(recorded, [...damage].filter(([hash]) => after?.has(hash))),
		orphans: orphans.filter(({ hash }) => !after?.has(hash)).toSorted((a, b) => a.path < b.path ? -1 : 1)
	};
}
async function inspectBlob(blobs, hash) {
	const hasher = createHasher();
	try {
		const stream = await blobs.open(hash);
		if (stream === void 0) return "missing";
		for await (const chunk of stream) hasher.update(chunk);
		return hasher.digest() === hash ? void 0 : "damaged";
	} catch (error) {
		if (isStorageUnavailable(error)) throw error;
		return error instanceof WrongBytes ? "damaged" : "unreadable";
	} finally {
		hasher.discard();
	}
}
async function inspectOrphan(blobs, { hash, sizeBytes, modifiedAtMs }) {
	const why = await inspectBlob(blobs, hash);
	if (why === "missing") return void 0;
	return {
		hash,
		path: blobPath(hash),
		sizeBytes,
		modifiedAtMs: Math.round(modifiedAtMs),
		whole: why === void 0
	};
}
async function withNames(recorded, damage) {
	const owners = await recorded.owners(damage.map(([hash]) => hash));
	return damage.map(([hash, why]) => ({
		hash,
		path: blobPath(hash),
		why,
		names: owners.filter((owner) => owner.hash === hash).map(({ user, filePath }) => ({
			user,
			filePath
		}))
	}));
}
function secretIn(dataDir) {
	const stats = statSync(join(dataDir, "secret.key"), { throwIfNoEntry: false });
	if (stats === void 0) return "absent";
	return stats.size === 32 ? "ok" : "damaged";
}
// src/cli/check.ts
/**
* `holdover check`: checks that every file on record exists and is undamaged. Resolves with the exit code: 1 when
* there is a problem.
*/
function checkCommand(argv) {
	const command = new Command("holdover check").description("Checks the database, reads every file on record, and lists files that no record names. Changes nothing without --repair; the server may run meanwhile.").option("--repair", "put files without a record on record again; stop the server first").option("--user <ID>", "whose they are when no trace of that is left", LOCAL_USER).option("--json", "for programs");
	return runCommand(addServerOptions(command, [
		"dataDir",
		"ledger",
		...FILES_FLAGS
	]), argv, run);
}
async function run(command) {
	const settings = command.opts();
	const { json = false } = settings;
	const dataDir = resolve(settings.dataDir);
	if (!existsSync(dataDir)) throw new Error(`there is no data folder ${dataDir}`);
	const location = {
		dataDir,
		files: filesSource(settings, process.env)
	};
	return withRedis(settings, async (redis) => {
		const recorded = recordedFiles(dataDir, redis);
		const checkNow = () => runCheck(location, recorded, redis);
		let restored = [];
		if (settings.repair === true) {
			await refuseUse(dataDir, redis);
			restored = await repair(settings, await checkNow(), recorded);
		}
		const report = await checkNow();
		const sound = isSound(report);
		process.stdout.write(json ? `${JSON.stringify({
			ok: sound,
			...report,
			adopted: restored
		}, null, 2)}\n` : checkText({
			...report,
			restored,
			sound
		}));
		return sound ? 0 : 1;
	});
}
async function runCheck(location, recorded, redis) {
	const { dataDir } = location;
	const progress = createProgress();
	const inUse = redis !== void 0 || isInUse(dataDir);
	return withFiles(location, ({ blobs, recordedBy }) => check({
		dataDir,
		blobs,
		recordedBy,
		recorded,
		inUse,
		now: Date.now,
		progress: progress.start
	})).finally(progress.stop);
}
/**
* Records the files that have no record, and returns the new records. Creates an absent ledger, and binds a ledger of
* other files to these files.
*/
async function repair(settings, { ledger: { state }, belongs, orphans }, recorded) {
	const ledgerIsMissing = state === "absent" || state === "empty";
	const canRepair = orphans.some(({ whole }) => whole) || ledgerIsMissing || !belongs;
	if (state === "damaged" || !canRepair) return [];
	const acceptFiles = ledgerIsMissing || !belongs;
	const remembered = state === "ok" ? recorded.remembered() : [];
	const source = ledgerSource(settings.ledger);
	const { dataDir, user } = settings;
	const files = filesSource(settings, process.env);
	const store = await openStore({
		ledger: source,
		dataDir,
		files,
		acceptFiles
	}, silentLogger());
	try {
		const { ledger } = store;
		return await recordOrphans({
			blobs: store.files.blobs,
			ledger,
			user,
			now: Date.now
		}, orphans, remembered);
	} finally {
		await store.close();
	}
}
async function refuseUse(dataDir, redis) {
	if (redis) {
		const { refuseRedisInUse } = await import("./redis-records-Dix_oV7w.js");
		return await refuseRedisInUse(redis.links);
	}
	refuseSharedUse(dataDir, Date.now());
	if (isInUse(dataDir)) throw new Error(inUseText(dataDir));
}
function isInUse(dataDir) {
	if (!existsSync(join(dataDir, "holdover.db.lock"))) return false;
	const lock = tryLock(databasePath(dataDir));
	lock?.close();
	return lock === void 0;
}
/** Returns the report as text. It lists every file that has a problem. */
function checkText(report) {
	const { dataDir, recorded, trouble, orphans, restored, sound } = report;
	return `${[
		`Data folder ${printableName(dataDir)}`,
		...ledgerLines(report),
		...report.belongs ? [] : [OTHER_LEDGER],
		...secretLines(report),
		...report.unfinishedRestore ? [UNFINISHED_RESTORE_TEXT] : [],
		...recorded === null ? ["Files were not compared: the ledger cannot be read."] : [`Files on record: ${recorded.files} (${megabytes(recorded.bytes)}).`],
		...listed("Files on record that are missing, damaged or unreadable", trouble.map(troubleLine)),
		...trouble.length > 0 ? [BACKUP_ADVICE] : [],
		...listed("Put on record again", restored.map(restoredLine)),
		...listed("Files without a record", orphans.map(orphanLine)),
		...orphans.some(({ whole }) => whole) ? [REPAIR_ADVICE] : [],
		sound ? "Everything is as it should be." : "Something is wrong."
	].join("\n")}\n`;
}
const UNFINISHED_RESTORE_TEXT = "A restore was interrupted while it moved files: run holdover restore with --replace.";
const OTHER_LEDGER = "The files were recorded by another ledger: give the --ledger of their servers, restore that ledger, or use --repair to bind this one to them.";
const BACKUP_ADVICE = "A backup may have them: each backup has the same folders, so that single files can be copied back.";
const REPAIR_ADVICE = "holdover check --repair puts them on record again: under their names if the ledger still has those, otherwise in the folder \"recovered\" of the outputs.";
function ledgerLines({ ledger: { kind, state, errors } }) {
	if (kind === "redis") return ["Ledger: in Redis."];
	if (state === "ok") return ["Database: sound."];
	return [
		`Database: ${state}.`,
		...errors.map((error) => `  ${printableName(error)}`),
		ADVICE[state]
	];
}
const ABSENT = "Give the --ledger of the servers, or restore a backup with holdover restore.";
const ADVICE = {
	absent: ABSENT,
	empty: ABSENT,
	damaged: "Restore a backup with holdover restore: a damaged database cannot be repaired."
};
function secretLines({ secret }) {
	if (secret === "ok" || secret === "elsewhere") return [];
	return [`secret.key is ${secret}: without it every user with a key is a new user.`];
}
function listed(title, lines) {
	return lines.length === 0 ? [] : [`${title}: ${lines.length}`, ...lines];
}
function troubleLine({ path, why, names }) {
	return `  ${why}: ${path} (${names.map(({ user, filePath }) => `${printableName(filePath)} of ${printableName(user)}`).join(", ")})`;
}
function orphanLine({ path, sizeBytes, whole }) {
	return `  ${path} (${megabytes(sizeBytes)}${whole ? "" : ", damaged"})`;
}
function restoredLine({ hash, user, filePath, as }) {
	const how = as === "remembered" ? "" : ", its own name is not known";
	return `  ${printableName(filePath)} of ${printableName(user)} (${hash}${how})`;
}
export { checkCommand };
