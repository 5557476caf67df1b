import { f as InvalidSetting, t as ledgerSource, u as silentLogger } from "./ledger-B4DYGOuk.js";
import { CommanderError } from "commander";
// src/cli/printable-name.ts
/** Characters that a terminal does not print, or that are commands for it. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;
/** Returns a text that is safe to print on a terminal: control characters are escaped. */
function printableName(name) {
	return name.replace(UNPRINTABLE, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
/** Returns a size as text, for example `1.5 MB` (1 MB is 2^20 bytes). */
function megabytes(bytes) {
	return `${(bytes / 2 ** 20).toFixed(1)} MB`;
}
// src/cli/with-open.ts
/** Calls `work` with something that is open, and closes it afterwards, also after an error. */
async function withOpen(opened, work) {
	try {
		return await work(opened);
	} finally {
		await opened?.close();
	}
}
// src/cli/shared-options.ts
/** Parses the arguments and runs the command. Returns the exit code: 2 for invalid arguments, 1 for any other error. */
async function runCommand(command, argv, run, shown = printableName) {
	try {
		command.exitOverride().parse([...argv], { from: "user" });
		return await run(command);
	} catch (error) {
		if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
		process.stderr.write(`error: ${shown(error instanceof Error ? error.message : String(error))}\n`);
		return error instanceof InvalidSetting ? 2 : 1;
	}
}
/**
* Calls `work` with the Redis of these settings, or with `undefined` when the ledger is SQLite. Closes it afterwards.
*/
async function withRedis({ ledger }, work) {
	const source = ledgerSource(ledger);
	if (source.kind === "sqlite") return work(void 0);
	const { openSharedRedis } = await import("./open-shared-PHE3AM5a.js");
	return withOpen(await openSharedRedis({
		url: source.url,
		log: silentLogger()
	}), work);
}
export { printableName as a, megabytes as i, withRedis as n, withOpen as r, runCommand as t };
