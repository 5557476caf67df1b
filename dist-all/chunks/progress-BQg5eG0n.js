import { t as require_cli_progress } from "./cli-progress-Dy-6gZtb.js";
import { n as hashFile } from "./hash-DYRd5MjV.js";
import { i as undefinedIfAbsent } from "./durability-qSQjSt39.js";
import { a as lockFile, j as moveIntoPlace, n as LedgerInUse } from "./sqlite-ledger-SmMeTYVz.js";
import { n as realPathOf, t as isWithin } from "./shared-folders-RGsbpqTI.js";
import { i as megabytes } from "./shared-options-w18JUnf5.js";
import { chmod, copyFile, link, lstat, mkdir, readdir, rm, utimes } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { constants as constants$1 } from "node:fs";
import { randomUUID } from "node:crypto";
// src/cli/backup/copy.ts
/**
* Copies a file. `to` is written only when the copy is complete, synced to the disk, and has the expected hash. `dir`
* is the folder for the copy until then. Throws when the copy cannot be written.
*/
async function copyTo(from, to, options) {
	const stats = await undefinedIfAbsent(lstat(from));
	if (stats === void 0) return {
		ok: false,
		why: "absent"
	};
	if (!stats.isFile()) return {
		ok: false,
		why: "unreadable"
	};
	const path = join(options.dir, randomUUID());
	try {
		const error = await copyFrom(from, path);
		if (error) return {
			ok: false,
			why: error.code === "ENOENT" ? "absent" : "unreadable"
		};
		await chmod(path, 384);
		const read = await hashFile(path);
		if (options.hash !== void 0 && read.hash !== options.hash) return {
			ok: false,
			why: "not the bytes of its name"
		};
		await utimes(path, stats.atime, stats.mtime);
		await moveIntoPlace({ path }, to);
		return {
			ok: true,
			...read,
			modifiedAtMs: Math.round(stats.mtimeMs)
		};
	} finally {
		await rm(path, { force: true });
	}
}
/** Makes a hard link to a file that no process changes in place. Returns false when that is not possible. */
async function linkTo(from, to, sizeBytes) {
	try {
		await mkdir(dirname(to), {
			recursive: true,
			mode: 448
		});
		if ((await lstat(from)).size !== sizeBytes) return false;
		await link(from, to);
		return true;
	} catch {
		return false;
	}
}
/**
* Copies a file. On file systems with copy-on-write the two share their blocks. Returns an error of reading the
* original, and leaves no copy then. Throws an error of writing the copy.
*/
async function copyFrom(from, to) {
	try {
		await copyFile(from, to, constants$1.COPYFILE_FICLONE | constants$1.COPYFILE_EXCL);
		return;
	} catch (cause) {
		await rm(to, { force: true });
		const error = cause;
		if (error.code === "ENOENT" && await undefinedIfAbsent(lstat(from)) === void 0 || error.code === "EIO" || error.code === "EACCES") return error;
		throw error;
	}
}
/** Returns the plain files below a folder, as paths relative to it. Returns none when the folder does not exist. */
async function filesBelow(folder) {
	return (await undefinedIfAbsent(readdir(folder, {
		recursive: true,
		withFileTypes: true
	})) ?? []).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}
/** Takes the lock. Returns `undefined` when another process has it. */
function tryLock(path) {
	try {
		return lockFile(path);
	} catch (error) {
		if (error instanceof LedgerInUse) return void 0;
		throw error;
	}
}
/** Returns the text of the error about a data folder that a server uses. */
function inUseText(dataDir) {
	return `the data folder ${dataDir} is in use by a running Holdover: stop it first`;
}
/** Throws when one folder is inside the other: a backup inside the data folder would be lost with it. */
function refuseNested(backups, dataDir) {
	const [one, other] = [realPathOf(resolve(backups)), realPathOf(resolve(dataDir))];
	if (!isWithin(one, other) && !isWithin(other, one)) return;
	throw new Error(`backups (${backups}) and data folder (${dataDir}) must be separate: one is inside the other`);
}
// src/cli/progress.ts
var import_cli_progress = require_cli_progress();
/** Returns the number of files and their size. */
function totalOf(files) {
	return {
		files: files.length,
		bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
	};
}
/** Shows the progress of a command: as a bar on a terminal, otherwise as a line every two seconds. */
function createProgress(out = process.stderr) {
	let shown;
	const stop = () => shown?.stop();
	const start = (total) => {
		stop();
		let [items, bytes] = [0, 0];
		shown = out.isTTY ? bar(out, total) : lines(out);
		return (more) => {
			items++;
			bytes += more;
			shown?.show(textOf(total, items, bytes), items + bytes);
		};
	};
	return {
		start,
		stop
	};
}
function bar(stream, total) {
	const shown = new import_cli_progress.SingleBar({
		stream,
		format: "{bar} {percentage}%  {done}  {eta_formatted} left",
		barsize: 20,
		linewrap: true,
		etaBuffer: 200
	});
	const length = "records" in total ? total.records : total.bytes + total.files;
	shown.start(length, 0, { done: textOf(total, 0, 0) });
	return {
		show: (done, value) => shown.update(value, { done }),
		stop: () => shown.stop()
	};
}
const LINE_EVERY_MS = 2e3;
function lines(out) {
	let printedAtMs = Date.now();
	return {
		show(text) {
			if (Date.now() - printedAtMs < LINE_EVERY_MS) return;
			printedAtMs = Date.now();
			out.write(`${text}\n`);
		},
		stop() {}
	};
}
function textOf(total, items, bytes) {
	if ("records" in total) return `${items} of ${total.records} records`;
	return `${items} of ${total.files} files, ${megabytes(bytes)}`;
}
export { filesBelow as a, refuseNested as c, copyTo as i, tryLock as l, totalOf as n, inUseText as o, copyFrom as r, linkTo as s, createProgress as t };
