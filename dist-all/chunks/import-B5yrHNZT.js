import { g as InvalidSetting, o as Command, t as ledgerSource, u as createLogger } from "./ledger-Bul7BDb8.js";
import { n as addServerOptions } from "./flags-UNePc90E.js";
import { r as filesSource, t as FILES_FLAGS } from "./files-DAs3HDrE.js";
import { r as importedAsset, t as openStore } from "./store-DR2hv9Yc.js";
import { o as systemClock } from "./event-loop-BDDWO5Ig.js";
import { a as printableName, i as megabytes, r as withOpen, t as runCommand } from "./shared-options-w18JUnf5.js";
import { t as LOCAL_USER } from "./identity-DK43Jm32.js";
import { i as hashOfStream, n as hashFile } from "./hash-DYRd5MjV.js";
import { n as totalOf, r as copyFrom, t as createProgress } from "./progress-BQg5eG0n.js";
import { l as safeFolder, n as contentTypeOf, u as safeName } from "./file-headers-Di12YiA_.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { l as forEachConcurrently } from "./concurrency-B9CCxp_8.js";
import { t as MEBIBYTE } from "./parse-values-B-GwPNi9.js";
import { a as statPath, i as safePathBelow, n as createUserDataStore, t as createBucketUserData } from "./bucket-user-data-BVh42aHX.js";
import { l as stringifyJson, n as isJsonObject, o as parseJson } from "./json-0U1hIHCx.js";
import { j as moveIntoPlace } from "./sqlite-ledger-SmMeTYVz.js";
import { chmod, lstat, readFile, readdir, realpath, rm, stat, utimes } from "node:fs/promises";
import { join, posix, sep } from "node:path";
import { existsSync } from "node:fs";
import { randomUUID } from "node:crypto";
// src/cli/import/scan.ts
/**
* Finds all files below a folder, in the order of their names. Follows a link only to a file below the same folder.
* Returns nothing when the folder does not exist.
*/
async function scan(root, label, rules) {
	const lists = {
		found: [],
		leftOut: [],
		failed: []
	};
	const real = await realRoot(root, label, lists);
	const folders = real === void 0 ? [] : [""];
	for (const folder of folders) {
		const entries = await entriesOf(join(real ?? "", folder)).catch((error) => {
			lists.failed.push({
				name: `${label}/${folder}`,
				why: reasonOf(error)
			});
			return [];
		});
		for (const entry of entries) if (await scanEntry({
			root: real ?? "",
			label,
			folder,
			entry
		}, rules, lists)) folders.push(joinBelow(folder, entry.name));
	}
	return lists;
}
/** Returns the reason of a file system error in a few words. */
function reasonOf(error) {
	const { code, message } = error;
	return code === void 0 ? message : `cannot be read (${code})`;
}
/** Returns the real path of the folder, which may be a link to another disk. */
async function realRoot(root, label, lists) {
	try {
		const real = await realpath(root);
		if ((await stat(real)).isDirectory()) return real;
		lists.leftOut.push({
			name: label,
			why: "is not a folder"
		});
	} catch (error) {
		if (error.code !== "ENOENT") lists.failed.push({
			name: label,
			why: reasonOf(error)
		});
	}
}
async function entriesOf(folder) {
	return (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => a.name < b.name ? -1 : 1);
}
/** Adds an entry to its list. Returns true for a folder, which the caller must scan. */
async function scanEntry(at, rules, lists) {
	const { folder, entry } = at;
	const path = joinBelow(folder, entry.name);
	const name = `${at.label}/${path}`;
	const leaveOut = (why) => {
		lists.leftOut.push({
			name: entry.isDirectory() ? `${name}/` : name,
			why
		});
		return false;
	};
	if (!rules.isKeptName(entry.name)) return leaveOut("unsafe name");
	if (entry.isDirectory()) return isPossibleFolder(path) || leaveOut("path too long");
	try {
		const real = await resolveFile(at);
		if (!real.ok) return leaveOut(real.why);
		if (real.stats.size > rules.maxBytes) return leaveOut("larger than --max-upload-size");
		lists.found.push(foundAt(at, real));
	} catch (error) {
		lists.failed.push({
			name,
			why: reasonOf(error)
		});
	}
	return false;
}
/** Checks the length of a folder's path. Leading dots are allowed here, so they are replaced for the check. */
function isPossibleFolder(path) {
	return safeFolder(path.replaceAll(/(^|\/)\.+/g, "$1_")) !== void 0;
}
async function resolveFile({ root, folder, entry }) {
	const path = join(root, folder, entry.name);
	if (entry.isFile()) return {
		ok: true,
		path,
		stats: await stat(path)
	};
	if (!entry.isSymbolicLink()) return {
		ok: false,
		why: "neither a file nor a folder"
	};
	const real = await realpath(path).catch(() => void 0);
	if (real === void 0) return {
		ok: false,
		why: "a link to nothing"
	};
	if (real !== root && !real.startsWith(root + sep)) return {
		ok: false,
		why: "a link that leaves the folder"
	};
	const stats = await stat(real);
	if (stats.isFile()) return {
		ok: true,
		path: real,
		stats
	};
	return {
		ok: false,
		why: "a link to something else than a file"
	};
}
function foundAt({ folder, entry }, { path, stats }) {
	return {
		path,
		subfolder: folder,
		filename: entry.name,
		sizeBytes: stats.size,
		modifiedAtMs: Math.round(stats.mtimeMs)
	};
}
function joinBelow(folder, name) {
	return folder === "" ? name : `${folder}/${name}`;
}
// src/cli/import/copy.ts
/** Returns a function that copies files into a folder. It never changes the original. */
function createFileCopier(dir) {
	return async (found) => {
		const path = join(dir, randomUUID());
		const error = await copyFrom(found.path, path);
		if (error) return {
			ok: false,
			why: reasonOf(error)
		};
		await chmod(path, 384);
		const file = {
			path,
			...await hashFile(path)
		};
		if (await isUnchanged(found, file)) return {
			ok: true,
			file
		};
		await rm(path, { force: true });
		return {
			ok: false,
			why: "changed while it was read, or was not read to its end"
		};
	};
}
async function isUnchanged(found, copy) {
	const stats = await lstat(found.path).catch(() => void 0);
	return stats?.isFile() === true && stats.size === found.sizeBytes && stats.size === copy.sizeBytes && Math.round(stats.mtimeMs) === found.modifiedAtMs;
}
// src/cli/import/files.ts
/** Several files at once, because each waits for a sync to the disk. */
const MAX_CONCURRENT = 8;
/** The size of a batch, whose files are recorded together. After a kill at most one batch is copied again. */
const BATCH = {
	files: 64,
	bytes: 268435456
};
/** Imports files into the ledger, each completely or not at all. Does not read files again that the ledger has. */
async function importFiles(options, { found, leftOut, failed }) {
	const result = {
		files: 0,
		bytes: 0,
		known: 0,
		leftOut: [...leftOut],
		failed: [...failed]
	};
	for (const batch of batchesOf(found)) {
		const copies = [];
		await forEachConcurrently(MAX_CONCURRENT, batch, async (file) => {
			const copy = await importBytes(options, file, result);
			if (copy) copies.push(copy);
			options.onFile(file);
		});
		const recorded = await record(options, copies, result);
		const { files: count, bytes } = totalOf(recorded.map(({ file }) => file));
		result.files += count;
		result.bytes += bytes;
		reached("import-recorded");
	}
	return result;
}
function* batchesOf(files) {
	let batch = [];
	for (const file of files) {
		batch.push(file);
		if (batch.length < BATCH.files && totalOf(batch).bytes < BATCH.bytes) continue;
		yield batch;
		batch = [];
	}
	yield batch;
}
/** Returns true when the row records this file, by its size and time. */
function isSameFile(row, found) {
	return row?.sizeBytes === found.sizeBytes && row.modifiedAtMs === found.modifiedAtMs;
}
function nameOf({ type, subfolder, filename }) {
	return posix.join(type, subfolder, filename);
}
/**
* Stores the bytes of a file. Returns the copy to record; `undefined` when the file is known, left out or unreadable.
*/
async function importBytes({ ledger, blobs, copy, user }, file, result) {
	const existing = await ledger.files.get(user, file);
	const name = nameOf(file);
	const copied = isSameFile(existing, file) ? ALREADY_HERE : await copy(file);
	if (copied === ALREADY_HERE) result.known++;
	else if (!copied.ok) result.failed.push({
		name,
		why: copied.why
	});
	else if (existing) await compareExisting({
		existing,
		name,
		file: copied.file
	}, result);
	else {
		await blobs.moveIntoPlace(copied.file);
		reached("import-bytes");
		return {
			file,
			copy: copied.file
		};
	}
}
const ALREADY_HERE = "known";
const NAME_TAKEN = "the name means another file here";
/** Compares a file with the one that has its name here. The name keeps its file. */
async function compareExisting({ existing, name, file }, result) {
	await rm(file.path, { force: true });
	if (existing.hash === file.hash) result.known++;
	else result.leftOut.push({
		name,
		why: NAME_TAKEN
	});
}
/**
* Records copies and returns those that got their names. A server may have given a name to another file meanwhile.
*
* All writes begin in the same turn of the event loop, so SQLite makes one transaction of them. In Redis a kill may
* leave a record without a name; a later sweep may remove it.
*/
async function record(options, copies, { leftOut }) {
	const areNamed = await Promise.all(copies.map((copy) => recordOne(options, copy)));
	const recorded = copies.filter((_, at) => areNamed[at]);
	await Promise.all(recorded.map(({ copy }) => options.blobs.markRecorded(copy.hash)));
	for (const [at, { file }] of copies.entries()) if (areNamed[at] !== true) leftOut.push({
		name: nameOf(file),
		why: NAME_TAKEN
	});
	return recorded;
}
async function recordOne({ ledger, user, now }, { file, copy }) {
	const { type, subfolder, filename, modifiedAtMs } = file;
	const { hash, sizeBytes } = copy;
	const commonFields = {
		user,
		hash,
		sizeBytes,
		contentType: contentTypeOf(filename) ?? "application/octet-stream"
	};
	const id = randomUUID();
	const filePath = nameOf(file);
	const [, isNamed] = await Promise.all([ledger.assets.insert(importedAsset({
		...commonFields,
		id,
		filePath,
		createdAtMs: now()
	})), ledger.files.claim({
		...commonFields,
		type,
		subfolder,
		filename,
		assetId: id,
		modifiedAtMs
	})]);
	if (!isNamed) await ledger.assets.remove(id);
	return isNamed;
}
/** Finds the files of `input` and `output` of a v1 server that can be imported. */
async function scanFiles(source, { maxUploadSize }) {
	const isKeptName = (name) => safeName(name) !== void 0;
	const rules = {
		maxBytes: Math.round(maxUploadSize * MEBIBYTE),
		isKeptName
	};
	const input = await scan(join(source, "input"), "input", rules);
	const output = await scan(join(source, "output"), "output", rules);
	return {
		found: [...input.found.map((file) => ({
			...file,
			type: "input"
		})), ...output.found.map((file) => ({
			...file,
			type: "output"
		}))],
		leftOut: [...input.leftOut, ...output.leftOut],
		failed: [...input.failed, ...output.failed]
	};
}
/**
* Returns warnings when the imported files leave little of the disk budget, and throws when they exceed it. Imported
* files are never removed automatically.
*/
async function budgetWarnings({ settings, ledger, user }, files) {
	let neededBytes = await ledger.assets.totalBytes();
	for (const file of files) if (!isSameFile(await ledger.files.get(user, file), file)) neededBytes += file.sizeBytes;
	const budgetBytes = settings.diskBudget * MEBIBYTE;
	const advisedMegabytes = Math.ceil(neededBytes / .8 / MEBIBYTE);
	if (neededBytes > budgetBytes) throw new InvalidSetting(`with these files ${megabytes(neededBytes)} would be stored, and --disk-budget is ${settings.diskBudget} MB: set it to at least ${advisedMegabytes} here and for the server`);
	if (neededBytes <= budgetBytes * .8) return [];
	return [`Little of --disk-budget (${settings.diskBudget} MB) is left for new results, which are removed first when it is used up: start the server with at least --disk-budget ${advisedMegabytes}.`];
}
/** Throws when the files exceed the quota of a user, who then could save no more files. */
function refuseQuota({ found }, { userdataQuota }) {
	const { bytes } = totalOf(found);
	if (bytes <= userdataQuota * 1048576) return;
	throw new InvalidSetting(`the user's files are ${megabytes(bytes)}, and --userdata-quota is ${userdataQuota} MB: set it higher, here and for the server`);
}
// src/cli/import/report.ts
/** Returns the text that is printed at the end. It lists everything that was left out. */
function reportText(outcome) {
	const { source, dataDir, files, account, user, others, warnings } = outcome;
	return `${[
		`Imported ${printableName(source)} into ${printableName(dataDir)}.`,
		files ? filesLine(files) : REMOTE_UPSTREAM,
		`User ${accountText(account)}: ${settingsText(user)}; ${fileCount(user.files)}${alreadyHereText(user.known)}.`,
		...list("Left out", [...files?.leftOut ?? [], ...user.leftOut]),
		...list("Could not be read; run the import again once they can", failuresOf(outcome)),
		...others.map((other) => `User ${accountText(other)} was left: --user ${printableName(other.id)} imports it.`),
		...warnings,
		"History is not imported: prompts in saved pictures stay in the pictures."
	].join("\n")}\n`;
}
/** Returns the files that could not be read. Another run may import them. */
function failuresOf({ files, user }) {
	return [...files?.failed ?? [], ...user.failed];
}
const REMOTE_UPSTREAM = "Inputs and outputs were left: a remote upstream has its own. Start the server with --input-directory, and inputs are uploaded when a prompt names them.";
function filesLine({ files, bytes, known }) {
	return `Inputs and outputs: ${fileCount(files)}, ${megabytes(bytes)}${alreadyHereText(known)}.`;
}
function settingsText({ settings, keptSettings }) {
	const kept = keptSettings === 0 ? "" : ` (${keptSettings} more are set here already)`;
	return `${settings} ${settings === 1 ? "setting" : "settings"}${kept}`;
}
function fileCount(files) {
	return `${files} ${files === 1 ? "file" : "files"}`;
}
function alreadyHereText(known) {
	return known === 0 ? "" : ` (${known} more were here already)`;
}
function accountText({ id, name }) {
	return id === name ? printableName(id) : `${printableName(name)} (${printableName(id)})`;
}
function list(title, items) {
	if (items.length === 0) return [];
	return [`${title}:`, ...items.map(({ name, why }) => `  ${printableName(name)}: ${why}`)];
}
// src/cli/import/user-data.ts
const SETTINGS = "comfy.settings.json";
const MOST_SETTINGS_BYTES = 16777216;
/** Returns the users that have a folder. Without multi-user mode this is only `default`. */
async function accountsIn(folder) {
	const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
	const names = await namesIn(folder);
	return entries.filter((entry) => entry.isDirectory() && /^[^_.]/.test(entry.name)).map(({ name: id }) => ({
		id,
		name: names.get(id) ?? id
	}));
}
/** Finds the files of a user. Leaves out the settings, which the ledger has here. */
async function scanUserFolder(folder, label) {
	const scanned = await scan(folder, label, {
		maxBytes: Infinity,
		isKeptName
	});
	const found = scanned.found.filter((file) => pathOf(file) !== SETTINGS);
	return {
		...scanned,
		found
	};
}
/** Imports the settings and files of a user. Never changes settings and files that the user already has here. */
async function importUser(deps, folder, { found, leftOut, failed }) {
	const result = {
		settings: 0,
		keptSettings: 0,
		files: 0,
		known: 0,
		leftOut: [...leftOut],
		failed: [...failed]
	};
	await importSettings(deps, join(folder, SETTINGS), result);
	for (const file of found) {
		await importFile(deps, file, result);
		deps.onFile(file);
	}
	return result;
}
async function importSettings({ settings, user, label }, path, result) {
	const given = await readSettings(path);
	if (typeof given === "string") return void result.failed.push({
		name: `${label}/${SETTINGS}`,
		why: given
	});
	const existingSettings = await settings.all(user);
	const newSettings = Object.entries(given).filter(([id]) => !Object.hasOwn(existingSettings, id));
	result.settings = newSettings.length;
	result.keptSettings = Object.keys(given).length - newSettings.length;
	await settings.merge(user, Object.fromEntries(newSettings));
}
/**
* Returns the settings as JSON texts, by id, or the reason why they cannot be read. Returns none when the file does
* not exist.
*/
async function readSettings(path) {
	try {
		const stats = await lstat(path).catch(() => void 0);
		if (stats === void 0) return {};
		if (!stats.isFile() || stats.size > MOST_SETTINGS_BYTES) return "is no settings file";
		const value = parseJson(await readFile(path, "utf8"));
		if (!isJsonObject(value)) return "is no settings file";
		return Object.fromEntries(Object.entries(value).map(([id, setting]) => [id, stringifyJson(setting)]));
	} catch (error) {
		return error instanceof SyntaxError ? "is no JSON" : reasonOf(error);
	}
}
async function importFile(deps, file, result) {
	const path = pathOf(file);
	const name = `${deps.label}/${path}`;
	const leaveOut = (why) => void result.leftOut.push({
		name,
		why
	});
	const safePath = safePathBelow(path);
	if (!safePath.ok) return leaveOut("unsafe name");
	const { userFiles } = deps;
	const target = await userFiles.look(safePath.path);
	if (target.kind === "file" && await userFiles.isSame(safePath.path, target.stats, file)) return void result.known++;
	if (target.kind !== "absent") return leaveOut("something of this name is here already");
	const copied = await deps.copy(file);
	if (!copied.ok) return void result.failed.push({
		name,
		why: copied.why
	});
	await userFiles.put(safePath.path, copied.file, file);
	result.files++;
}
/** Returns true for a safe name. It may begin with a dot: front ends store lists under such names. */
function isKeptName(name) {
	return safeName(name.replace(/^\.+/, "")) !== void 0;
}
function pathOf({ subfolder, filename }) {
	return subfolder === "" ? filename : `${subfolder}/${filename}`;
}
/** Returns the names of users by their ids, from `users.json`, which exists in multi-user mode only. */
async function namesIn(folder) {
	try {
		const value = parseJson(await readFile(join(folder, "users.json"), "utf8"));
		const entries = isJsonObject(value) ? Object.entries(value) : [];
		return new Map(entries.map(([id, name]) => [id, typeof name === "string" ? name : id]));
	} catch {
		return /* @__PURE__ */ new Map();
	}
}
// src/cli/import/user-files.ts
/**
* Stores the files in the data directory. They keep their modification times, by which a later import recognises
* them.
*/
function userFilesInFolder(root, user) {
	const folder = createUserDataStore({
		root,
		quotaBytes: Infinity
	}).folderFor(user);
	return {
		look: (path) => statPath(folder, path),
		async isSame(_path, { size, mtimeMs }, { sizeBytes, modifiedAtMs }) {
			return size === sizeBytes && Math.round(mtimeMs) === modifiedAtMs;
		},
		async put(path, copy, { modifiedAtMs }) {
			const modified = new Date(modifiedAtMs);
			await utimes(copy.path, modified, modified);
			await moveIntoPlace(copy, join(folder, path));
		}
	};
}
/** Stores the files in a bucket. The time of an object is that of its upload, so files are compared by their bytes. */
function userFilesInBucket(objects, user) {
	const store = createBucketUserData({
		objects,
		quotaBytes: Infinity
	});
	const keyOf = (path) => `${store.folderFor(user)}/${path}`;
	return {
		look: (path) => store.look(user, path),
		async isSame(path, { size }, { path: source, sizeBytes }) {
			if (size !== sizeBytes) return false;
			const stream = await objects.open(keyOf(path));
			return stream !== void 0 && await hashOfStream(stream) === (await hashFile(source)).hash;
		},
		async put(path, copy) {
			await objects.putFile(keyOf(path), copy);
			await rm(copy.path, { force: true });
		}
	};
}
// src/cli/import.ts
const SERVER_OPTIONS = [
	"dataDir",
	...FILES_FLAGS,
	"maxUploadSize",
	"diskBudget",
	"userdataQuota",
	"upstream",
	"ledger"
];
/** `holdover import DIR`: imports the files of a v1 server. Resolves with the exit code. */
function importCommand(argv) {
	const command = new Command("holdover import").description("Adopts inputs, outputs, settings and workflows of a v1 server. Nothing of it is changed; run again, it goes on where it stopped.").argument("<DIR>", "folder of the v1 server, with input, output and user in it").option("--user <ID>", "whose settings and workflows, by the name of the folder", "default");
	return runCommand(addServerOptions(command, SERVER_OPTIONS), argv, run, String);
}
async function run(command) {
	const [source = ""] = command.args;
	const settings = command.opts();
	if (![
		"input",
		"output",
		"user"
	].map((name) => join(source, name)).some((folder) => existsSync(folder))) throw new InvalidSetting(`${printableName(source)} has neither input nor output nor user in it`);
	const accounts = await accountsIn(join(source, "user"));
	const account = findAccount(accounts, settings.user);
	const files = filesSource(settings, process.env);
	const places = {
		ledger: ledgerSource(settings.ledger),
		dataDir: settings.dataDir,
		files
	};
	return withOpen(await openStore(places, createLogger({ level: "warn" })), async (store) => {
		const outcome = await importAll({
			source,
			settings,
			account,
			accounts
		}, store);
		process.stdout.write(reportText(outcome));
		return failuresOf(outcome).length === 0 ? 0 : 1;
	});
}
/** With Redis, returns blobs that are safe to write while servers that share the ledger remove blobs. */
async function blobsOf({ links, ledger, files: { blobs } }) {
	if (links === void 0) return blobs;
	const { createSharedBlobs } = await import("./shared-blobs-C0oQS5jk.js").then((n) => n.r);
	const { createQueueKeys } = await import("./redis-keys-Pwz_6M3Y.js").then((n) => n.r);
	const keys = createQueueKeys(links.partitions);
	return createSharedBlobs({
		redis: links.commands,
		keys,
		blobs,
		ledger,
		clock: systemClock
	});
}
function findAccount(accounts, id) {
	const account = accounts.find((candidate) => candidate.id === id);
	if (account || id === "default") return account ?? {
		id,
		name: id
	};
	const names = accounts.map((candidate) => printableName(candidate.id)).join(", ") || "none";
	throw new InvalidSetting(`there is no user ${printableName(id)}; there are: ${names}`);
}
async function importAll({ source, settings, account, accounts }, store) {
	const { dir, ledger } = store;
	const { dataDir } = settings;
	const scannedFiles = settings.upstream !== "embedded" ? void 0 : await scanFiles(source, settings);
	const found = scannedFiles?.found ?? [];
	const warnings = await budgetWarnings({
		settings,
		ledger,
		user: LOCAL_USER
	}, found);
	const userFolder = join(source, "user", account.id);
	const label = `user/${account.id}`;
	const scanned = await scanUserFolder(userFolder, label);
	refuseQuota(scanned, settings);
	const progress = createProgress();
	const onBytes = progress.start(totalOf([...found, ...scanned.found]));
	const common = {
		copy: createFileCopier(dir.spool),
		user: LOCAL_USER,
		onFile: (file) => onBytes(file.sizeBytes)
	};
	try {
		const blobs = await blobsOf(store);
		const files = scannedFiles && await importFiles({
			...common,
			ledger,
			blobs,
			now: Date.now
		}, scannedFiles);
		const userFiles = userFilesOf(store);
		return {
			source,
			dataDir,
			files,
			account,
			user: await importUser({
				...common,
				settings: ledger.settings,
				userFiles,
				label
			}, userFolder, scanned),
			others: accounts.filter(({ id }) => id !== account.id),
			warnings
		};
	} finally {
		progress.stop();
	}
}
function userFilesOf({ dir, files: { bucket } }) {
	return bucket ? userFilesInBucket(bucket.objects, LOCAL_USER) : userFilesInFolder(dir.userData, LOCAL_USER);
}
export { importCommand };
