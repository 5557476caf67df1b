import { t as require_cjs } from "./cjs-B5a7sYc3.js";
import { n as createQueueKeys, t as QUEUE_NAME } from "./redis-keys-Pwz_6M3Y.js";
// src/upstreams/distributed-state/queue-condition.ts
var import_cjs = require_cjs();
/** The queue is stalled when jobs wait for this long and none runs, although there are workers. */
const STALLED_AFTER_MS = 3e4;
/**
* Returns a function that reads why waiting jobs of the shared queue do not run. `undefined`: nothing prevents them.
* It rejects when Redis does not answer.
*/
function createQueueCondition(links, clock) {
	const queue = openQueue(links);
	let idleSinceMs;
	return async () => {
		const [isPaused, workers, counts] = await Promise.all([
			queue.isPaused(),
			workersOf(queue),
			queue.getJobCounts("wait", "prioritized", "active")
		]);
		idleSinceMs = (counts["wait"] ?? 0) + (counts["prioritized"] ?? 0) > 0 && counts["active"] === 0 ? idleSinceMs ?? clock.now() : void 0;
		if (isPaused) return "paused";
		if (workers === 0) return "no_worker";
		return idleSinceMs !== void 0 && clock.now() - idleSinceMs >= STALLED_AFTER_MS ? "stalled" : void 0;
	};
}
/** Returns a function that counts the workers of the shared queue. `undefined`: the number is not known. */
function createWorkerCount(links) {
	const queue = openQueue(links);
	return () => workersOf(queue);
}
function openQueue({ commands: connection, partitions }) {
	const { bullPrefix: prefix } = createQueueKeys(partitions);
	const queue = new import_cjs.Queue(QUEUE_NAME, {
		connection,
		prefix,
		skipMetasUpdate: true
	});
	queue.on("error", () => {});
	return queue;
}
/** The number of workers; `undefined` when Redis does not let this user list connections. */
async function workersOf(queue) {
	try {
		return await queue.getWorkersCount();
	} catch (error) {
		if (error.name === "ReplyError") return void 0;
		throw error;
	}
}
export { createQueueCondition, createWorkerCount };
