import { n as askNodes } from "./redis-CtygY6In.js";
import { n as recordId, t as RECORD_KINDS } from "./records-BuFDbUDU.js";
import { MIGRATION_KEY, n as createLedgerConnection, r as joinKey, t as createTable } from "./open-shared-PHE3AM5a.js";
import { keysLike } from "./stored-keys-BBFKgPAt.js";
// src/cli/migrate/redis-records.ts
/** The first part of the keys of each kind. Each key has a Redis hash. */
const NAMES = {
	settings: "settings",
	calls: "call",
	modelCalls: "model-call",
	replays: "replay",
	assets: "asset",
	assetKeys: "asset-key",
	files: "file",
	jobs: "job",
	jobKeys: "key",
	prompts: "prompt"
};
/** The kinds whose rows have a number `seq`. In a cluster each partition counts for itself. */
const NUMBERED = /* @__PURE__ */ new Set([
	"assets",
	"files",
	"jobs"
]);
const ROWS_AT_A_TIME = 100;
const KEYS_AT_A_TIME = 1e3;
/** The records of a ledger in Redis. */
function redisLedgerRecords(links) {
	const { commands: redis, prefix, partitions } = links;
	const connection = createLedgerConnection(redis, partitions);
	const readers = connection.prefixes.map((start) => partitionReader(connection, start));
	const { of: startOf } = connection;
	async function* read(kind) {
		const ids = await idsOf(links, kind === "prompts" ? "prompts:done" : NAMES[kind]);
		const isOrdered = kind === "prompts" || NUMBERED.has(kind);
		const rows = [];
		for (const reader of readers) for await (const some of reader.read(kind, ids.get(reader.prefix) ?? [])) if (isOrdered) yield* some;
		else rows.push(...some);
		yield* sorted(kind, rows);
	}
	return {
		read: (kind) => read(kind),
		async writeKey(kind, { user, key, ...fields }) {
			const [id, keys] = [joinKey(user, key), `${startOf(user)}${NAMES[kind]}`];
			const cells = Object.entries(fields).flatMap(([name, value]) => value === null ? [] : [name, typeof value === "boolean" ? value ? "1" : "" : value]);
			await redis.hset(`${keys}:${id}`, ...cells);
			await redis.zadd(`${keys}s:age`, fields.claimedAtMs, id);
		},
		source: async () => await redis.get(`${prefix}migration`) ?? void 0,
		setSource: async (ledgerId) => void await redis.set(`${prefix}${MIGRATION_KEY}`, ledgerId),
		release: async () => void await redis.del(`${prefix}${MIGRATION_KEY}`)
	};
}
/** Reads the rows of one partition: their keys begin with this prefix. */
function partitionReader(connection, prefix) {
	const { redis } = connection;
	async function byNumber(name, ids) {
		const numbers = /* @__PURE__ */ new Map();
		for (const some of chunks(ids, KEYS_AT_A_TIME)) {
			const read = some.map(async (id) => {
				numbers.set(id, Number(await redis.hget(`${prefix}${name}:${id}`, "seq")));
			});
			await Promise.all(read);
		}
		return ids.toSorted((a, b) => (numbers.get(a) ?? 0) - (numbers.get(b) ?? 0));
	}
	/**
	* Returns the done prompts of each user in the order of history, then all others in the order of their submission.
	*/
	async function promptIds(users) {
		const ids = [];
		for (const user of users.toSorted()) ids.push(...await redis.zrange(`${prefix}prompts:done:${user}`, 0, "-1"));
		return [...ids, ...await redis.zrange(`${prefix}prompts:live`, 0, "-1")];
	}
	async function settingsOf(user) {
		const values = await redis.hgetall(`${prefix}settings:${user}`);
		return Object.entries(values).map(([id, valueJson]) => ({
			user,
			id,
			valueJson
		}));
	}
	/** Returns a function that reads rows of a kind by their ids. */
	function rowsReader(kind) {
		if (kind === "settings") return async (users) => (await Promise.all(users.map(settingsOf))).flat();
		const isKey = kind === "assetKeys" || kind === "jobKeys";
		const columns = Object.entries(RECORD_KINDS[kind].columns);
		const stored = isKey ? columns.filter(([name]) => !(name in KEY_OWNER)) : columns;
		const table = createTable(connection, NAMES[kind], Object.fromEntries(stored));
		if (!isKey) return (ids) => table.rows(prefix, ids);
		return (ids) => Promise.all(ids.map(async (id) => ({
			...ownerIn(id),
			...await table.find(prefix, id)
		})));
	}
	return {
		prefix,
		/**
		* Reads the rows of a kind. `ids` are those of the rows; for prompts, those of the users that have done prompts.
		*/
		async *read(kind, ids) {
			const wanted = kind === "prompts" ? await promptIds(ids) : ids;
			const inOrder = NUMBERED.has(kind) ? await byNumber(NAMES[kind], wanted) : wanted;
			const rowsOf = rowsReader(kind);
			for (const some of chunks(inOrder, ROWS_AT_A_TIME)) yield await rowsOf(some);
		}
	};
}
/** Returns the ids of all keys with this name, by the prefix of their partition. */
async function idsOf(links, name) {
	const starts = links.partitions.users.map(({ prefix }) => prefix);
	const found = new Map(starts.map((start) => [start, /* @__PURE__ */ new Set()]));
	const tag = links.cluster ? "{*}:" : "";
	for await (const key of keysLike(links, `${links.prefix}${tag}${name}:*`)) {
		const start = starts.find((one) => key.startsWith(`${one}${name}:`));
		if (start !== void 0) found.get(start)?.add(key.slice(`${start}${name}:`.length));
	}
	return new Map([...found].map(([start, ids]) => [start, [...ids]]));
}
/** Throws when a server or worker subscribes to channels of this Redis. */
async function refuseRedisInUse(links) {
	const kinds = links.cluster ? ["CHANNELS", "SHARDCHANNELS"] : ["CHANNELS"];
	if ((await askNodes(links, (node) => Promise.all(kinds.map((kind) => node.call("PUBSUB", kind, `${links.channels}*`))))).flat(2).length > 0) throw new Error("the ledger in Redis is in use: stop all servers and workers first");
}
function sorted(kind, rows) {
	return rows.map((row) => [recordId(kind, row), row]).toSorted(([a], [b]) => a < b ? -1 : 1).map(([, row]) => row);
}
/** The columns that are part of the key, and not in its hash. */
const KEY_OWNER = {
	user: true,
	key: true
};
/** Splits an id that `joinKey` made. */
function ownerIn(id) {
	const bytes = Buffer.from(id);
	const colon = bytes.indexOf(":");
	const end = colon + 1 + Number(bytes.toString("latin1", 0, colon));
	return {
		user: bytes.toString("utf8", colon + 1, end),
		key: bytes.toString("utf8", end + 1)
	};
}
function* chunks(items, size) {
	for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}
export { redisLedgerRecords, refuseRedisInUse };
