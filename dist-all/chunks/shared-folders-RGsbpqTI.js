import { g as InvalidSetting } from "./ledger-Bul7BDb8.js";
import { resolve, sep } from "node:path";
import { mkdirSync, realpathSync, statSync } from "node:fs";
// src/config/shared-folders.ts
/**
* Makes the plain folders that are shared with other programs, and refuses those through which the
* data directory could be read or written; `undefined`: there is none.
*/
function sharedDirectories(flags) {
	return {
		inputDirectory: requireDirectory("--input-directory", flags.inputDirectory, flags.dataDir),
		outputDirectory: requireDirectory("--output-directory", flags.outputDirectory, flags.dataDir)
	};
}
function requireDirectory(flag, given, dataDir) {
	if (given === void 0 || given === "") return void 0;
	const folder = createDirectory(flag, given);
	const data = realPathOf(resolve(dataDir));
	if (!isWithin(folder, data) && !isWithin(data, folder)) return folder;
	throw new InvalidSetting(`option '${flag}' and --data-dir must not lie in one another: ${folder}`);
}
function createDirectory(flag, given) {
	try {
		mkdirSync(given, { recursive: true });
		if (statSync(given).isDirectory()) return realpathSync(given);
	} catch (cause) {
		const reason = cause instanceof Error ? cause.message : String(cause);
		throw new InvalidSetting(`option '${flag}' cannot be used: ${reason}`);
	}
	throw new InvalidSetting(`option '${flag}' needs a folder, not '${given}'`);
}
/** A folder that is not there yet will be where its parent really is. */
function realPathOf(path) {
	try {
		return realpathSync(path);
	} catch {
		const parent = resolve(path, "..");
		return parent === path ? path : resolve(realPathOf(parent), path.slice(parent.length).replace(/^[\\/]/, ""));
	}
}
/** True when a path is the folder, or below it. */
function isWithin(path, folder) {
	return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
export { realPathOf as n, sharedDirectories as r, isWithin as t };
