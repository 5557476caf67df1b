import { r as __exportAll } from "./rolldown-runtime-C1I3wEg2.js";
import { n as ledgerIdKeys } from "./redis-partitions-DnZR4QBP.js";
// src/upstreams/distributed-state/redis-keys.ts
var redis_keys_exports = /* @__PURE__ */ __exportAll({ createQueueKeys: () => createQueueKeys });
/** The queue's name in the keys of BullMQ. */
const QUEUE_NAME = "queued-jobs";
/** Makes the keys and channels of the queue and its jobs. */
function createQueueKeys({ queue: { prefix, channels, publish }, starts }) {
	const run = (id) => `${prefix}run:${id}`;
	const bullPrefix = `${prefix}bull`;
	const ofBull = `${bullPrefix}:${QUEUE_NAME}:`;
	return {
		/** Each key begins with this. */
		prefix,
		/** The state of an unfinished job, a hash. */
		run,
		/** The events of an unfinished job, a stream. */
		eventStream: (id) => `${run(id)}:events`,
		/** The channel of the events of a job. */
		eventChannel: (id) => `${channels}run:${id}:live`,
		/** The channel on which a worker gets the ids of jobs to cancel. */
		cancelChannel: (worker) => `${channels}run:${worker}:cancel`,
		/** The prefix of both channels, before the id of a job or worker. */
		runChannels: `${channels}run:`,
		/** The command that publishes on these channels. */
		publish,
		/** The highest `order` that ever entered the queue. */
		highestOrder: `${prefix}queue:highest`,
		/** Exists while the next removal of bytes without a record is not due. */
		unrecordedSweep: `${prefix}queue:orphans`,
		/** The last number in the names of a user's files that begin with `start`. */
		nameCounter: (user, start) => `${prefix}names:counter:${user}:${start}`,
		/** Reserves the path of a user's file until its record is written. */
		nameClaim: (user, path) => `${prefix}names:claim:${user}:${path}`,
		/** Exists for bytes that were just moved into place and may have no record yet. */
		pendingBlob: (hash) => `${prefix}adopted:${hash}`,
		/** The keys with the id of the ledger. The key is missing in a partition that has lost its data. */
		ledgerIds: ledgerIdKeys({ starts }),
		/** The prefix of all keys of BullMQ. */
		bullPrefix,
		/** The prefix of the keys of BullMQ's jobs, before the id. */
		ofBull,
		/** BullMQ's waiting jobs, a sorted set. */
		waiting: `${ofBull}prioritized`
	};
}
export { createQueueKeys as n, redis_keys_exports as r, QUEUE_NAME as t };
