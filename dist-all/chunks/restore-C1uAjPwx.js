import { m as silentLogger, o as Command } from "./ledger-Bul7BDb8.js";
import { n as syncPath } from "./durability-qSQjSt39.js";
import { D as makeAsideFolder, d as UNFINISHED_RESTORE, g as placeBucketOf, p as databasePath } from "./sqlite-ledger-SmMeTYVz.js";
import { r as refuseSharedUse } from "./spool-folder-D7Sfa-Em.js";
import { a as recordedBlobs, r as inspectDatabase } from "./inspect-VUucGeqz.js";
import { l as forEachConcurrently } from "./concurrency-B9CCxp_8.js";
import { a as filesBelow, c as refuseNested, i as copyTo, l as tryLock, n as totalOf, o as inUseText, t as createProgress } from "./progress-BQg5eG0n.js";
import { n as backupsIn } from "./backups-C-gJScJI.js";
import { t as blobPath } from "./records-CkrjKkD1.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { n as hashFile } from "./hash-DYRd5MjV.js";
import { n as finishCopy, t as copyFiles } from "./copy-files-vIkJraMP.js";
import { i as removeCopying, n as placeInBucket, t as isInBucket } from "./places-RhlAaSTU.js";
import { n as addServerOptions } from "./flags-UNePc90E.js";
import { a as printableName, r as withOpen, t as runCommand } from "./shared-options-w18JUnf5.js";
import { t as openBucketOf } from "./stored-files-LhEgLRqB.js";
import { r as filesSource, t as FILES_FLAGS } from "./files-DAs3HDrE.js";
import { rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
// src/cli/backup/restore-files.ts
/** Returns true for files of a backup that belong into a bucket, not into the data folder. */
function belongsInBucket(path) {
	return isInBucket(path) || path === "folder.id" || path === "ledger.id";
}
/**
* Copies the files of a backup into an empty bucket, and verifies them. No server may use the bucket before the
* returned function has finished the copy.
*/
async function restoreIntoBucket(backup, bucket, { dataDir, progress }) {
	const to = placeInBucket(bucket, dataDir);
	const { source, createdAt } = backup.manifest;
	try {
		await copyFiles({
			from: filesOf(backup),
			to,
			id: `${source} ${createdAt}`,
			progress
		});
	} finally {
		removeCopying(dataDir);
	}
	return () => finish(backup, to);
}
async function finish({ path, manifest }, to) {
	for (const name of ["ledger.id", "folder.id"]) if (manifest.files.some((file) => file.path === name)) await to.writeSmall(name, readFileSync(join(path, name), "utf8"));
	reached("copy-named");
	await finishCopy(to);
}
function filesOf({ name, path, manifest }) {
	return {
		name: `the backup ${name}`,
		list: async () => manifest.files.filter((file) => isInBucket(file.path)),
		async withFile(below, work) {
			const file = join(path, below);
			return await work({
				path: file,
				...await hashFile(file)
			});
		}
	};
}
// src/cli/backup/restore.ts
const MAX_CONCURRENT = 8;
/** The folder for the copy. While it exists, the content of the data folder is unchanged. */
const COPYING_FOLDER = "restore-copying";
const LOCK_FILE = "holdover.db.lock";
/**
* Restores a backup into a data folder that no process uses. Copies and verifies the whole backup before it moves
* existing content, and never deletes that content. Throws when the backup cannot be restored.
*/
async function restore(options) {
	const { from, at, now } = options;
	const root = resolve(options.dataDir);
	const { chosen, passedOver } = chooseBackup(resolve(from), at);
	refuseNested(from, root);
	const isNew = mkdirSync(root, {
		recursive: true,
		mode: 448
	}) !== void 0;
	const folderLock = tryLock(databasePath(root));
	if (!folderLock) throw new Error(inUseText(root));
	let isDone = false;
	try {
		const existingContent = contentOf(root);
		refuseSharedUse(root, now());
		if (existingContent.length > 0 && options.existing === "refuse") throw new Error(notEmptyText(root));
		const { bucket } = options;
		const finishBucket = bucket && await restoreIntoBucket(chosen, bucket, {
			...options,
			dataDir: root
		});
		await copyVerified(chosen, root, options);
		const aside = await swapContent(root, existingContent, options);
		await finishBucket?.();
		isDone = true;
		const { name, manifest } = chosen;
		return {
			name,
			manifest,
			passedOver,
			aside
		};
	} finally {
		await rm(join(root, COPYING_FOLDER), {
			recursive: true,
			force: true
		});
		folderLock.close();
		if (isNew && !isDone || chosen.manifest.ledger === "redis") await rm(join(root, LOCK_FILE), { force: true });
		if (isNew && !isDone) await rm(root, {
			recursive: true,
			force: true
		});
	}
}
function chooseBackup(from, at) {
	if (!existsSync(from)) throw new Error(`there is no folder ${from}`);
	const backups = backupsIn(from);
	if (at !== void 0) return {
		chosen: findBackup(backups, at),
		passedOver: []
	};
	const chosen = backups.complete.at(-1);
	const reasons = backups.unusable.map(({ name, why }) => `${name} ${why}`);
	if (chosen) return {
		chosen,
		passedOver: reasons
	};
	const why = reasons.length > 0 ? reasons.join("; ") : "it has no backup at all";
	throw new Error(`${from} has nothing to restore: ${why}`);
}
function findBackup({ complete, unusable }, at) {
	const chosen = complete.find(({ name }) => name === at);
	if (chosen) return chosen;
	const why = unusable.find(({ name }) => name === at)?.why;
	if (why !== void 0) throw new Error(`the backup ${at} ${why}`);
	const names = complete.map(({ name }) => name).join(", ") || "none";
	throw new Error(`there is no backup ${at}; there are: ${names}`);
}
/** Returns the names in a data folder, without locks and without copies of an unfinished restore. */
function contentOf(root) {
	const ownNames = /^(restore-copying|copying|holdover\.db\.lock(-journal)?|lost\+found|set-aside)$/;
	return readdirSync(root).filter((name) => !ownNames.test(name));
}
function notEmptyText(root) {
	return `the data folder ${root} is not empty: give another --data-dir, or use --replace to move its content into its folder set-aside`;
}
async function copyVerified({ path, name, manifest }, root, { bucket, progress, reached }) {
	const copying = join(root, COPYING_FOLDER);
	await rm(copying, {
		recursive: true,
		force: true
	});
	const dir = join(copying, "on-their-way");
	mkdirSync(dir, {
		recursive: true,
		mode: 448
	});
	const files = manifest.files.filter((file) => !bucket || !belongsInBucket(file.path));
	const onFile = progress(totalOf(files));
	await forEachConcurrently(MAX_CONCURRENT, files, async ({ path: file, hash, sizeBytes }) => {
		const copied = await copyTo(join(path, file), join(copying, file), {
			dir,
			hash
		});
		if (!copied.ok) throw new Error(`the backup ${name} is damaged: ${file} is ${copied.why}`);
		onFile(sizeBytes);
		reached("restore-file");
	});
	await rm(dir, { recursive: true });
	if (bucket) placeBucketOf(copying, bucket.identity.url);
	if (manifest.ledger === "sqlite") verifyDatabase(copying, name, manifest);
	for (const folder of await foldersOf(copying)) await syncPath(folder);
}
/** Throws when the database is damaged, or names files that are neither in the backup nor listed as missing. */
function verifyDatabase(folder, name, manifest) {
	const database = databasePath(folder);
	const { state, errors } = inspectDatabase(database);
	if (state !== "ok") throw new Error(`the backup ${name} is damaged: its database is ${state}: ${errors[0]}`);
	const known = /* @__PURE__ */ new Set([...manifest.files.map(({ path }) => path), ...manifest.missing.map(({ hash }) => blobPath(hash))]);
	const missingBlobs = recordedBlobs(database).filter(({ hash }) => !known.has(blobPath(hash)));
	if (missingBlobs.length === 0) return;
	throw new Error(`the backup ${name} lacks ${missingBlobs.length} files that its records name`);
}
async function foldersOf(root) {
	const files = await filesBelow(root);
	return [...new Set(files.map((path) => join(root, path, ".."))), root];
}
/**
* Moves the copy into place, and existing content into a new folder, which it returns. All renames stay inside the data
* folder, because that may be a mounted volume.
*/
async function swapContent(root, existingContent, { now, reached }) {
	const unfinished = join(root, UNFINISHED_RESTORE);
	const aside = existingContent.length > 0 ? makeAsideFolder(root, new Date(now())) : void 0;
	const unfinishedCopies = existingContent.filter((name) => name === UNFINISHED_RESTORE);
	for (const name of unfinishedCopies) await rename(join(root, name), join(aside ?? root, name));
	await rename(join(root, COPYING_FOLDER), unfinished);
	await syncPath(root);
	for (const name of existingContent) {
		if (!unfinishedCopies.includes(name)) await rename(join(root, name), join(aside ?? root, name));
		reached("restore-aside");
	}
	for (const name of readdirSync(unfinished).toSorted(databaseLast)) {
		await rename(join(unfinished, name), join(root, name));
		reached("restore-placed");
	}
	await rm(unfinished, { recursive: true });
	await syncPath(root);
	return aside;
}
function databaseLast(a, b) {
	return Number(a === "holdover.db") - Number(b === "holdover.db");
}
// src/cli/restore.ts
/** `holdover restore DIR`: restores a backup into a data folder that no server uses. Resolves with the exit code. */
function restoreCommand(argv) {
	const command = new Command("holdover restore").description("Puts a backup into an absent or empty data folder, and with --files s3://… its files into an unused prefix of a bucket. Everything is copied and verified before anything takes its place, and nothing is ever deleted.").argument("<DIR>", "folder that holdover backup was given").option("--at <NAME>", "name of the backup; otherwise the newest complete one").option("--replace", "move what is in the data folder into its folder set-aside");
	return runCommand(addServerOptions(command, ["dataDir", ...FILES_FLAGS]), argv, runRestore);
}
async function runRestore(command) {
	const settings = command.opts();
	const progress = createProgress();
	const files = filesSource(settings, process.env);
	return withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
		const result = await restore({
			from: command.args[0] ?? "",
			at: settings.at,
			dataDir: settings.dataDir,
			bucket,
			existing: settings.replace === true ? "move aside" : "refuse",
			now: Date.now,
			progress: progress.start,
			reached
		}).finally(progress.stop);
		process.stdout.write(textOf(result, settings, bucket?.identity.url));
		return 0;
	});
}
function textOf({ name, manifest, passedOver, aside }, { dataDir }, url) {
	const { files, missing, createdAt } = manifest;
	return `${[
		...passedOver.map((why) => `Skipped: ${printableName(why)}.`),
		`Restored ${name} (made ${createdAt}) into ${printableName(dataDir)}: ${files.length} files.`,
		...url === void 0 ? [] : [`Uploads, outputs and saved files are in ${url}: start with --files ${url}.`],
		...aside === void 0 ? [] : [`The former content is in ${printableName(aside)}.`],
		...missing.map(({ hash, why }) => `Was lost before the backup was made: ${hash} (${why}).`),
		...manifest.ledger === "redis" ? [REDIS] : []
	].join("\n")}\n`;
}
const REDIS = "The records are in Redis: restore the Redis snapshot that was saved before this backup, then start the servers.";
export { restoreCommand };
