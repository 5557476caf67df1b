import { createHash } from "node:crypto";
// src/redis/redis-partitions.ts
/**
* Do not change these tags: stored keys contain them. They are the tags of the partitions of users. Their slots have
* equal distances, so that nodes with equal ranges of slots have equally many partitions.
*/
const CLUSTER_TAGS = [
	10,
	263,
	25,
	32,
	171,
	166,
	58,
	153,
	11,
	262,
	24,
	33,
	170,
	167,
	59,
	152,
	102,
	115,
	137,
	5,
	63,
	74,
	56,
	41,
	103,
	114,
	136,
	4,
	62,
	75,
	57,
	40
];
/** The keys that store the id of the ledger. In a cluster each partition has one, because a cluster can lose a node's data. */
function ledgerIdKeys({ starts }) {
	return starts.map((start) => `${start}id`);
}
/** The partitions of a single Redis: one for all users and the queue, without a tag in its keys. */
function singlePartition(prefix, database) {
	const only = {
		prefix,
		channels: database === 0 ? prefix : `${prefix}${database}:`,
		publish: "PUBLISH"
	};
	return {
		...only,
		queue: only,
		users: [only],
		starts: [prefix],
		indexOf: () => 0
	};
}
/** The partitions of a Redis Cluster. */
function clusterPartitions(prefix) {
	const tagged = (tag) => {
		const start = `${prefix}{${tag}}:`;
		return {
			prefix: start,
			channels: start,
			publish: "SPUBLISH"
		};
	};
	const queue = tagged("queue");
	const users = CLUSTER_TAGS.map((tag) => tagged(String(tag)));
	return {
		prefix,
		channels: prefix,
		queue,
		users,
		starts: [prefix, ...[queue, ...users].map((partition) => partition.prefix)],
		indexOf: (user) => createHash("sha256").update(user).digest().readUInt32BE(0) % CLUSTER_TAGS.length
	};
}
export { ledgerIdKeys as n, singlePartition as r, clusterPartitions as t };
