import { a as openRedis, c as accessOf, n as askNodes, s as withTimeouts, t as COMMAND_TIMEOUT_MS } from "./redis-CtygY6In.js";
import { a as withoutRedisLogin, r as redisNodes } from "./ledger-B4DYGOuk.js";
import { r as createProcessLeases, t as MAY_WRITE_LUA } from "./leases-C9MnyXjq.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { n as ledgerIdKeys } from "./redis-partitions-DnZR4QBP.js";
import { bindPartitions } from "./stored-keys-BBFKgPAt.js";
import { c as MODEL_CALL_COLUMNS, d as PROMPT_COLUMNS, f as REPLAY_COLUMNS, i as CLAIMED_ASSET_COLUMNS, n as ASSET_COLUMNS, o as FILE_COLUMNS, r as CALL_COUNT_COLUMNS, s as JOB_COLUMNS, t as createOutlineCache, u as OUTLINE_NAMES } from "./outline-cache-BLjCgPfz.js";
import { t as defineScripts } from "./redis-scripts-4m5gDXsy.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { LRUCache } from "lru-cache";
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { Redis } from "ioredis";
// src/ledger/redis/write-tokens.ts
/** Used when one process has the ledger: every write is allowed without a leader. */
const NO_LEADER = {
	token: () => "",
	refused: () => /* @__PURE__ */ new Error("another process leads this prompt")
};
// src/ledger/redis/cluster-mode.ts
const SLOTS = 16384;
const ONE_NODE = "is a node of a cluster: name several of its nodes, redis://HOST:PORT,HOST:PORT…";
const INCOMPLETE = "cannot be used: no node has some of the slots of the cluster";
const DOWN = "cannot be used: the cluster reports that it is down (cluster_state:fail)";
const MOVING = "cannot be used while slots of the cluster are moved: start again when that is done";
/** Matches the line of CLUSTER NODES about the node itself when it is moving a slot to or from another node. */
const MOVING_SLOT = /\bmyself\b.*\[\d+-[<>]-/;
/**
* Throws when no named node answers, or when one that answers is in no cluster, or in another cluster than the
* others. Logs the nodes that do not answer.
*/
async function checkNamedNodes(url, { log, withinMs }) {
	const named = redisNodes(url);
	const asked = await Promise.all(named.map((node) => askNode(node, url, withinMs)));
	const answers = asked.flatMap((answer) => "id" in answer ? [answer] : []);
	for (const answer of asked) {
		if ("id" in answer) continue;
		if (answers.length === 0) throw new Error(`cannot be used: ${answer.reason}`);
		log.warn({
			event: "redis.node_unreachable",
			...answer
		}, "a node of the Redis Cluster cannot be reached");
	}
	const [first] = answers;
	const foreign = answers.find(({ id }) => !first?.nodes.includes(id));
	if (first && foreign) throw new Error(`cannot be used: ${foreign.node} is not a node of the cluster of ${first.node}`);
}
/** Asks one node for its id and the nodes it knows. Throws when the node answers with an error. */
async function askNode({ host, port }, url, withinMs) {
	const node = `${host}:${port}`;
	const times = {
		connectTimeout: withinMs,
		commandTimeout: withinMs,
		enableReadyCheck: false
	};
	const once = {
		lazyConnect: true,
		retryStrategy: null,
		maxRetriesPerRequest: 0
	};
	const redis = new Redis({
		...accessOf(url),
		host,
		port,
		...times,
		...once
	});
	let reason = "it does not answer";
	redis.on("error", (error) => {
		reason = error.message || (error.code ?? reason);
	});
	try {
		await redis.connect();
		const [id, nodes] = [await redis.cluster("MYID"), await redis.cluster("NODES")];
		return {
			node,
			id: String(id),
			nodes: String(nodes)
		};
	} catch (error) {
		const { name, message } = error;
		if (name !== "ReplyError") return {
			node,
			reason
		};
		throw new Error(`cannot be used: ${node}: ${message}`, { cause: error });
	} finally {
		redis.disconnect();
	}
}
/**
* Throws when the single named Redis is a node of a cluster, or when the cluster cannot serve all slots now.
*/
async function checkClusterMode(links) {
	const { cluster, commands } = links;
	if (!cluster) {
		if ((await commands.info("cluster").catch(() => "")).includes("cluster_enabled:1")) throw new Error(ONE_NODE);
		return;
	}
	const info = String(await cluster.cluster("INFO"));
	if (!info.includes(`cluster_slots_assigned:${SLOTS}`)) throw new Error(INCOMPLETE);
	if (info.includes("cluster_state:fail")) throw new Error(DOWN);
	if ((await askNodes(links, (node) => node.cluster("NODES").then(String, () => ""))).some((lines) => MOVING_SLOT.test(lines))) throw new Error(MOVING);
}
// src/ledger/redis/connection.ts
/** Joins two parts of a key. Clients choose the parts, so the length of the first part comes before it. */
function joinKey(first, second) {
	return `${Buffer.byteLength(first)}:${first}:${second}`;
}
/**
* The ids in the members of an index whose scores may be equal. There a member begins with a sequence number of 16
* digits and a colon.
*/
function idsOf(members) {
	return members.map((member) => member.slice(17));
}
/** The connection of a ledger. Commands run in the order in which they are sent, awaited or not. */
function createLedgerConnection(redis, { users, indexOf }) {
	const prefixes = users.map(({ prefix }) => prefix);
	const all = (ask) => Promise.all(prefixes.map(ask));
	return {
		redis,
		/** The prefix of the keys of each partition. */
		prefixes,
		/** The prefix of the keys of a user. */
		of: (user) => prefixes[indexOf(user)],
		/** Calls `ask` for each partition; the replies are in the order of `prefixes`. */
		all,
		everywhere: async (act) => void await all(act),
		sum: async (ask) => (await all(ask)).reduce((total, one) => total + one, 0),
		/** Sends at once; an error gets the message that the ledger could not be read, or written. */
		read: (send) => withReason("read", send),
		write: async (send) => void await withReason("written", send),
		/** A stored number; 0 when the key does not exist. */
		number: async (prefix, key) => Number(await withReason("read", () => redis.get(`${prefix}${key}`))),
		/**
		* Defines scripts, which run wholly or not at all. The first argument of each call is the prefix of the
		* partition. Texts in a reply are Buffers.
		*/
		scripts: (store, lua, done = "written") => defineScripts(redis, lua, {
			namespace: store,
			prelude: PRELUDE,
			reply: "bytes",
			send: (call) => withReason(done, call)
		})
	};
}
/** Passes on only the message of an ioredis error, because the error contains the command with all arguments. */
async function withReason(done, send) {
	try {
		return await send();
	} catch (error) {
		throw failure(done, error instanceof Error ? error.message : String(error));
	}
}
function failure(done, reason) {
	const cause = new Error(reason);
	return new Error(`the ledger could not be ${done}: ${reason}`, { cause });
}
/**
* The prelude of every script. `set` stores the fields of a row from the arguments that `Table.fields` makes. `rowsOf`
* returns the functions for the rows of a kind. `dropBefore` removes the rows of a kind whose score in an index is
* lower. `once` is false for a command that is sent again after a lost connection, if Redis ran it before.
*/
const PRELUDE = `
local P = KEYS[1]
local call = redis.call
local TAKEN = redis.error_reply('TAKEN another row has this id')
local function joinKey(a, b) return #a .. ':' .. a .. ':' .. b end
local function member(seq, id) return string.format('%016d', seq) .. ':' .. id end
local function nextSeq() return call('INCR', P .. 'seq') end
local function set(key, i)
  local n = tonumber(ARGV[i])
  if n > 0 then call('HSET', key, unpack(ARGV, i + 1, i + 2 * n)) end
  if #ARGV > i + 2 * n then call('HDEL', key, unpack(ARGV, i + 2 * n + 1)) end
end
-- indexes(put, id, ...) gets the fields of a row, and calls put(index, score, member) for each index of the row.
-- count(sign, id, ...) gets the fields too, and adds the row to sums (sign 1) or subtracts it (sign -1).
local function rowsOf(kind, fields, indexes, count)
  local rows = {}
  function rows.at(id) return P .. kind .. ':' .. id end
  function rows.values(id, ...) return unpack(call('HMGET', rows.at(id), ...)) end
  local function each(id, sign, put)
    local values = call('HMGET', rows.at(id), unpack(fields))
    if not values[1] then return end
    indexes(put, id, unpack(values))
    if count then count(sign, id, unpack(values)) end
  end
  function rows.list(id)
    each(id, 1, function(index, score, member) call('ZADD', P .. index, score, member) end)
  end
  function rows.unlist(id)
    each(id, -1, function(index, _, member) call('ZREM', P .. index, member) end)
  end
  function rows.insert(id, token, i)
    set(rows.at(id), i)
    call('HSET', rows.at(id), 'seq', nextSeq(), 'token', token)
    rows.list(id)
  end
  function rows.change(id, i)
    rows.unlist(id)
    set(rows.at(id), i)
    rows.list(id)
  end
  function rows.remove(id)
    rows.unlist(id)
    call('UNLINK', rows.at(id))
  end
  return rows
end
local function dropBefore(index, kind, score)
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. index, '-inf', '(' .. score)) do
    call('UNLINK', P .. kind .. ':' .. id)
    call('ZREM', P .. index, id)
  end
end
local function once(token) return call('SET', P .. 'once:' .. token, 1, 'NX', 'EX', 3600) end
`;
// src/ledger/redis/table.ts
/** The limit is low because Redis runs no other command while it reads these rows. */
const MAX_ROWS_PER_READ = 100;
/** The most ids of each kind whose partition is cached. */
const MAX_CACHED_PARTITIONS = 1e5;
/** A token for one command, by which a script recognises the command when it is sent again after a lost connection. */
function newToken() {
	return randomUUID();
}
/** The rows of one kind. Each is a hash, in which a null property has no field. `prefix`: that of the partition. */
function createTable(connection, kind, columns) {
	const names = Object.keys(columns);
	const { redis, all, read } = connection;
	const scripts = connection.scripts(kind, { rows: ROWS }, "read");
	function encodeCell(name, value) {
		if (Number.isNaN(value)) throw failure("written", `${kind}s.${name} must be a number`);
		if (typeof value === "boolean") return value ? "1" : "";
		return value instanceof Uint8Array ? Buffer.from(value) : String(value);
	}
	/** Makes a row from the reply of `HMGET` with these names; `undefined` when there is no such row. */
	function decode(cells, some = names) {
		if (!cells || cells[0] === null) return void 0;
		const entries = some.map((name, i) => [name, decodeCell(columns[name].type, cells[i] ?? null)]);
		return Object.fromEntries(entries);
	}
	/** The rows with these ids, in their order; missing rows are left out. */
	async function rows(prefix, ids) {
		const chunks = [];
		for (let i = 0; i < ids.length; i += MAX_ROWS_PER_READ) {
			const some = ids.slice(i, i + MAX_ROWS_PER_READ);
			chunks.push(scripts.rows(prefix, kind, names.length, ...names, ...some));
		}
		return (await Promise.all(chunks)).flat().flatMap((cells) => decode(cells) ?? []);
	}
	const find = async (prefix, id) => (await rows(prefix, [id]))[0];
	async function members(prefix, index, from = 0, to = -1) {
		return read(() => redis.zrange(`${prefix}${index}`, from, String(to)));
	}
	/** The rows of an index, in its order. */
	async function listed(prefix, index, from, to) {
		return rows(prefix, await members(prefix, index, from, to));
	}
	return {
		...createRowFinder(connection, find),
		names,
		decode,
		rows,
		listed,
		find,
		/** Like `listed`, for an index whose scores may be equal: see `idsOf`. */
		numbered: async (prefix, index, to) => rows(prefix, idsOf(await members(prefix, index, 0, to))),
		/** The rows whose expiry is at or before `nowMs`. */
		expiredBy: async (nowMs) => {
			return (await all(async (prefix) => {
				const index = `${prefix}${kind}s:expiry`;
				return rows(prefix, await read(() => redis.zrangebyscore(index, "-inf", nowMs)));
			})).flat();
		},
		/** The arguments for the Lua function `set`, for a whole row or a change of one. */
		fields(values) {
			const changed = names.filter((name) => values[name] !== void 0);
			const stored = changed.filter((name) => values[name] !== null);
			const removed = changed.filter((name) => values[name] === null);
			return [
				stored.length,
				...stored.flatMap((name) => [name, encodeCell(name, values[name])]),
				...removed
			];
		},
		/** The first row of an index, and the last one; `undefined` when the index is empty. */
		first: async (prefix, index) => (await listed(prefix, index, 0, 0))[0],
		last: async (prefix, index) => (await listed(prefix, index, -1, -1))[0]
	};
}
/** Finds the partition of a row by its id, because callers do not always know the user. */
function createRowFinder({ prefixes, of, all }, find) {
	const cached = new LRUCache(atMost(MAX_CACHED_PARTITIONS));
	const [only, ...others] = prefixes;
	const knownPrefix = (id) => others.length === 0 ? only : cached.get(id);
	/** Reads the row, and caches its partition. */
	async function get(id) {
		const known = knownPrefix(id);
		if (known !== void 0) return find(known, id);
		const found = await all((prefix) => find(prefix, id));
		const at = found.findIndex((row) => row !== void 0);
		cached.set(id, prefixes[at]);
		return found[at];
	}
	return {
		get,
		/** The prefix of the partition of a new row. */
		prefixOfNew(id, user) {
			if (others.length > 0) cached.set(id, of(user));
			return of(user);
		},
		/** Calls `act` with the prefix of the row's partition. For a row that does not exist this is any partition, so `act` must then have no effect. */
		async at(id, act) {
			if (knownPrefix(id) === void 0) await get(id);
			return act(knownPrefix(id) ?? of(""));
		}
	};
}
function decodeCell(kind, cell) {
	if (cell === null || kind === "bytes") return cell;
	const text = cell.toString();
	if (kind === "text") return text;
	return kind === "number" ? Number(text) : text === "1";
}
const ROWS = `
local kind, n, out = ARGV[1], tonumber(ARGV[2]), {}
local names = {unpack(ARGV, 3, n + 2)}
for i = n + 3, #ARGV do
  out[#out + 1] = call('HMGET', P .. kind .. ':' .. ARGV[i], unpack(names))
end
return out`;
// src/ledger/redis/files.ts
/** The most files in all cached lists of a process together. */
const MAX_CACHED_FILES = 1e5;
/** v1 file names and the assets behind them. */
function fileStore(connection) {
	const table = createTable(connection, "file", FILE_COLUMNS);
	const lua = connection.scripts("files", {
		put,
		claim,
		remove: remove$2
	});
	const cached = new LRUCache({
		maxSize: MAX_CACHED_FILES,
		sizeCalculation: ({ rows }) => rows.length + 1
	});
	const { of, read, redis } = connection;
	const list = async (user, type) => {
		const name = joinKey(user, type);
		const prefix = of(user);
		const version = await read(() => redis.hget(`${prefix}files:versions`, name));
		const cachedList = cached.get(name);
		if (cachedList?.version === version) return cachedList.rows;
		const members = await read(() => redis.zrevrange(`${prefix}files:list:${name}`, 0, -1));
		const rows = await table.rows(prefix, idsOf(members));
		cached.set(name, {
			version,
			rows
		});
		return rows;
	};
	const argsOf = (row) => [
		of(row.user),
		idOf(row.user, row),
		newToken(),
		...table.fields(row)
	];
	return {
		put: async (row) => lua.put(...argsOf(row)),
		claim: async (row) => await lua.claim(...argsOf(row)) === 1,
		get: (user, name) => table.find(of(user), idOf(user, name)),
		byAsset: (user, assetId) => table.first(of(user), `files:asset:${joinKey(user, assetId)}`),
		newestNamed: async (user, { type, filename }) => (await list(user, type)).find((row) => row.filename === filename),
		list,
		remove: (user, name) => lua.remove(of(user), idOf(user, name), newToken())
	};
}
/** Front end settings, a hash for each user. */
function settingStore({ redis, of, read, write }) {
	const keyOf = (user) => `${of(user)}settings:${user}`;
	return {
		all: (user) => read(() => redis.hgetall(keyOf(user))),
		merge: async (user, settings) => {
			const pairs = Object.entries(settings).flat();
			if (pairs.length > 0) await write(() => redis.hset(keyOf(user), ...pairs));
		}
	};
}
function idOf(user, name) {
	return joinKey(user, joinKey(name.type, joinKey(name.subfolder, name.filename)));
}
/** Lua for the rows of files, also used by the script that removes an asset. A name without an asset is not listed. */
const FILES = `
local function removed(asset) return P .. 'asset-removed:' .. asset end
local files = rowsOf('file', {'user', 'type', 'assetId', 'modifiedAtMs', 'seq'},
  function(put, id, user, type, asset, modified, seq)
    if asset == '' then return end
    call('HINCRBY', P .. 'files:versions', joinKey(user, type), 1)
    put('files:list:' .. joinKey(user, type), modified, member(seq, id))
    put('files:asset:' .. joinKey(user, asset), seq, id)
  end)
`;
const put = `${FILES}
files.remove(ARGV[1])
files.insert(ARGV[1], ARGV[2], 3)`;
const claim = `${FILES}
local id, token = ARGV[1], ARGV[2]
local made, asset = files.values(id, 'token', 'assetId')
if asset then return made == token and 1 or 0 end
files.insert(id, token, 3)
if call('EXISTS', removed(files.values(id, 'assetId'))) == 1 then files.remove(id) end
return 1`;
const remove$2 = `${FILES}
if once(ARGV[2]) then files.remove(ARGV[1]) end`;
// src/ledger/redis/assets.ts
/** The asset records of the embedded engine; the bytes are files of their own. */
function assetStore(connection) {
	const table = createTable(connection, "asset", ASSET_COLUMNS);
	const lua = connection.scripts("assets", {
		insert: insert$1,
		remove: remove$1
	});
	const { paths } = connection.scripts("asset-lists", { paths: PATHS }, "read");
	const claimed = assetKeyTable(connection);
	const { of, all, sum, read, redis } = connection;
	return {
		async insert(row, claim) {
			const prefix = table.prefixOfNew(row.id, row.user);
			const { key, fingerprint = "", createdNew = false } = claim ?? {};
			const keyId = key === void 0 ? "" : joinKey(row.user, key);
			const claimFields = claimed.fields({
				assetId: row.id,
				fingerprint,
				createdNew,
				claimedAtMs: row.createdAtMs
			});
			const { names } = claimed;
			const args = [
				row.id,
				newToken(),
				keyId,
				names.length,
				...names,
				...claimFields.slice(1)
			];
			return claimed.decode(await lua.insert(prefix, ...args, ...table.fields(row)));
		},
		get: table.get,
		byHash: (user, hash) => table.first(of(user), `assets:hash:${joinKey(user, hash)}`),
		byFilePath: (user, filePath) => table.last(of(user), `assets:path:${joinKey(user, filePath)}`),
		ofJob: async (jobId) => (await all((prefix) => table.listed(prefix, `assets:job:${jobId}`))).flat(),
		async outputPaths(user, start) {
			return (await paths(of(user), user, start)).map((member) => member.subarray(0, member.lastIndexOf(0)).toString());
		},
		expiredBy: table.expiredBy,
		async oldest(limit) {
			if (limit <= 0) return [];
			return (await all((prefix) => table.numbered(prefix, "assets:age", limit - 1))).flat().toSorted((a, b) => a.createdAtMs - b.createdAtMs).slice(0, limit);
		},
		remove: (id) => table.at(id, (prefix) => lua.remove(prefix, id)),
		countByHash: (hash) => sum((prefix) => read(() => redis.scard(`${prefix}assets:same:${hash}`))),
		totalBytes: () => sum((prefix) => connection.number(prefix, "assets:bytes"))
	};
}
const ASSETS = `
local assets = rowsOf('asset',
  {'user', 'hash', 'filePath', 'createdAtMs', 'expiresAtMs', 'jobId', 'seq'},
  function(put, id, user, hash, path, created, expires, job, seq)
    put('assets:age', created, member(seq, id))
    put('assets:hash:' .. joinKey(user, hash), seq, id)
    put('assets:path:' .. joinKey(user, path), seq, id)
    if expires then put('assets:expiry', expires, id) end
    if job then
      put('assets:job:' .. job, seq, id)
      put('assets:outputs:' .. user, 0, path .. '\\0' .. id)
    end
  end)
`;
const insert$1 = `${ASSETS}
local id, token, claim, n = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local made, user = assets.values(id, 'token', 'user')
if user then return made ~= token and TAKEN end
if claim ~= '' then
  local key = P .. 'asset-key:' .. claim
  if call('EXISTS', key) == 1 then return call('HMGET', key, unpack(ARGV, 5, 4 + n)) end
  call('HSET', key, unpack(ARGV, 5 + n, 4 + 3 * n))
  call('ZADD', P .. 'asset-keys:age', call('HGET', key, 'claimedAtMs'), claim)
end
assets.insert(id, token, 5 + 3 * n)
local hash, size = assets.values(id, 'hash', 'sizeBytes')
local same = P .. 'assets:same:' .. hash
if call('EXISTS', same) == 0 then call('INCRBY', P .. 'assets:bytes', size) end
call('SADD', same, id)
return false`;
const remove$1 = `${ASSETS}${FILES}
local id = ARGV[1]
local user, hash, size, job = assets.values(id, 'user', 'hash', 'sizeBytes', 'jobId')
if not user then return end
if job then call('SET', removed(id), 1, 'EX', 3600) end
local same = P .. 'assets:same:' .. hash
call('SREM', same, id)
if call('EXISTS', same) == 0 then call('DECRBY', P .. 'assets:bytes', size) end
assets.remove(id)
for _, name in ipairs(call('ZRANGE', P .. 'files:asset:' .. joinKey(user, id), 0, -1)) do
  if files.values(name, 'type') == 'output' then
    files.unlist(name)
    call('HSET', files.at(name), 'assetId', '')
  else files.remove(name) end
end`;
const PATHS = `
return call('ZRANGEBYLEX', P .. 'assets:outputs:' .. ARGV[1], '[' .. ARGV[2],
  '(' .. ARGV[2] .. '\\255')`;
/** Single-use idempotency keys, of jobs and of assets. */
function keyStore(connection) {
	const lua = connection.scripts("keys", { expire: expire$1 });
	const table = assetKeyTable(connection);
	return {
		ofAsset: (user, key) => table.find(connection.of(user), joinKey(user, key)),
		expire: (beforeMs) => connection.everywhere((prefix) => lua.expire(prefix, beforeMs))
	};
}
/** The table of the idempotency keys of assets. */
function assetKeyTable(connection) {
	return createTable(connection, "asset-key", CLAIMED_ASSET_COLUMNS);
}
const expire$1 = `
dropBefore('keys:age', 'key', ARGV[1])
dropBefore('asset-keys:age', 'asset-key', ARGV[1])`;
// src/ledger/redis/call-counts.ts
/** Counts of v1 calls by client. */
function callCountStore(connection) {
	const table = createTable(connection, "call", CALL_COUNT_COLUMNS);
	const lua = connection.scripts("calls", {
		add,
		expire
	});
	const { of, all, everywhere } = connection;
	return {
		add(rows) {
			const prefixes = rows.map(({ user }) => of(user));
			return everywhere(async (prefix) => {
				const some = rows.filter((_, i) => prefixes[i] === prefix);
				if (some.length > 0) await lua.add(prefix, newToken(), ...some.flatMap(argsOf));
			});
		},
		list: async () => (await all((prefix) => table.listed(prefix, "calls:last"))).flat().toSorted(byClient),
		expire: (lastBeforeMs) => everywhere((prefix) => lua.expire(prefix, lastBeforeMs))
	};
}
function argsOf(row) {
	const { user, agent, clientId, route, count, firstAtMs, lastAtMs } = row;
	return [
		user,
		agent,
		clientId,
		route,
		count,
		firstAtMs,
		lastAtMs
	];
}
/** Compares by user, agent, route and client, in the order of the SQLite ledger. */
function byClient(a, b) {
	const order = ({ user, agent, route, clientId }) => [
		user,
		agent,
		route,
		clientId
	].join("\0");
	return order(a) < order(b) ? -1 : 1;
}
const add = `
if not once(ARGV[1]) then return end
for i = 2, #ARGV, 7 do
  local user, agent, client, route, count, first, last = unpack(ARGV, i, i + 6)
  local id = joinKey(user, joinKey(agent, joinKey(client, route)))
  local key = P .. 'call:' .. id
  local from, to = unpack(call('HMGET', key, 'firstAtMs', 'lastAtMs'))
  call('HINCRBY', key, 'count', count)
  call('HSET', key, 'user', user, 'agent', agent, 'clientId', client, 'route', route,
    'firstAtMs', math.min(first, from or first), 'lastAtMs', math.max(last, to or last))
  call('ZADD', P .. 'calls:last', 'GT', last, id)
end`;
const expire = `dropBefore('calls:last', 'call', ARGV[1])`;
// src/ledger/redis/jobs.ts
/** The jobs of the embedded engine. */
function jobStore(connection) {
	const table = createTable(connection, "job", JOB_COLUMNS);
	const lua = connection.scripts("jobs", {
		insert,
		update,
		remove
	});
	const { list } = connection.scripts("job-lists", { list: LIST }, "read");
	return {
		async insert(row, key) {
			const prefix = table.prefixOfNew(row.id, row.user);
			const claim = key === void 0 ? "" : joinKey(row.user, key);
			const args = [
				row.id,
				newToken(),
				claim,
				row.createdAtMs,
				...table.fields(row)
			];
			return await lua.insert(prefix, ...args) === 1;
		},
		update: (id, patch) => table.at(id, (prefix) => lua.update(prefix, id, ...table.fields(patch))),
		get: table.get,
		async list(user, { limit, before }) {
			const prefix = connection.of(user);
			const ids = await list(prefix, user, limit, before ?? "");
			return table.rows(prefix, ids.map(String));
		},
		async unfinished() {
			const lists = await connection.all((prefix) => table.numbered(prefix, "jobs:unfinished"));
			if (lists.length === 1) return lists.flat();
			return lists.flat().toSorted((a, b) => a.order - b.order || a.createdAtMs - b.createdAtMs);
		},
		expiredBy: table.expiredBy,
		remove: (id) => table.at(id, (prefix) => lua.remove(prefix, id))
	};
}
const JOBS = `
local jobs = rowsOf('job', {'user', 'status', 'order', 'expiresAtMs', 'seq'},
  function(put, id, user, status, order, expires, seq)
    put('jobs:of:' .. user, seq, id)
    if status == 'queued' or status == 'running' or status == 'canceling' then
      put('jobs:unfinished', order, member(seq, id))
    else put('jobs:expiry', expires, id) end
  end)
`;
const insert = `${JOBS}
local id, token, claim, now = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local made, user = jobs.values(id, 'token', 'user')
if user then
  if made == token then return 1 end
  -- A key that equals the id of its job counts as used once the job exists.
  return claim == joinKey(user, id) and 0 or TAKEN
end
if claim ~= '' then
  local key = P .. 'key:' .. claim
  local held = call('HMGET', key, 'claimedAtMs', 'jobId')
  if held[1] and (held[2] or tonumber(held[1]) > now - 60000) then return 0 end
  call('HSET', key, 'claimedAtMs', now, 'jobId', id)
  call('ZADD', P .. 'keys:age', now, claim)
end
jobs.insert(id, token, 5)
return 1`;
const update = `${JOBS}
if jobs.values(ARGV[1], 'user') then jobs.change(ARGV[1], 2) end`;
const LIST = `${JOBS}
local top = '+inf'
if ARGV[3] ~= '' then
  local seq = jobs.values(ARGV[3], 'seq')
  if not seq then return {} end
  top = '(' .. seq
end
return call('ZREVRANGEBYSCORE', P .. 'jobs:of:' .. ARGV[1], top, '-inf', 'LIMIT', 0, ARGV[2])`;
const remove = `${JOBS}
jobs.remove(ARGV[1])`;
// src/ledger/redis/models.ts
const NO_ANSWER = {
	status: null,
	contentType: null,
	body: null
};
/** The idempotency keys of the model router and their stored answers. */
function replayStore(connection) {
	const table = createTable(connection, "replay", REPLAY_COLUMNS);
	const lua = connection.scripts("replays", REPLAY_SCRIPTS);
	const { of, everywhere, sum } = connection;
	const settle = async ({ scope, key, requestId }, change) => lua.settle(of(scope), joinKey(scope, key), requestId, ...table.fields(change));
	return {
		async reserve({ scope, key, fingerprint, requestId, atMs }, freeBeforeMs) {
			const row = {
				scope,
				key,
				fingerprint,
				requestId,
				atMs,
				state: "reserved",
				...NO_ANSWER
			};
			const args = [...table.names, ...table.fields(row)];
			const head = [
				joinKey(scope, key),
				newToken(),
				freeBeforeMs,
				table.names.length
			];
			return table.decode(await lua.reserve(of(scope), ...head, ...args));
		},
		record: (holder, answer) => settle(holder, {
			state: "recorded",
			...answer
		}),
		consume: (holder, atMs) => settle(holder, {
			state: "consumed",
			atMs,
			...NO_ANSWER
		}),
		release: ({ scope, key, requestId }) => lua.release(of(scope), joinKey(scope, key), requestId),
		expire: (beforeMs) => everywhere((prefix) => lua.expire(prefix, beforeMs)),
		recordedBytes: () => sum((prefix) => connection.number(prefix, "replays:bytes"))
	};
}
/** The audit records of the model router. The partition is chosen by the request id, as some calls name nothing else. */
function modelCallStore(connection) {
	const table = createTable(connection, "model-call", MODEL_CALL_COLUMNS);
	const lua = connection.scripts("model_calls", MODEL_CALL_SCRIPTS);
	const { of, everywhere, sum, read, redis } = connection;
	return {
		insert: async (row) => lua.insert(of(row.requestId), row.requestId, newToken(), ...table.fields(row)),
		amend: async (requestId, { errorType, chargedCents }) => lua.amend(of(requestId), requestId, ...table.fields({
			errorType,
			chargedCents
		})),
		get: (requestId) => table.find(of(requestId), requestId),
		chargedCents: (workspace) => sum(async (prefix) => Number(await read(() => redis.hget(`${prefix}model-calls:charged`, workspace)) ?? 0)),
		expire: (beforeMs) => everywhere((prefix) => lua.expire(prefix, beforeMs))
	};
}
const REPLAYS = `
local replays = rowsOf('replay', {'atMs', 'state'},
  function(put, id, at) put('replays:age', at, id) end,
  function(sign, id, _, state)
    local bytes = state == 'recorded' and call('HSTRLEN', P .. 'replay:' .. id, 'body') or 0
    if bytes ~= 0 then call('INCRBY', P .. 'replays:bytes', sign * bytes) end
  end)
`;
/** The scripts of the replay store. They change nothing for a request that no longer holds the key. */
const REPLAY_SCRIPTS = {
	reserve: `${REPLAYS}
local id, token, before, n = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local holder, at = replays.values(id, 'token', 'atMs')
if holder == token then return false end
if at and tonumber(at) >= before then return call('HMGET', replays.at(id), unpack(ARGV, 5, 4 + n)) end
replays.remove(id)
replays.change(id, 5 + n)
call('HSET', replays.at(id), 'token', token)
return false`,
	settle: `${REPLAYS}
if replays.values(ARGV[1], 'requestId') == ARGV[2] then replays.change(ARGV[1], 3) end`,
	release: `${REPLAYS}
if replays.values(ARGV[1], 'requestId') == ARGV[2] then replays.remove(ARGV[1]) end`,
	expire: `${REPLAYS}
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'replays:age', '-inf', '(' .. ARGV[1])) do
  replays.remove(id)
end`
};
const CALLS = `
local calls = rowsOf('model-call', {'endedAtMs', 'chargedCents', 'workspace'},
  function(put, id, ended, cents) if cents == '0' then put('model-calls:free', ended, id) end end,
  function(sign, _, _, cents, workspace)
    if cents ~= '0' then call('HINCRBY', P .. 'model-calls:charged', workspace, sign * cents) end
  end)
`;
/** The scripts of the store of audit records. */
const MODEL_CALL_SCRIPTS = {
	insert: `${CALLS}
local id, token = ARGV[1], ARGV[2]
if call('EXISTS', calls.at(id)) == 1 then return calls.values(id, 'token') ~= token and TAKEN end
calls.change(id, 3)
call('HSET', calls.at(id), 'token', token)`,
	amend: `${CALLS}
if calls.values(ARGV[1], 'workspace') then calls.change(ARGV[1], 2) end`,
	expire: `dropBefore('model-calls:free', 'model-call', ARGV[1])`
};
// src/ledger/redis/prompts-scripts.ts
const PROMPTS = `${MAY_WRITE_LUA}
local NOT_LEADER = 0
local prompts = rowsOf('prompt', {'user', 'promptId', 'jobId', 'seq', 'state'},
  function(put, key, user, promptId, job, seq, state)
    put('prompts:id:' .. joinKey(user, promptId), seq, key)
    if job then put('prompts:job:' .. joinKey(user, job), seq, key) end
    if state ~= 'done' then
      put('prompts:live', seq, key)
      put('prompts:live:' .. user, seq, key)
    end
  end)
local function updateHistorySize(user)
  local n = call('ZCARD', P .. 'prompts:done:' .. user)
  if n > 0 then call('ZADD', P .. 'prompts:crowd', n, user)
  else call('ZREM', P .. 'prompts:crowd', user) end
end
-- The bytes of a prompt's texts, counted when it ended; 0 if an earlier version ended it.
local function bytesOf(key, user)
  local outline = call('HGET', P .. 'prompts:outlines:' .. user, key)
  return outline and cjson.decode(outline)[7] or 0
end
local function addBytes(user, change)
  if change == 0 then return end
  local total = tonumber(call('ZINCRBY', P .. 'prompts:bytes', change, user))
  if total <= 0 then call('ZREM', P .. 'prompts:bytes', user) end
end
local function addToHistory(key)
  local user = prompts.values(key, 'user')
  local done = P .. 'prompts:done:' .. user
  if not call('ZSCORE', done, key) then call('ZADD', done, nextSeq(), key) end
  local stored = 0
  for _, text in ipairs({'entryJson', 'graphJson', 'extraDataJson', 'nodeTimesJson'}) do
    stored = stored + call('HSTRLEN', prompts.at(key), text)
  end
  addBytes(user, stored - bytesOf(key, user))
  local outline = {prompts.values(key, ${OUTLINE_NAMES.map((name) => `'${name}'`).join(", ")})}
  outline[#outline + 1] = stored
  call('HSET', P .. 'prompts:outlines:' .. user, key, cjson.encode(outline))
  updateHistorySize(user)
end
local function removePrompt(key)
  local user = prompts.values(key, 'user')
  if not user then return end
  addBytes(user, -bytesOf(key, user))
  call('HDEL', P .. 'prompts:outlines:' .. user, key)
  if call('ZREM', P .. 'prompts:done:' .. user, key) == 1 then
    call('HINCRBY', P .. 'prompts:removals', user, 1)
  end
  call('ZREM', P .. 'prompts:numbers', key)
  updateHistorySize(user)
  prompts.remove(key)
end
`;
/** The beginning of the scripts that only the leader of a prompt may run. */
const LEADER_ONLY = `${PROMPTS}
local key, token = ARGV[1], ARGV[2]
if not mayWrite(key, token) then return NOT_LEADER end`;
/** The scripts of the prompt store. */
const PROMPT_SCRIPTS = {
	insert: `${PROMPTS}
local token, key, leader = ARGV[1], ARGV[2], ARGV[3]
local made, user = prompts.values(key, 'token', 'user')
if user then return made ~= token and TAKEN end
if call('EXISTS', P .. 'revoked:' .. token) == 1 then return end
if not mayWrite(key, leader) then return NOT_LEADER end
prompts.insert(key, token, 4)
local state, given = prompts.values(key, 'state', 'number')
if state == 'done' then addToHistory(key) end
local number = math.abs(tonumber(given))
if number <= 1000000000 then
  call('ZADD', P .. 'prompts:numbers', string.format('%.17g', number), key)
end`,
	revoke: `${PROMPTS}
local token, key = ARGV[1], ARGV[2]
call('SET', P .. 'revoked:' .. token, 1, 'EX', 3600)
if prompts.values(key, 'token') == token then removePrompt(key) end`,
	/**
	* Changes the row of an unfinished prompt. ARGV[3] `live`: only a prompt in that state; `unlinked`: only a prompt
	* without a job. May be sent twice, and another process may have finished the prompt in between.
	*/
	update: `${LEADER_ONLY}
local only, state, job = ARGV[3], prompts.values(key, 'state', 'jobId')
if not state or state == 'done' then return end
if only == 'live' and state ~= 'live' or only == 'unlinked' and job then return end
prompts.change(key, 4)`,
	begin: `${LEADER_ONLY}
local state = prompts.values(key, 'state')
if state and state ~= 'done' then call('HSETNX', prompts.at(key), 'startedAtMs', ARGV[3]) end`,
	change: `${PROMPTS}
local key = ARGV[1]
if prompts.values(key, 'user') then set(prompts.at(key), 2) end`,
	finish: `${LEADER_ONLY}
if not prompts.values(key, 'user') then return end
prompts.change(key, 3)
addToHistory(key)`,
	remove: `${LEADER_ONLY}
removePrompt(key)`,
	deleteHistory: `${PROMPTS}
local user = ARGV[1]
for i = 2, #ARGV do
  for _, key in ipairs(call('ZRANGE', P .. 'prompts:id:' .. joinKey(user, ARGV[i]), 0, -1)) do
    if prompts.values(key, 'state') == 'done' then removePrompt(key) end
  end
end`,
	clearHistory: `${PROMPTS}
for _, key in ipairs(call('ZRANGE', P .. 'prompts:done:' .. ARGV[1], 0, -1)) do removePrompt(key) end`,
	pruneHistory: `${PROMPTS}
local limit = tonumber(ARGV[1])
for _, user in ipairs(call('ZRANGEBYSCORE', P .. 'prompts:crowd', '(' .. ARGV[1], '+inf')) do
  local keys = call('ZRANGE', P .. 'prompts:done:' .. user, 0, -1 - limit)
  for _, key in ipairs(keys) do removePrompt(key) end
end
local bytes = tonumber(ARGV[2])
for _, user in ipairs(call('ZRANGEBYSCORE', P .. 'prompts:bytes', '(' .. ARGV[2], '+inf')) do
  local total = tonumber(call('ZSCORE', P .. 'prompts:bytes', user))
  -- The newest prompt is kept at any size.
  for _, key in ipairs(call('ZRANGE', P .. 'prompts:done:' .. user, 0, -2)) do
    if total <= bytes then break end
    total = total - bytesOf(key, user)
    removePrompt(key)
  end
end`
};
/** The scripts of the prompt store that only read. */
const PROMPT_READS = {
	entries: `${PROMPTS}
local out = {}
for i, key in ipairs(ARGV) do
  local state, entry = prompts.values(key, 'state', 'entryJson')
  out[i] = state == 'done' and entry
end
return out`,
	hasJob: `${PROMPTS}
local job = ARGV[1]
for _, user in ipairs(call('ZRANGE', P .. 'prompts:crowd', 0, -1)) do
  if call('EXISTS', P .. 'prompts:job:' .. joinKey(user, job)) == 1 then return 1 end
end
for _, key in ipairs(call('ZRANGE', P .. 'prompts:live', 0, -1)) do
  if prompts.values(key, 'jobId') == job then return 1 end
end
return 0`,
	highestNumber: `
local found = call('ZRANGE', P .. 'prompts:numbers', -1, -1, 'WITHSCORES')
return found[2] or '-1'`
};
// src/ledger/redis/prompts.ts
/** Delay between attempts to revoke an insertion. */
const RETRY_MS = 1e3;
/** The prompts of v1, unfinished and done. */
function promptStore(connection, writeTokens) {
	const table = createTable(connection, "prompt", PROMPT_COLUMNS);
	const lua = connection.scripts("prompts", PROMPT_SCRIPTS);
	const ask = connection.scripts("prompt-reads", PROMPT_READS, "read");
	const { of, all, everywhere, read, redis } = connection;
	const writeAsLeader = (act, key, ...args) => table.at(key, async (prefix) => {
		const token = writeTokens().token(key);
		if (await lua[act](prefix, key, token, ...args) === 0) throw writeTokens().refused(key, token);
	});
	const update = (key, only, change) => writeAsLeader("update", key, only, ...table.fields(change));
	async function insert(row) {
		const prefix = table.prefixOfNew(row.key, row.user);
		const token = newToken();
		const leader = writeTokens().token(row.key);
		if (await lua.insert(prefix, token, row.key, leader, ...table.fields(row)).catch((error) => {
			retryUntilSent(redis, () => lua.revoke(prefix, token, row.key));
			throw error;
		}) === 0) throw writeTokens().refused(row.key, leader);
	}
	return {
		insert,
		async insertBeforeLater(row) {
			await insert(row);
			return { stored: Promise.resolve() };
		},
		setState: (key, state) => update(key, "unfinished", { state }),
		setPlan: (key, { intentJson, targetsJson }) => update(key, "unlinked", {
			intentJson,
			targetsJson
		}),
		unlinkJob: (key, plan) => update(key, "live", {
			state: "outbox",
			jobId: null,
			...plan
		}),
		begin: (key, atMs) => writeAsLeader("begin", key, atMs),
		askCancel: (key, atMs) => table.at(key, (prefix) => lua.change(prefix, key, ...table.fields({ cancelAskedAtMs: atMs }))),
		linkJob: (key, patch) => update(key, "unfinished", {
			...patch,
			state: "live"
		}),
		remove: (key) => writeAsLeader("remove", key),
		finish: (key, { shortened, ...outcome }) => {
			const row = {
				...outcome,
				...shortened,
				state: "done"
			};
			return writeAsLeader("finish", key, ...table.fields(row));
		},
		async entries(keys) {
			const [first] = keys;
			if (first === void 0) return [];
			return (await table.at(first, (prefix) => ask.entries(prefix, ...keys))).map((text) => text && text.toString());
		},
		async live(user) {
			return (user === void 0 ? merged(await all((prefix) => table.listed(prefix, "prompts:live"))) : await table.listed(of(user), `prompts:live:${user}`)).filter(({ state }) => state !== "done");
		},
		liveKeys: (user) => read(() => redis.zrange(`${of(user)}prompts:live:${user}`, 0, "-1")),
		find: (user, promptId) => table.last(of(user), `prompts:id:${joinKey(user, promptId)}`),
		findByJob: (user, jobId) => table.first(of(user), `prompts:job:${joinKey(user, jobId)}`),
		hasJob: async (jobId) => (await all((prefix) => ask.hasJob(prefix, jobId))).includes(1),
		async history(user, { maxItems, offset = -1 }) {
			const listed = (from, to) => table.listed(of(user), `prompts:done:${user}`, from, to);
			if (maxItems === void 0) return listed(Math.max(0, offset));
			if (maxItems <= 0) return [];
			return offset < 0 ? listed(-maxItems) : listed(offset, offset + maxItems - 1);
		},
		outlines: createOutlines(connection, table).of,
		get: table.get,
		deleteHistory: (user, promptIds) => lua.deleteHistory(of(user), user, ...promptIds),
		clearHistory: (user) => lua.clearHistory(of(user), user),
		pruneHistory: ({ count, bytes }) => everywhere((prefix) => lua.pruneHistory(prefix, count, bytes)),
		async highestNumber() {
			const found = await all((prefix) => ask.highestNumber(prefix));
			return Math.max(...found.map((number) => Number(number.toString())));
		}
	};
}
/** Merges lists by time. The rows of one list keep their order, also when a clock was set back. */
function merged(lists) {
	return lists.flatMap((rows) => {
		let atMs = 0;
		return rows.map((row) => ({
			row,
			atMs: atMs = Math.max(atMs, row.createdAtMs)
		}));
	}).toSorted((a, b) => a.atMs - b.atMs).map(({ row }) => row);
}
/**
* Sends until Redis confirms. Used to revoke an insertion whose client got an error: the prompt must never run, but
* Redis may still insert it.
*/
async function retryUntilSent(redis, send) {
	while (redis.status !== "end") try {
		await send();
		return;
	} catch {
		await setTimeout(RETRY_MS, void 0, { ref: false });
	}
}
function createOutlines(connection, { decode }) {
	const { since } = connection.scripts("outlines", { since: SINCE }, "read");
	/** Decodes a stored outline: its members in the order of `OUTLINE_NAMES`, false for null, then its bytes. */
	const outlineOf = (packed) => {
		const cells = packed.map((cell) => cell === false ? null : String(cell));
		const storedBytes = Number(cells[OUTLINE_NAMES.length] ?? 0);
		return {
			...decode(cells, OUTLINE_NAMES),
			storedBytes
		};
	};
	return createOutlineCache(async (user, mark = {
		removals: "",
		last: "-inf"
	}) => {
		const [removals = "", last = "", text = ""] = (await since(connection.of(user), user, mark.removals, mark.last)).map(String);
		const outlines = JSON.parse(text).map(outlineOf);
		return {
			mark: {
				removals,
				last
			},
			isWhole: removals !== mark.removals,
			outlines
		};
	});
}
const SINCE = `
local user, removals, last = unpack(ARGV)
local done, out = P .. 'prompts:done:' .. user, {}
local counted = call('HGET', P .. 'prompts:removals', user) or '0'
if counted ~= removals then last = '-inf' end
local keys = call('ZRANGEBYSCORE', done, '(' .. last, '+inf')
for i = 1, #keys, 1000 do
  local some = {unpack(keys, i, math.min(i + 999, #keys))}
  for _, outline in ipairs(call('HMGET', P .. 'prompts:outlines:' .. user, unpack(some))) do
    out[#out + 1] = outline
  end
end
local newest = call('ZRANGE', done, -1, -1, 'WITHSCORES')[2] or '-inf'
return {counted, newest, '[' .. table.concat(out, ',') .. ']'}`;
// src/ledger/redis/redis-ledger.ts
/** How long `close` waits until Redis has confirmed pending writes. */
const CLOSE_WITHIN_MS = 5e3;
/**
* Opens the ledger in Redis or in a Redis Cluster, which many processes may share. In a cluster each partition has
* the records of some of the users, because a script can use the keys of one partition only. Lists of all users are
* read from all partitions.
*/
function openRedisLedger(options) {
	const { links, timeoutMs = COMMAND_TIMEOUT_MS, leadership = () => NO_LEADER } = options;
	const redis = links.connect(withTimeouts(timeoutMs));
	const connection = createLedgerConnection(redis, links.partitions);
	return {
		prompts: promptStore(connection, leadership),
		files: fileStore(connection),
		jobs: jobStore(connection),
		assets: assetStore(connection),
		keys: keyStore(connection),
		settings: settingStore(connection),
		replays: replayStore(connection),
		modelCalls: modelCallStore(connection),
		calls: callCountStore(connection),
		committed: async () => {},
		synced: async () => {},
		close: () => close(redis)
	};
}
async function close(redis) {
	if (redis.status === "end") return;
	const quit = redis.quit().catch(() => {});
	await completesWithin(CLOSE_WITHIN_MS, quit);
	redis.disconnect();
}
// src/ledger/redis/open-shared.ts
/** How long a start waits for the first reply of Redis. */
const REACH_WITHIN_MS = 5e3;
/** The key that exists during a migration into this Redis. While it exists, no server may open the ledger. */
const MIGRATION_KEY = "migration";
/** The lease of a start. It lasts longer than it takes to rename a dozen folders. */
const START = {
	name: "start",
	leaseMs: 3e4
};
/** The version of the stored keys and values. */
const SCHEMA = 1;
/** Settings of Redis with which an acknowledged command survives a crash and is never evicted. */
const DURABLE_SETTINGS = {
	appendonly: "yes",
	appendfsync: "always",
	"maxmemory-policy": "noeviction"
};
/**
* Opens the ledger. Throws an error with one sentence for the operator when Redis cannot be reached within
* `reachWithinMs`, refuses access, has an interrupted migration, or was written by a newer version.
*/
async function openSharedRedis(options) {
	const { url, log, reachWithinMs = REACH_WITHIN_MS } = options;
	try {
		if (redisNodes(url).length > 1) await checkNamedNodes(url, {
			log,
			withinMs: reachWithinMs
		});
		return await open(options, reachWithinMs);
	} catch (error) {
		const reason = error instanceof Error ? error.message : String(error);
		throw new Error(`the ledger ${withoutRedisLogin(url)} ${reason}`, { cause: error });
	}
}
async function open({ url, log, acceptMigration }, reachWithinMs) {
	const links = openRedis(url, { log });
	try {
		await connectWithin(links, reachWithinMs);
		await checkClusterMode(links);
		await refuseNewer(links);
		if (!acceptMigration) await refuseMigration(links);
		await askNodes(links, (node) => warnOfLoss(node, log));
		const id = (await setOnce(links, "id", Buffer.from(randomUUID()))).toString();
		await bindPartitions(links, id);
		return createSharedRedis(links, id);
	} catch (error) {
		await links.close();
		throw error;
	}
}
/** A ledger in Redis, and the other data that processes share there. */
function createSharedRedis(links, id) {
	let writeTokens = NO_LEADER;
	const watch = watchIdentity(links, id);
	const ledger = openRedisLedger({
		links,
		leadership: () => writeTokens
	});
	const leases = createProcessLeases(links.commands, links.partitions.queue.prefix);
	return {
		ledger,
		links,
		identity: redisIdentity(links, id),
		/** Runs work of a start that only one process of this ledger may do at a time. */
		withStartLock: (work) => leases.with(START, work),
		/** Resolves when Redis has lost the data of this ledger: then this process must stop. */
		lost: watch.lost,
		/** Makes later writes to prompts use these tokens. */
		useWriteTokens: (given) => void (writeTokens = given),
		async close() {
			watch.close();
			await ledger.close();
			await links.close();
		}
	};
}
function redisIdentity(links, id) {
	return {
		id,
		storedIn: "service",
		predatesFolders: false,
		folder: async () => await links.commands.get(`${links.prefix}folder`) ?? void 0,
		tie: async (folderId) => String(await setOnce(links, "folder", Buffer.from(folderId))),
		secret: (proposal) => setOnce(links, "secret", proposal)
	};
}
/** Sets a value unless it is set, and returns the stored one, which is the same for all processes. */
async function setOnce({ commands, prefix }, name, proposal) {
	await commands.set(`${prefix}${name}`, proposal, "NX");
	const value = await commands.getBuffer(`${prefix}${name}`);
	if (value === null) throw new Error("does not have a value that was just written to it");
	return value;
}
async function connectWithin({ commands }, withinMs) {
	let reason = "it does not answer";
	commands.on("error", (error) => {
		reason = error.message || (error.code ?? reason);
	});
	if (!await completesWithin(withinMs, commands.ping()).catch((error) => {
		reason = error.message;
		return false;
	})) throw new Error(`cannot be used: ${reason}`);
}
async function refuseNewer(links) {
	const version = await setOnce(links, "schema", Buffer.from(String(SCHEMA)));
	if (Number(version.toString()) <= SCHEMA) return;
	throw new Error(`cannot be used: a newer Holdover wrote it (schema ${version.toString()})`);
}
async function refuseMigration({ commands, prefix }) {
	if (await commands.exists(`${prefix}migration`) === 0) return;
	throw new Error("has a migration that was interrupted: run \"holdover migrate\" again");
}
/** Warns of settings with which Redis may lose acknowledged data. A hosted Redis may refuse CONFIG: that is logged only. */
async function warnOfLoss(node, log) {
	try {
		for (const [setting, should] of Object.entries(DURABLE_SETTINGS)) {
			const [, is] = await node.config("GET", setting);
			if (is === should) continue;
			const facts = {
				event: "redis.not_durable",
				setting,
				is,
				should
			};
			log.warn(facts, "Redis may lose data that was acknowledged to clients");
		}
	} catch (error) {
		const { message: reason } = error;
		const facts = {
			event: "redis.durability_unknown",
			needed: DURABLE_SETTINGS,
			reason
		};
		log.info(facts, "Redis does not report its durability settings");
	}
}
/** The interval of the check for lost data. Until the check finds the loss, clients may get answers without that data. */
const POLL_MS = 5e3;
/**
* Reads the id of the ledger in Redis, or in each partition of a cluster, at an interval. This is needed because a
* Redis that has lost its data answers as if it had always been empty. `lost` resolves when an id is missing or is
* that of another ledger; it never rejects.
*/
function watchIdentity(links, id) {
	const { commands } = links;
	const keys = ledgerIdKeys(links.partitions);
	let reportLoss = (_loss) => {};
	const lost = new Promise((resolve) => reportLoss = resolve);
	const check = (found) => {
		if (found !== id) reportLoss(new Error(found === null ? EMPTIED : REPLACED));
	};
	const poll = () => {
		for (const key of keys) commands.get(key).then(check, () => {});
	};
	const timer = setInterval(poll, POLL_MS).unref();
	commands.on("ready", poll);
	const close = () => {
		clearInterval(timer);
		commands.off("ready", poll);
	};
	return {
		lost,
		close
	};
}
const EMPTIED = "redis has lost the data of this ledger";
const REPLACED = "redis has the data of another ledger now";
export { MIGRATION_KEY, createLedgerConnection as n, openSharedRedis, joinKey as r, createTable as t };
