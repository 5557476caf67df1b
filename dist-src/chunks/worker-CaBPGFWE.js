import { r as filesSource, t as FILES_FLAGS } from "./files-IQBw9w4W.js";
import { n as addServerOptions } from "./flags-x94JVf1p.js";
import { _ as withoutCredentialsIn, f as InvalidSetting, o as createLogger, s as logProcessErrors, t as ledgerSource } from "./ledger-B4DYGOuk.js";
import { i as parseJsonObject, n as daysInMs, t as MEBIBYTE } from "./parse-values-BhHfAkud.js";
import { b as openTracing, t as DEFAULT_LIMITS } from "./job-engine-CEUdsca2.js";
import { t as ALL_NODES } from "./library-CGWaePEd.js";
import { n as tracingSettings, t as stopSignal } from "./stop-signal-73okoSDz.js";
import { t as packageVersion } from "./version-eXUY6IRP.js";
import { createDistributedEngine } from "./distributed-engine-DB-xugGO.js";
import { t as openStore } from "./store-DmnZ7I1J.js";
import { t as runCommand } from "./shared-options-ihEXDHvk.js";
import { Command } from "commander";
// src/cli/worker.ts
/** The settings of the server that also apply to a worker. */
const OPTIONS = [
	"ledger",
	"workerLimits",
	"dataDir",
	...FILES_FLAGS,
	"concurrency",
	"jobTimeout",
	"jobMemory",
	"diskBudget",
	"retentionDays",
	"logLevel"
];
/** `holdover worker`: runs jobs of the queue until a signal stops it. Resolves with the exit code. */
function workerCommand(argv) {
	const command = new Command("holdover worker").description("Runs jobs of a Holdover whose ledger is in Redis; answers no calls of clients.");
	return runCommand(addServerOptions(command, OPTIONS), argv, run, withoutCredentialsIn);
}
async function run(command) {
	const settings = command.opts();
	const ledger = ledgerSource(settings.ledger);
	if (ledger.kind !== "redis") throw new InvalidSetting("a worker needs the '--ledger redis://…' of the servers it works for");
	if (settings.concurrency === 0) throw new InvalidSetting("a worker needs a '--concurrency' of 1 or more");
	if (settings.dataDir === "") throw new InvalidSetting("option '--data-dir' needs the name of a folder");
	const takeover = parseJsonObject("--worker-limits", settings.workerLimits);
	const places = {
		ledger,
		dataDir: settings.dataDir,
		files: filesSource(settings, process.env)
	};
	const log = createLogger({ level: settings.logLevel });
	logProcessErrors(log);
	try {
		return await runWorker({
			settings,
			places,
			takeover
		}, log);
	} catch (error) {
		log.debug({
			event: "worker.start_failed",
			err: error
		}, "the start failed");
		throw error;
	}
}
async function runWorker({ settings, places, takeover }, log) {
	const { concurrency } = settings;
	const stopped = stopSignal();
	const store = await openStore(places, log);
	const { ledger, dir, links } = store;
	if (links === void 0) throw new Error("a worker needs a ledger in Redis");
	const options = {
		version: packageVersion(),
		log
	};
	const tracing = await openTracing(tracingSettings(process.env), options);
	const worker = await createDistributedEngine({
		ledger,
		links,
		dataDir: dir.root,
		blobs: store.files.blobs,
		spoolDir: dir.spool,
		nodes: ALL_NODES,
		log,
		takeover,
		spans: tracing?.runs,
		limits: {
			...DEFAULT_LIMITS,
			...limitsOf(settings)
		}
	});
	worker.start();
	process.stdout.write("Holdover worker is waiting for jobs\n");
	log.info({
		event: "worker.started",
		concurrency,
		dataDir: dir.root
	}, "waiting for jobs");
	const lost = await Promise.race([stopped.then(() => void 0), store.lost]);
	if (lost) {
		log.fatal({
			event: "storage.lost",
			err: lost
		}, `stopping: ${lost.message}`);
		return 1;
	}
	log.info({ event: "worker.stopping" }, "stopping");
	await worker.close();
	await tracing?.close();
	await store.close();
	return 0;
}
function limitsOf(settings) {
	return {
		concurrency: settings.concurrency,
		jobTimeMs: settings.jobTimeout * 1e3,
		jobMemoryBytes: settings.jobMemory * MEBIBYTE,
		assetBudgetBytes: settings.diskBudget * MEBIBYTE,
		retentionMs: daysInMs(settings.retentionDays)
	};
}
export { workerCommand };
