import { i as nodesOf } from "./redis-CtygY6In.js";
import { n as ledgerIdKeys } from "./redis-partitions-DnZR4QBP.js";
// src/ledger/redis/stored-keys.ts
const KEYS_AT_A_TIME = 1e3;
/** The names of the keys that a ledger without records has. */
const EMPTY_KEYS = [
	"id",
	"schema",
	"partitions"
];
const LOST = "a node of the cluster has lost its data, or has the data of another ledger";
const ONE_REDIS = "has the keys of a single Redis: start that Redis again, and copy its ledger with \"holdover migrate\"";
/** Stores the id of a new ledger in all partitions. Throws when a partition does not have the id of this ledger. */
async function bindPartitions(links, id) {
	const { cluster, commands, prefix, partitions } = links;
	if (!cluster) return;
	const key = `${prefix}partitions`;
	const count = String(partitions.users.length);
	const readIds = () => Promise.all(ledgerIdKeys(partitions).map((name) => commands.get(name)));
	if (await commands.get(key) === null) {
		const isUnused = await isUnusedRedis(links);
		const [, ...tagged] = await readIds();
		if (!isUnused && await commands.get(key) === null) throw new Error(tagged.some((one) => one !== null) ? LOST : ONE_REDIS);
		await Promise.all(ledgerIdKeys(partitions).map((name) => commands.set(name, id, "NX")));
		await commands.set(key, count, "NX");
	}
	const found = await commands.get(key);
	if (found !== count) throw new Error(`has ${found} partitions instead of ${count}`);
	if ((await readIds()).some((one) => one !== id)) throw new Error(LOST);
}
/** The keys that match a pattern of `SCAN`; a key may come twice. */
async function* keysLike(links, match) {
	for (const node of await nodesOf(links, "master")) {
		const found = node.scanStream({
			match,
			count: KEYS_AT_A_TIME
		});
		for await (const keys of found) yield* keys;
	}
}
/** True when this Redis or cluster has no records of Holdover. */
async function isUnusedRedis(links) {
	const empty = new Set(links.partitions.starts.flatMap((start) => EMPTY_KEYS.map((name) => start + name)));
	for await (const key of keysLike(links, `${links.prefix}*`)) if (!empty.has(key)) return false;
	return true;
}
export { bindPartitions, isUnusedRedis, keysLike };
