import { t as packageVersion } from "./version-eXUY6IRP.js";
import { l as forEachConcurrently } from "./concurrency-DwpPd4rK.js";
import { a as filesBelow, c as refuseNested, i as copyTo, l as tryLock, n as totalOf, s as linkTo, t as createProgress } from "./progress-or88hgGp.js";
import { i as requireSound, n as isRecordedBy, r as recordedFiles, t as blobPath } from "./records-Dr5K81Jh.js";
import { n as hashFile } from "./hash-DYRd5MjV.js";
import { n as syncPath } from "./durability-BlJWQqTv.js";
import { a as partialPath, i as openBackupFolder, n as backupsIn, o as removeBackup, r as finishPartial, s as writeManifest, t as BACKUP_LOCK } from "./backups-r7_9rwo4.js";
import { j as moveIntoPlace, p as databasePath } from "./sqlite-ledger-CF5LsL03.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { n as addServerOptions } from "./flags-x94JVf1p.js";
import { r as filesSource, t as FILES_FLAGS } from "./files-IQBw9w4W.js";
import { n as WrongBytes } from "./errors-omDftraz.js";
import { t as withFiles } from "./with-files-BMOWCFeK.js";
import { a as printableName, i as megabytes, n as withRedis, t as runCommand } from "./shared-options-ihEXDHvk.js";
import { chmod, lstat, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { createWriteStream, existsSync, mkdirSync, readdirSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { pipeline } from "node:stream/promises";
import { Command, InvalidArgumentError } from "commander";
// src/cli/backup/blobs.ts
/** A file that the previous backup has is linked, not copied: backups never change. */
function createBlobCopier(places) {
	const { dataDir, bucket, partial, previous, dir } = places;
	const known = new Map(previous?.manifest.files.map((file) => [file.path, file]));
	const listed = /* @__PURE__ */ new Map();
	const copied = {
		files: 0,
		bytes: 0
	};
	async function linkPrevious(path) {
		const file = known.get(path);
		if (!previous || !file) return void 0;
		return await linkTo(join(previous.path, path), join(partial, path), file.sizeBytes) ? file : void 0;
	}
	async function copyFresh(hash, path) {
		const place = join(partial, path);
		if (existsSync(place)) {
			const { size, mtimeMs } = await lstat(place);
			return {
				ok: true,
				hash,
				sizeBytes: size,
				modifiedAtMs: Math.round(mtimeMs)
			};
		}
		const copyResult = bucket ? await bucket.copyTo(path, place, {
			dir,
			hash
		}) : await copyTo(join(dataDir, path), place, {
			dir,
			hash
		});
		if (copyResult.ok) copied.files++;
		if (copyResult.ok) copied.bytes += copyResult.sizeBytes;
		return copyResult;
	}
	return {
		copied,
		has: (hash) => listed.get(hash),
		/** Copies a file into the backup, unless it is there. Returns the reason when it cannot be copied. */
		async copy({ hash }) {
			if (listed.has(hash)) return void 0;
			const path = blobPath(hash).split(sep).join("/");
			const linked = await linkPrevious(path);
			const copyResult = linked ? {
				ok: true,
				...linked
			} : await copyFresh(hash, path);
			if (!copyResult.ok) return copyResult.why;
			listed.set(hash, {
				...manifestFields(copyResult),
				path
			});
		}
	};
}
/** Returns the entry of a copied file in the manifest, without its path. */
function manifestFields(copied) {
	const { hash, sizeBytes, modifiedAtMs } = copied;
	return {
		hash,
		sizeBytes,
		modifiedAtMs
	};
}
// src/cli/backup/backup.ts
/** Small files at the top of a data folder that a restore needs: its secret and its ids. */
const IDENTITY_FILES = [
	"secret.key",
	"folder.id",
	"ledger.id"
];
const MAX_CONCURRENT = 8;
/**
* The maximum number of times that the records are copied. They are copied again when files that they name were
* removed.
*/
const MAX_PASSES = 10;
/**
* Backs up a data folder, which a server may use meanwhile. Throws when the backup cannot be finished.
*
* A server writes a file before it records it, and removes the record before the file. So most files are copied first,
* then the records, then the files that were added meanwhile. A file that was removed meanwhile is no longer on record:
* the records are copied again, and then no longer name it.
*/
async function backUp(options) {
	const into = resolve(options.into);
	if (!existsSync(options.dataDir)) throw new Error(`there is no data folder ${options.dataDir}`);
	refuseNested(into, options.dataDir);
	openBackupFolder(into);
	const backupLock = tryLock(join(into, BACKUP_LOCK));
	if (!backupLock) throw new Error(`another backup into ${into} is running`);
	try {
		return await backUpLocked({
			...options,
			into,
			records: options.openRecords()
		});
	} finally {
		backupLock.close();
	}
}
async function backUpLocked(options) {
	const { dataDir, into, records, now, reached } = options;
	const partial = partialPath(into);
	const createdAtMs = now();
	const { complete } = backupsIn(into);
	await prepare(partial);
	const smallFiles = await copySmallFiles(options, complete.at(-1));
	const source = sourceOf(smallFiles, dataDir);
	refuseOtherSource(source, complete, into);
	const blobs = createBlobCopier({
		dataDir,
		bucket: options.bucket,
		partial,
		previous: complete.at(-1),
		dir: copyingFolder(partial)
	});
	const { named, failedHashes } = await copyBlobs(options, partial, blobs);
	reached("backup-copied");
	const files = [
		...smallFiles,
		...await listDatabase(options, partial),
		...listBlobs(named, blobs)
	];
	await removeUnlisted(partial, new Set(files.map(({ path }) => path)));
	await syncAll(partial);
	const missing = named.flatMap(({ hash }) => {
		const why = failedHashes.get(hash);
		return why === void 0 ? [] : [{
			hash,
			why
		}];
	});
	const common = {
		format: 1,
		holdover: packageVersion(),
		ledger: records.kind
	};
	const createdAt = new Date(createdAtMs).toISOString();
	writeManifest(partial, {
		...common,
		createdAt,
		source,
		files,
		missing
	});
	reached("backup-listed");
	await syncPath(partial);
	const name = await finishPartial(into, createdAtMs);
	await syncPath(into);
	const removed = await removeOld(into, options.keep);
	return {
		name,
		files: files.length,
		copied: blobs.copied,
		missing,
		removed
	};
}
/**
* Makes the folder of the unfinished backup. Keeps intact blobs that an earlier process left there, and removes the
* rest.
*/
async function prepare(partial) {
	mkdirSync(partial, {
		recursive: true,
		mode: 448
	});
	for (const name of readdirSync(partial)) if (name !== "blobs") await rm(join(partial, name), {
		recursive: true,
		force: true
	});
	await forEachConcurrently(MAX_CONCURRENT, await filesBelow(join(partial, "blobs")), async (path) => {
		const whole = join(partial, "blobs", path);
		const { hash } = await hashFile(whole);
		if (blobPath(hash) !== join("blobs", path)) await rm(whole, { force: true });
	});
	mkdirSync(copyingFolder(partial), { mode: 448 });
}
/** The folder for files while they are copied. */
function copyingFolder(partial) {
	return join(partial, "copying");
}
/**
* Copies the ids, the secret and the user data. Clients can change these under the same name, so they are read each
* time.
*/
async function copySmallFiles({ dataDir, bucket, into }, last) {
	const partial = partialPath(into);
	const previousFiles = new Map(last?.manifest.files.map((file) => [file.path, file]));
	const inBucket = new Set(await bucket?.listSmall());
	const userData = await filesBelow(join(dataDir, "userdata"));
	const inFolder = [...IDENTITY_FILES, ...userData.map((path) => join("userdata", path))];
	const paths = [...inBucket, ...inFolder.filter((path) => !inBucket.has(path))];
	const listed = [];
	await forEachConcurrently(MAX_CONCURRENT, paths, async (path) => {
		const [to, how] = [join(partial, path), { dir: copyingFolder(partial) }];
		const copied = bucket && inBucket.has(path) ? await bucket.copyTo(path, to, how) : await copyTo(join(dataDir, path), to, how);
		if (!copied.ok) {
			if (copied.why === "absent") return;
			throw new Error(`${join(dataDir, path)} cannot be read`);
		}
		const copy = {
			...manifestFields(copied),
			path: path.split(sep).join("/")
		};
		const previous = previousFiles.get(copy.path);
		const isSame = previous?.hash === copy.hash;
		const file = isSame && inBucket.has(path) ? previous : copy;
		if (last && isSame) await linkUnchanged(last, partial, file);
		listed.push(file);
	});
	return listed.toSorted((a, b) => a.path < b.path ? -1 : 1);
}
/** Replaces a copy by a hard link to the same file of the previous backup, which saves space. */
async function linkUnchanged(last, partial, file) {
	const previousPath = join(last.path, file.path);
	const link = join(copyingFolder(partial), randomUUID());
	const stats = await lstat(previousPath).catch(() => void 0);
	if (stats === void 0 || Math.round(stats.mtimeMs) !== file.modifiedAtMs) return;
	if (await linkTo(previousPath, link, file.sizeBytes)) await rename(link, join(partial, file.path));
	await rm(link, { force: true });
}
/**
* Copies the records and all files that they name. Repeats this while files disappear, at most `MAX_PASSES` times.
* Returns the files on record, and by hash why some could not be copied.
*/
async function copyBlobs({ records, progress, reached }, partial, blobs) {
	const first = await records.list();
	const onFile = progress(totalOf(first));
	async function copyAll(batch) {
		const failedHashes = /* @__PURE__ */ new Map();
		await forEachConcurrently(MAX_CONCURRENT, batch, async (blob) => {
			const isNew = blobs.has(blob.hash) === void 0;
			const why = await blobs.copy(blob);
			if (why !== void 0) failedHashes.set(blob.hash, why);
			else if (isNew) onFile(blob.sizeBytes);
			reached("backup-file");
		});
		return failedHashes;
	}
	let previousFailures = await copyAll(first);
	for (let pass = 1;; pass++) {
		reached("backup-records");
		const named = await records.save(partial);
		const failedHashes = await copyAll(named);
		if ([...failedHashes.keys()].every((hash) => previousFailures.has(hash)) || pass === MAX_PASSES) return {
			named,
			failedHashes
		};
		previousFailures = failedHashes;
	}
}
async function listDatabase({ records }, partial) {
	if (records.kind !== "sqlite") return [];
	const path = "holdover.db";
	await chmod(join(partial, path), 384);
	const { mtimeMs } = await lstat(join(partial, path));
	return [{
		path,
		...await hashFile(join(partial, path)),
		modifiedAtMs: Math.round(mtimeMs)
	}];
}
function listBlobs(named, blobs) {
	return named.flatMap(({ hash }) => blobs.has(hash) ?? []);
}
/** Removes files that were on record when the backup began, but not when the records were copied. */
async function removeUnlisted(partial, listed) {
	await rm(copyingFolder(partial), {
		recursive: true,
		force: true
	});
	for (const path of await filesBelow(partial)) if (!listed.has(path.split(sep).join("/"))) await rm(join(partial, path), { force: true });
}
/** Syncs the database, which SQLite does not sync when it copies, and the folders, where the hard links are. */
async function syncAll(partial) {
	const database = join(partial, "holdover.db");
	if (existsSync(database)) await syncPath(database);
	const folders = new Set((await filesBelow(partial)).map((path) => dirname(join(partial, path))));
	for (const folder of folders) await syncPath(folder);
	if (existsSync(join(partial, "blobs"))) await syncPath(join(partial, "blobs"));
}
async function removeOld(into, keep) {
	if (keep === void 0) return [];
	const old = backupsIn(into).complete.slice(0, -keep);
	for (const generation of old) await removeBackup(generation);
	return old.map(({ name }) => name);
}
/** Returns the hash that identifies the data folder: that of its secret, or with Redis that of its `folder.id`. */
function sourceOf(smallFiles, dataDir) {
	const hashes = ["secret.key", "folder.id"].flatMap((name) => smallFiles.find(({ path }) => path === name)?.hash ?? []);
	if (hashes[0] !== void 0) return hashes[0];
	throw new Error(`${dataDir} is not a data folder: it has neither secret.key nor folder.id`);
}
function refuseOtherSource(source, complete, into) {
	if (complete.every(({ manifest }) => manifest.source === source)) return;
	throw new Error(`${into} has backups of another data folder: give this one a folder of its own`);
}
// src/cli/backup/bucket-files.ts
const IDS = ["folder.id", "ledger.id"];
/** Returns the files of an opened bucket. */
function filesOfBucket({ blobs, objects }) {
	/** Returns false when the object does not exist. */
	async function download(path, hash, to) {
		if (hash !== void 0) return await blobs.copyTo(hash, to);
		const stream = await objects.open(path);
		if (stream) await pipeline(stream, createWriteStream(to, {
			flags: "wx",
			mode: 384
		}));
		return stream !== void 0;
	}
	return {
		async listSmall() {
			const paths = [...IDS];
			for await (const { key } of objects.list("userdata/")) if (!key.endsWith("/")) paths.push(key);
			return paths;
		},
		async copyTo(path, to, { dir, hash }) {
			const temporary = join(dir, randomUUID());
			try {
				if (!await download(path, hash, temporary)) return {
					ok: false,
					why: "absent"
				};
				const read = await hashFile(temporary);
				await moveIntoPlace({ path: temporary }, to);
				return {
					ok: true,
					...read,
					modifiedAtMs: Math.round((await stat(to)).mtimeMs)
				};
			} catch (error) {
				if (error instanceof WrongBytes) return {
					ok: false,
					why: "not the bytes of its name"
				};
				throw error;
			} finally {
				await rm(temporary, { force: true });
			}
		}
	};
}
// src/cli/backup.ts
/** `holdover backup DIR`: backs up a data folder, which a server may use meanwhile. Resolves with the exit code. */
function backupCommand(argv) {
	const command = new Command("holdover backup").description("Backs up the data folder while its server goes on. Each call makes one complete backup in DIR; files the one before has already take no more room.").argument("<DIR>", "folder for backups, outside of the data folder").option("--keep <N>", "remove older complete backups beyond so many", atLeastOne);
	return runCommand(addServerOptions(command, [
		"dataDir",
		"ledger",
		...FILES_FLAGS
	]), argv, runBackup);
}
async function runBackup(command) {
	const settings = command.opts();
	const into = command.args[0] ?? "";
	const progress = createProgress();
	const { dataDir, keep } = settings;
	const files = filesSource(settings, process.env);
	const result = await withRedis(settings, async (redis) => withFiles({
		dataDir,
		files
	}, ({ bucket, recordedBy }) => backUp({
		dataDir,
		bucket: bucket && filesOfBucket(bucket),
		into,
		openRecords() {
			if (!redis) requireSound(databasePath(dataDir), DAMAGE_ADVICE);
			const records = recordedFiles(dataDir, redis);
			if (isRecordedBy(records, recordedBy)) return records;
			throw new Error(`the files of --data-dir ${dataDir} were recorded by another ledger: give the --ledger of their servers`);
		},
		keep,
		now: Date.now,
		progress: progress.start,
		reached
	}))).finally(progress.stop);
	process.stdout.write(textOf(result, into, settings));
	return result.missing.length === 0 ? 0 : 1;
}
const DAMAGE_ADVICE = "run holdover check to see the damage, or holdover restore to restore a backup";
function textOf(result, into, { ledger }) {
	const { name, files, copied, missing, removed } = result;
	const lines = [
		`Backup ${name} in ${printableName(into)}: ${files} files, ${copied.files} of them new (${megabytes(copied.bytes)}).`,
		...removed.length > 0 ? [`Removed: ${removed.join(", ")}.`] : [],
		...ledger === "sqlite" ? [] : [REDIS]
	];
	if (missing.length > 0) {
		lines.push(`On record, but not in the backup (see holdover check):`);
		lines.push(...missing.map(({ hash, why }) => `  ${hash}: ${why}`));
	}
	return `${lines.join("\n")}\n`;
}
const REDIS = "The records are in Redis and not in this backup. Save them before each backup, with redis-cli --rdb or the snapshots of your service: a backup that is older than the records lacks files that they name.";
function atLeastOne(text) {
	if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
	throw new InvalidArgumentError("It must be a number from 1 to 999999.");
}
export { backupCommand };
