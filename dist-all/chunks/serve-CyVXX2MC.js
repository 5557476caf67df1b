import { n as parseConfig } from "./config-5SgzvvAe.js";
import { d as logProcessErrors, u as createLogger, x as withoutCredentialsIn } from "./ledger-Bul7BDb8.js";
import { t as stopSignal } from "./stop-signal-73okoSDz.js";
import "node:module";
import "node:path";
import { renameSync, writeFileSync } from "node:fs";
import { crc32 } from "node:zlib";
import { runInNewContext } from "node:vm";
import { getHeapCodeStatistics, setFlagsFromString } from "node:v8";
import { pid, versions } from "node:process";
// src/lib/collect-after-start.ts
/** After this time the server is idle, unless a client has called at once. */
const AFTER_START_MS$1 = 700;
/**
* Collects the garbage of the start soon after it. V8 would collect it during the first hundred
* prompts, and one of them would wait 20 ms. After a first collection V8 grows the heap before the
* next.
*/
function collectAfterStart() {
	setTimeout(collect, AFTER_START_MS$1).unref();
}
/**
* Collects now. Node has no call for this; V8 adds `gc` to contexts that are created while the flag
* is set.
*/
function collect() {
	setFlagsFromString("--expose-gc");
	const gc = runInNewContext("gc");
	setFlagsFromString("--no-expose-gc");
	gc();
}
// src/lib/delay-optimization.ts
const threshold = (/* @__PURE__ */ new Map([[11, {
	flag: "--interrupt-budget",
	byDefault: 67584,
	larger: 4e5
}], [13, {
	flag: "--invocation-count-for-maglev",
	byDefault: 400,
	larger: 2e3
}]])).get(Number.parseInt(versions.v8, 10));
/** By then the threads of a start have loaded Node's own modules. */
const AFTER_START_MS = 600;
let isDelayed = false;
/**
* Makes V8 optimize functions later, from soon after the start. A session of a hundred prompts ends
* before the optimized code has saved as much time as its compilation took:
* docs/decisions/delayed-optimization.md.
*/
function delayOptimization() {
	if (threshold) setTimeout(delay, AFTER_START_MS, threshold).unref();
}
function delay({ flag, larger }) {
	isDelayed = true;
	setFlagsFromString(`${flag}=${larger}`);
}
/**
* Acts under V8's own settings. V8 accepts compiled code only under the settings that it was made
* with.
*/
function withDefaultOptimization(act) {
	if (!isDelayed || !threshold) return act();
	const { flag, byDefault, larger } = threshold;
	setFlagsFromString(`${flag}=${byDefault}`);
	try {
		return act();
	} finally {
		setFlagsFromString(`${flag}=${larger}`);
	}
}
// src/lib/compile-cache.ts
/** The scripts by the file of the cache. */
const scripts = /* @__PURE__ */ new Map();
/**
* The size of the end of a file: how much code V8 had compiled when the data was made, and the CRC
* of the data.
*/
const TRAILER_BYTES = 8;
/** The data is replaced when the compiled code has grown by this factor. */
const GROWTH = 1.1;
/** Long after the start and the first calls. */
const SAVE_AFTER_MS = 1e4;
/**
* Saves the code that V8 has compiled at the end of the start, and again when the process ends, for
* later starts.
*/
function saveCompiledCode() {
	setTimeout(saveAll, SAVE_AFTER_MS).unref();
	process.once("exit", saveAll);
}
/** The bytes of V8's code when the saved data was made: the minimum of all files. */
let savedBytes = Infinity;
/** Saves all scripts. The code of the first prompts is compiled later than that of the start. */
function saveAll() {
	const codeBytes = getHeapCodeStatistics().bytecode_and_metadata_size;
	if (codeBytes <= savedBytes * GROWTH) return;
	savedBytes = codeBytes;
	for (const [file, script] of scripts) try {
		const data = withDefaultOptimization(() => script.createCachedData());
		const trailer = Buffer.alloc(TRAILER_BYTES);
		trailer.writeUInt32LE(codeBytes);
		trailer.writeUInt32LE(crc32(data), 4);
		const partial = `${file}.${pid}`;
		writeFileSync(partial, Buffer.concat([data, trailer]), { mode: 384 });
		renameSync(partial, file);
	} catch {}
}
// src/cli/serve.ts
/** Runs the server until a signal or an error ends the process. */
async function serve(argv) {
	const parsed = parseConfig(argv, process.env);
	if (parsed.kind === "exit") {
		(parsed.code === 0 ? process.stdout : process.stderr).write(parsed.text);
		process.exit(parsed.code);
	}
	const log = createLogger({
		level: parsed.config.logLevel,
		tracePrompt: parsed.config.tracePrompt
	});
	logProcessErrors(log);
	try {
		const { startServer } = await import("./server-DbarU6Tm.js");
		const server = await startServer(parsed.config, log);
		stopSignal().then(async (signal) => {
			log.info({
				event: "server.stopping",
				signal
			}, "stopping");
			await server.close();
			process.exit(0);
		});
		server.lost.then((error) => {
			log.fatal({
				event: "storage.lost",
				err: error
			}, `stopping: ${error.message}`);
			process.exit(1);
		});
		process.stdout.write(`To see the GUI go to: ${server.url}\n`);
		saveCompiledCode();
		delayOptimization();
		if (process.env["HOLDOVER_WARM_UP"] !== "off") collectAfterStart();
	} catch (error) {
		const message = error instanceof Error ? error.message : String(error);
		process.stderr.write(`error: ${withoutCredentialsIn(message)}\n`);
		log.debug({
			event: "server.start_failed",
			err: error
		}, "the start failed");
		process.exit(1);
	}
}
export { serve };
