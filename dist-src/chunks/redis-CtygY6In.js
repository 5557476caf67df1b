import { t as __exportAll } from "./rolldown-runtime-BJohB4LM.js";
import { i as splitHosts, r as redisNodes } from "./ledger-B4DYGOuk.js";
import { r as singlePartition, t as clusterPartitions } from "./redis-partitions-DnZR4QBP.js";
import { r as coalesce } from "./concurrency-DwpPd4rK.js";
import { LRUCache } from "lru-cache";
import { randomInt } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { Cluster, Command, Redis } from "ioredis";
// src/redis/reconnecting-redis.ts
const RECONNECT_DELAY_MS = {
	step: 50,
	last: 1e3
};
/** The delay before the attempt with this number, counted from 1. */
function reconnectDelayMs(attempt) {
	return Math.min(attempt * RECONNECT_DELAY_MS.step, RECONNECT_DELAY_MS.last);
}
/** Commands wait until the connection is open again. */
const UNLIMITED_RETRIES = {
	maxRetriesPerRequest: null,
	retryStrategy: reconnectDelayMs
};
/**
* Options of a connection for messages. A connection that does not answer is closed and opened again; then
* `RedisSubscriber` subscribes again.
*/
const SUBSCRIBER_OPTIONS = {
	...UNLIMITED_RETRIES,
	socketTimeout: 5e3,
	autoResubscribe: false
};
/** A connection to one Redis, or to one node of a cluster. */
var ReconnectingRedis = class ReconnectingRedis extends Redis {
	sendCommand(command, ...more) {
		if (command.isSettled) return command.promise;
		const reply = super.sendCommand(command, ...more);
		if (command.name === "select") command.promise.catch(({ name }) => name === "ReplyError" && this.disconnect(true));
		return reply;
	}
	/** BullMQ calls this to open connections of its own. */
	duplicate(overrides) {
		const options = {
			...this.options,
			...overrides
		};
		return new ReconnectingRedis(options);
	}
};
// src/redis/redis-cluster.ts
/** The delay before a command is sent again while a node is unreachable or its replica takes over. */
const RETRY_DELAY_MS$1 = 250;
/** While a slot moves, two nodes may redirect to each other for a moment. */
const MOVED_DELAY_MS = 20;
/** A node must answer `CLUSTER SLOTS` within this time. */
const SLOTS_TIMEOUT_MS = 4e3;
/** Commands are sent again until they time out. */
const UNLIMITED = 2 ** 31;
/**
* Replies of a node that has too few replicas, and of a node while it moves the slot away. Each is handled as
* `TRYAGAIN`. A script waits until its slot has moved, because until then neither node has all of its keys: its
* first key exists at neither node, so the node always replies `ASK`.
*/
const RETRYABLE = /^(NOREPLICAS|ASK)\b/;
/** Commands whose caller gets the reply after a replica has the write. Scripts that only read are included. */
const WRITES = /* @__PURE__ */ new Set([
	"eval",
	"evalsha",
	"set",
	"hset",
	"del",
	"incr",
	"zadd",
	"pexpire"
]);
/**
* A connection to a cluster, with the commands of a connection to one Redis. Each command is sent to the node
* that has its key. While that node is unreachable the command waits, as in `ReconnectingRedis`.
*/
var ReconnectingCluster = class ReconnectingCluster extends Cluster {
	#url;
	#options;
	#writes;
	/** The node to which each command was last sent. */
	#sentTo = /* @__PURE__ */ new WeakMap();
	constructor(url, options, writes) {
		super(redisNodes(url), {
			clusterRetryStrategy: reconnectDelayMs,
			retryDelayOnFailover: RETRY_DELAY_MS$1,
			retryDelayOnClusterDown: RETRY_DELAY_MS$1,
			retryDelayOnTryAgain: RETRY_DELAY_MS$1,
			retryDelayOnMoved: MOVED_DELAY_MS,
			slotsRefreshTimeout: SLOTS_TIMEOUT_MS,
			maxRedirections: UNLIMITED,
			redisOptions: {
				...accessOf(url),
				maxRetriesPerRequest: null,
				...options
			}
		});
		this.#url = url;
		this.#options = options;
		this.#writes = writes;
		this.on("+node", (node) => this.#watchCommands(node));
		this.#keepEnded();
	}
	sendCommand(command, ...more) {
		const { commandTimeout } = this.#options;
		if (commandTimeout !== void 0) command.setTimeout(commandTimeout);
		const reply = super.sendCommand(command, ...more);
		return more.length === 0 && WRITES.has(command.name) ? this.#whenReplicated(command, reply) : reply;
	}
	handleError(error, ...more) {
		const reason = RETRYABLE.test(error.message) ? `TRYAGAIN ${error.message}` : error.message;
		super.handleError(new Error(reason, { cause: error }), ...more);
	}
	/** Resolves when a replica has the write. If that remains unknown, the command is sent again. */
	async #whenReplicated(command, reply) {
		const answer = await reply;
		const node = this.#sentTo.get(command);
		try {
			if (node) await this.#writes.whenReplicated(node);
			return answer;
		} catch {
			return await this.sendCommand(copyOf(command));
		}
	}
	/**
	* After "end" ioredis emits "close" for each node that closes later, and sets the status to "close". In that status
	* commands wait for a new connection, which never comes. So the status is set back to "end".
	*/
	#keepEnded() {
		let hasEnded = false;
		this.on("connecting", () => hasEnded = false);
		this.on("end", () => hasEnded = true);
		this.on("close", () => hasEnded && (this.status = "end"));
	}
	#watchCommands(node) {
		const send = node.sendCommand.bind(node);
		node.sendCommand = (command, ...more) => {
			if (command.name === "readonly") command.resolve("OK");
			if (command.isSettled) return command.promise;
			this.#sentTo.set(command, node);
			return send(command, ...more);
		};
	}
	/** BullMQ calls this to open connections of its own. */
	duplicate(_nodes, overrides) {
		const options = {
			...this.#options,
			...overrides?.redisOptions
		};
		return new ReconnectingCluster(this.#url, options, this.#writes);
	}
};
/** A copy of a command that was answered: ioredis does not send the same object again. */
function copyOf(command) {
	const replyEncoding = Reflect.get(command, "replyEncoding");
	const args = [
		command.name,
		[...command.args],
		{ replyEncoding }
	];
	return Reflect.construct(command.constructor, args);
}
/** The user name, password and TLS setting of a Redis address; they are the same for all nodes of a cluster. */
function accessOf(url) {
	const { username, password, protocol } = new URL(`${splitHosts(url).login}host`);
	return {
		...username !== "" && { username: decodeURIComponent(username) },
		...password !== "" && { password: decodeURIComponent(password) },
		...protocol === "rediss:" && { tls: {} }
	};
}
// src/redis/cluster-subscribers.ts
/**
* Returns a function that opens a connection for messages. The messages of a partition are published only at the
* node that has its keys, so the connection is to that node. Without a partition it is to any node.
*/
function clusterSubscribers(cluster, url) {
	const access = accessOf(url);
	const knownNodes = () => cluster.nodes("all").flatMap(nodeOf);
	const refresh = () => new Promise((resolve) => cluster.refreshSlotsCache(() => resolve()));
	const ownerOf = (slot) => {
		const owner = cluster.slots[slot]?.[0];
		return knownNodes().find(({ host, port }) => `${host}:${port}` === owner);
	};
	return (partition) => {
		const anyNode = roundRobin(() => knownNodes().length > 0 ? knownNodes() : redisNodes(url));
		if (!partition) return { redis: connectToEach(anyNode, access) };
		const slot = slotOf(partition.prefix);
		let node;
		const redis = connectToEach(() => node = ownerOf(slot) ?? anyNode(), access);
		redis.on("close", () => void refresh());
		const isAtOwner = async () => {
			await refresh();
			const owner = ownerOf(slot);
			return !owner || owner.host === node?.host && owner.port === node.port;
		};
		return {
			redis,
			isAtOwner
		};
	};
}
/** A connection that chooses its node each time it connects. */
function connectToEach(nextNode, access) {
	const Connection = class extends ReconnectingRedis {
		connect(...args) {
			Object.assign(this.options, nextNode());
			return super.connect(...args);
		}
	};
	return new Connection({
		...access,
		...SUBSCRIBER_OPTIONS
	});
}
function roundRobin(nodes) {
	let next = randomInt(2 ** 16);
	return () => {
		const all = nodes();
		const node = all[next++ % all.length];
		if (!node) throw new Error("the cluster has no nodes");
		return node;
	};
}
function nodeOf({ options: { host, port } }) {
	return host === void 0 || port === void 0 ? [] : [{
		host,
		port
	}];
}
function slotOf(key) {
	return new Command("get", [key]).getSlot();
}
// src/redis/redis-subscriber.ts
const PING_MS = 15e3;
const RETRY_DELAY_MS = 100;
/** Replies of a node that does not have the channel's slot, or that cannot serve it yet. */
const WRONG_NODE = /^(MOVED|ASK|CLUSTERDOWN|LOADING|TRYAGAIN|MASTERDOWN)\b/;
/** Subscribes to channels on a connection of its own; a channel may have any number of handlers. */
var RedisSubscriber = class {
	#redis;
	#log;
	/** False when the channels are at another node of the cluster than the connected one. */
	#isAtOwner;
	#handlers = /* @__PURE__ */ new Map();
	#reconnectHandlers = [];
	#pingTimer = setInterval(() => void this.#verify(), PING_MS).unref();
	/** How many times the connection has been opened. */
	#connectCount = 0;
	#subscribedAgain = Promise.resolve();
	#isClosed = false;
	/** With `isAtOwner` it subscribes to sharded channels, which only the node with their slot has. */
	constructor(redis, log, isAtOwner) {
		this.#redis = redis;
		this.#log = log;
		this.#isAtOwner = isAtOwner;
		const event = isAtOwner ? "smessageBuffer" : "messageBuffer";
		redis.on(event, (channel, message) => this.#receive(String(channel), message));
		redis.on("ready", () => {
			if (this.#connectCount++ > 0) this.#subscribedAgain = this.#subscribeAgain();
		});
		redis.on("moved", () => redis.disconnect(true));
	}
	/** Resolves when Redis has confirmed the subscription: all later messages of the channel are received. */
	async subscribe(channel, onMessage) {
		this.#handlers.set(channel, (this.#handlers.get(channel) ?? /* @__PURE__ */ new Set()).add(onMessage));
		await this.#subscribe([channel]);
	}
	unsubscribe(channel, onMessage) {
		const handlers = this.#handlers.get(channel);
		if (!handlers?.delete(onMessage) || handlers.size > 0) return;
		this.#handlers.delete(channel);
		(this.#isAtOwner ? this.#redis.sunsubscribe(channel) : this.#redis.unsubscribe(channel)).catch(ignoreError);
	}
	/**
	* `recheck` is called when the connection was lost and the channels are subscribed again. Messages may have been
	* missed in between.
	*/
	onReconnect(recheck) {
		this.#reconnectHandlers.push(recheck);
	}
	/**
	* Resolves when every message that was published before this call has been received. If the connection was lost, it
	* resolves after the handlers of `onReconnect` were called.
	*/
	async ping() {
		await this.#redis.ping();
		await this.#subscribedAgain;
	}
	close() {
		this.#isClosed = true;
		clearInterval(this.#pingTimer);
		this.#redis.disconnect();
	}
	#receive(channel, message) {
		for (const onMessage of this.#handlers.get(channel) ?? []) onMessage(message, channel);
	}
	async #subscribe(channels) {
		const sentOn = this.#connectCount;
		try {
			if (this.#isAtOwner) await this.#redis.ssubscribe(...channels);
			else await this.#redis.subscribe(...channels);
		} catch (error) {
			if (this.#isClosed || !WRONG_NODE.test(error.message)) throw error;
			await this.#isAtOwner?.();
			if (this.#connectCount === sentOn) this.#redis.disconnect(true);
			await setTimeout(RETRY_DELAY_MS);
			await this.#subscribe(channels);
		}
	}
	async #subscribeAgain() {
		try {
			if (this.#handlers.size > 0) await this.#subscribe([...this.#handlers.keys()]);
			for (const recheck of this.#reconnectHandlers) recheck();
		} catch (error) {
			this.#log.warn({
				event: "pubsub.resubscribe_failed",
				err: error
			}, "could not subscribe again after a lost connection");
		}
	}
	/** Without a pending command, a dead connection would not be noticed for hours. */
	async #verify() {
		this.#redis.ping().catch(ignoreError);
		const checked = this.#connectCount;
		if (await this.#isAtOwner?.().catch(ignoreError) === false && this.#connectCount === checked && !this.#isClosed) this.#redis.disconnect(true);
	}
};
/** Used where the error needs no handling: the connection is opened and its channels subscribed again. */
function ignoreError() {}
// src/redis/replicated-writes.ts
/** The time limit of one `WAIT`. Other commands of the connection wait meanwhile. */
const WAIT_MS = 500;
/** How long the number of replicas that a node has reported is used. */
const KNOWN_FOR_MS = 1e3;
/** A replica that is further behind is not counted, as with `min-replicas-to-write`. */
const MAX_LAG_S = 10;
/**
* Waits until replicas have the writes of a node, so that no acknowledged write is lost when a replica takes over.
* All connections of a process share one object.
*/
var ReplicatedWrites = class {
	#log;
	#replicas = /* @__PURE__ */ new Map();
	#waits = /* @__PURE__ */ new WeakMap();
	constructor(log) {
		this.#log = log;
	}
	/**
	* Resolves when one replica has every write that Redis has answered on this connection, or when the node has no
	* replica. Rejects when the node does not answer or has become a replica: then the writes may be lost.
	*/
	async whenReplicated(node) {
		const wait = this.#waits.get(node) ?? coalesce(() => this.#wait(node));
		this.#waits.set(node, wait);
		await wait();
	}
	async #wait(node) {
		for (let maxAgeMs = KNOWN_FOR_MS;; maxAgeMs = 0) {
			if (await this.#replicasOf(node, maxAgeMs) === 0) return;
			if (await node.wait(1, WAIT_MS) > 0) return;
		}
	}
	async #replicasOf(node, maxAgeMs) {
		const address = `${node.options.host}:${node.options.port}`;
		const known = this.#replicas.get(address);
		if (known && performance.now() - known.askedAtMs < maxAgeMs) return known.count;
		const count = countReplicas(await node.info("replication"));
		if (count === 0 && known && known.count > 0) this.#log.warn({
			event: "redis.no_replica",
			node: address
		}, "a node of the Redis Cluster has no replica now: its writes are acknowledged without one");
		this.#replicas.set(address, {
			count,
			askedAtMs: performance.now()
		});
		return count;
	}
};
/** Counts the replicas that are at most `MAX_LAG_S` behind, from the section `replication` of INFO. */
function countReplicas(info) {
	if (!info.includes("role:master")) throw new Error("the node has become a replica");
	return [...info.matchAll(/^slave\d+:.*state=online.*lag=(\d+)/gm)].map(([, lag]) => lag).filter((lag) => Number(lag) <= MAX_LAG_S).length;
}
// src/redis/redis.ts
var redis_exports = /* @__PURE__ */ __exportAll({ countSubscribers: () => countSubscribers });
/** How long a call waits while Redis is unreachable. */
const COMMAND_TIMEOUT_MS = 2e4;
const PREFIX = "holdover:";
const MAX_NODES = 1e3;
/** An unreachable node is logged at most once in this time. */
const LOG_REPEAT_MS = 6e4;
/**
* Opens `redis://[user:password@]host:port[/db]`, or `rediss://` for TLS. Several hosts, separated by commas, are
* nodes of one cluster. The password is never logged.
*/
function openRedis(url, { log, commandTimeoutMs = COMMAND_TIMEOUT_MS }) {
	const opened = /* @__PURE__ */ new Set();
	const isCluster = splitHosts(url).hosts.length > 1;
	const writes = new ReplicatedWrites(log);
	function logged(redis) {
		let isDisconnected = false;
		redis.on("ready", () => isDisconnected = false);
		redis.on("error", (error) => {
			if (!isDisconnected) log.warn({
				event: "redis.unreachable",
				reason: error.message || error.code
			}, "Redis cannot be reached");
			isDisconnected = true;
		});
		opened.add(redis);
		return redis;
	}
	function connect(options = {}) {
		if (isCluster) return logged(new ReconnectingCluster(url, options, writes));
		return logged(new ReconnectingRedis(url, {
			...UNLIMITED_RETRIES,
			...options
		}));
	}
	const commands = connect(withTimeouts(commandTimeoutMs));
	const cluster = isCluster ? commands : void 0;
	const partitions = cluster ? clusterPartitions(PREFIX) : singlePartition(PREFIX, commands.options.db ?? 0);
	const openInCluster = cluster && clusterSubscribers(cluster, url);
	if (cluster) logNodes(cluster, log);
	return {
		/** The connection for commands that a caller waits for. Each fails after `commandTimeoutMs`. */
		commands,
		/** Opens a separate connection, for example for blocking reads. `close` closes it too. */
		connect,
		/** Opens a connection for the messages of a partition; without one, for messages to all processes. */
		subscriber(partition) {
			if (!openInCluster) return new RedisSubscriber(logged(new ReconnectingRedis(url, SUBSCRIBER_OPTIONS)), log);
			const { redis, isAtOwner } = openInCluster(partition);
			redis.on("error", () => {});
			opened.add(redis);
			return new RedisSubscriber(redis, log, isAtOwner);
		},
		/** `undefined`: the connections are to a single Redis. */
		cluster,
		partitions,
		/** Each key begins with this. */
		prefix: PREFIX,
		/** Each channel that belongs to no partition begins with this. */
		channels: partitions.channels,
		async close() {
			for (const redis of opened) redis.disconnect();
			opened.clear();
		}
	};
}
/** Logs each unreachable node, at most once in `LOG_REPEAT_MS`. */
function logNodes(cluster, log) {
	const recentlyLogged = new LRUCache({
		max: MAX_NODES,
		ttl: LOG_REPEAT_MS
	});
	cluster.on("node error", ({ message: reason }, node) => {
		if (cluster.status !== "ready" || recentlyLogged.has(node)) return;
		recentlyLogged.set(node, true);
		log.warn({
			event: "redis.node_unreachable",
			node,
			reason
		}, "a node of the Redis Cluster cannot be reached");
	});
}
/** The single Redis, or the nodes of the cluster. `master`: only the nodes that serve keys, not their replicas. */
async function nodesOf({ cluster, commands }, role) {
	if (!cluster) return [commands];
	if (cluster.status !== "ready") await commands.ping();
	return cluster.nodes(role);
}
/** Calls `ask` for the single Redis, or for each node of the cluster; rejects when one call rejects. */
async function askNodes(links, ask) {
	return Promise.all((await nodesOf(links, "all")).map(ask));
}
/** The number of connections that are subscribed to a channel, over all nodes. */
async function countSubscribers(links, channel) {
	return (await askNodes(links, (node) => node.pubsub("NUMSUB", channel).catch(() => []))).reduce((sum, reply) => sum + Number(reply[1] ?? 0), 0);
}
/**
* Options: a command fails after `timeoutMs`. A connection that is silent for half of it while commands wait is
* closed and opened again, and its unanswered commands are sent again.
*/
function withTimeouts(timeoutMs) {
	return {
		commandTimeout: timeoutMs,
		socketTimeout: timeoutMs / 2
	};
}
export { openRedis as a, accessOf as c, nodesOf as i, askNodes as n, redis_exports as o, countSubscribers as r, withTimeouts as s, COMMAND_TIMEOUT_MS as t };
