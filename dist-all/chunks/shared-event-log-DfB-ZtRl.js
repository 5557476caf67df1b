import { t as I } from "./index.min-rxNe_V92.js";
import { i as monotonicClock } from "./event-loop-BDDWO5Ig.js";
import { r as coalesce, s as createMutex } from "./concurrency-B9CCxp_8.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { t as atMost } from "./lru-size-Cu34KpzD.js";
import { l as LeadershipLost, u as ByUser } from "./server-DbarU6Tm.js";
import "./redis-BqcOn5as.js";
import { i as leasesLua, n as PROMPT_LEASES } from "./leases-C9MnyXjq.js";
import { t as defineScripts } from "./redis-scripts-4m5gDXsy.js";
import { l as stringifyJson, o as parseJson } from "./json-0U1hIHCx.js";
// src/replication/discoveries.ts
/**
* Tracks the prompts that this process reads because it does not know them yet. `discover` reads one; it must not
* reject.
*/
function createDiscoveries(discover) {
	const running = /* @__PURE__ */ new Map();
	/** Keys of those whose first entry was received. */
	const fromStart = /* @__PURE__ */ new Set();
	return {
		/** Reads a prompt unless it is being read; `n` is the number of a received entry. Resolves when it is known. */
		run(key, n) {
			if (n === 1) fromStart.add(key);
			const clear = () => void (running.delete(key), fromStart.delete(key));
			const task = running.get(key) ?? discover(key).finally(clear);
			running.set(key, task);
			return task;
		},
		/** True while this prompt is read, if its first entry was received. */
		hasFirstEntry: (key) => fromStart.has(key),
		whenDone: async () => void await Promise.all(running.values())
	};
}
// src/replication/followed-users.ts
/**
* A user without a call, a socket or a prompt led here is followed for this long. It must be longer than the frames
* of ended prompts are kept for late sockets.
*/
const IDLE_MS = 13e4;
/** The users that this process follows: it has read their stored prompts, and receives the entries of their prompts. */
var FollowedUsers = class {
	#options;
	#users = /* @__PURE__ */ new Map();
	/** Users whose messages were missed, until their prompts are read again. */
	#recovering = /* @__PURE__ */ new Map();
	constructor(options) {
		this.#options = options;
	}
	/** Starts to follow the user; resolves when the user's prompts are known. After a failure the next call tries again. */
	follow(user) {
		const followed = this.#users.get(user) ?? this.#start(user);
		followed.usedAtMs = this.#options.clock.now();
		return followed.whenKnown;
	}
	/** True when all prompts of the user are known. */
	has(user) {
		return this.#users.get(user)?.isKnown ?? false;
	}
	all() {
		return [...this.#users.keys()];
	}
	/** Follows all needed users, and stops following users that have not been needed for `IDLE_MS`. */
	async update() {
		await Promise.all([...this.#options.needed()].map((user) => this.follow(user)));
		const needed = this.#options.needed();
		const nowMs = this.#options.clock.now();
		for (const [user, { isKnown, usedAtMs }] of this.#users) if (isKnown && !needed.has(user) && nowMs - usedAtMs >= IDLE_MS) this.#stop(user);
	}
	/** Reads the stored prompts of the user, to find prompts and entries whose messages were missed. */
	async resync(user) {
		const { streams, discover } = this.#options;
		const [endedKeys] = await this.#recent(user);
		const liveKeys = await this.#options.handlers()?.liveKeys(user) ?? [];
		const unknown = [...endedKeys, ...liveKeys].filter((key) => streams.get(key)?.isUnknown() ?? true);
		for (const key of await this.#withEntries(user, unknown)) await discover(key);
		for (const stream of streams.ofUser(user)) if (!stream.hasEnded()) await this.#catchUp(stream);
		if (!this.#users.has(user) && !this.#options.needed().has(user)) this.#removeUser(user);
	}
	/** Call when messages about these users were missed. Reads their prompts again, one user after the other. */
	async recover(users) {
		let last = Promise.resolve();
		for (const user of users) {
			const settled = last.then(() => this.#recoverUser(user)).finally(() => {
				if (this.#recovering.get(user) === settled) this.#recovering.delete(user);
			});
			this.#recovering.set(user, last = settled);
		}
		await last;
	}
	/** Resolves when `recover` is done with this user, or has failed. */
	async whenRecovered(user) {
		await this.#recovering.get(user)?.catch(() => {});
	}
	#start(user) {
		const followed = {
			whenKnown: Promise.resolve(),
			isKnown: false,
			usedAtMs: 0
		};
		this.#users.set(user, followed);
		followed.whenKnown = this.#open(user).then(() => void (followed.isKnown = true));
		return followed;
	}
	async #open(user) {
		try {
			await this.#track(user);
		} catch (error) {
			if (this.#options.needed().has(user)) this.#users.delete(user);
			else this.#stop(user);
			throw error;
		}
	}
	/** Subscribes to the messages about the user, then reads the stored prompts. */
	async #track(user) {
		const { partitions, streams, handlers } = this.#options;
		const listening = partitions.ofUser(user).follow(user);
		if (!await completesWithin(2e4, listening)) throw new Error("Redis does not answer");
		const [endedKeys, fetchedIds] = await this.#recent(user);
		await handlers()?.trackUser(user, {
			endedKeys,
			withEntries: (keys) => this.#withEntries(user, keys)
		});
		await Promise.all(streams.ofUser(user).map((stream) => stream.whenIdle()));
		for (const id of fetchedIds) handlers()?.resultFetched(user, id);
	}
	#stop(user) {
		this.#users.delete(user);
		this.#options.partitions.ofUser(user).unfollow(user);
		this.#removeUser(user);
	}
	#removeUser(user) {
		this.#options.handlers()?.forgetUser(user);
		this.#options.streams.deleteOfUser(user);
	}
	/** Keys of prompts that ended in the last two minutes, and ids of prompts whose results were fetched in that time. */
	#recent(user) {
		return this.#options.partitions.ofUser(user).clientScripts.recent(user);
	}
	async #withEntries(user, keys) {
		const { clientScripts } = this.#options.partitions.ofUser(user);
		return keys.length === 0 ? [] : await clientScripts.withEntries(...keys);
	}
	async #recoverUser(user) {
		await this.resync(user);
		for (const stream of this.#options.streams.ofUser(user)) await stream.readReceivedPositions();
	}
	/** Reads missed entries. The prompt may have ended so long ago that its entries are gone: then the ledger has its end. */
	async #catchUp(stream) {
		const { partitions, handlers } = this.#options;
		const { key, user } = stream;
		const partition = partitions.ofUser(user);
		const isLeased = await partition.isLeased(key);
		await stream.catchUp();
		if (isLeased || stream.token() !== void 0 || stream.hasEnded()) return;
		const end = await handlers()?.endOf(key);
		if (end === "none") await partition.clientScripts.register(key, user);
		else if (end) await stream.finish(end);
	}
};
// src/replication/scripts.ts
/** How long a lease is held without a renewal. */
const LEASE_MS = 5e3;
/** How long entries and received positions of an ended prompt are kept for processes that read them late. */
const ENDED_TTL_MS$1 = 12e4;
/** How long received positions of an unfinished prompt are kept: longer than a job is without events. */
const RECEIVED_TTL_MS = 864e5;
/** The text is the same for all partitions of a cluster, so that each node stores each script once. */
const PRELUDE = ({ prefix, channels, publish }) => `
local P = KEYS[1]
local C = P .. '${channels.slice(prefix.length)}'
local PUBLISH, NUMSUB = '${publish}', '${publish === "PUBLISH" ? "NUMSUB" : "SHARDNUMSUB"}'
local call = redis.call
local function entriesOf(key) return P .. 'entries:' .. key end
${leasesLua(PROMPT_LEASES)}
local function receivedOf(key, group) return P .. 'received:' .. key .. (group == 'client' and '' or ':' .. group) end
local function endPrompt(key)
  release(key)
  for _, name in ipairs({entriesOf(key), receivedOf(key, 'client'), receivedOf(key, 'hosted')}) do
    call('PEXPIRE', name, ${ENDED_TTL_MS$1})
  end
end
local function publishTo(user, message) call(PUBLISH, C .. 'prompts:' .. user, message) end
-- Adds to a set of recent members, which are kept for ${ENDED_TTL_MS$1} ms.
local function addRecent(set, member)
  call('ZREMRANGEBYSCORE', set, '-inf', nowMs() - ${ENDED_TTL_MS$1})
  call('ZADD', set, nowMs(), member)
  call('PEXPIRE', set, ${ENDED_TTL_MS$1})
end
`;
const SCRIPTS = {
	claim: `return take(ARGV[1], ARGV[2], ${LEASE_MS})`,
	takeOver: `
if not call('ZSCORE', LEASES, ARGV[1]) then return false end
return takeIfFree(ARGV[1], ARGV[2], ${LEASE_MS})`,
	append: `
local key, token, n, text, user, isLast, picture = unpack(ARGV)
local known = #call('XRANGE', entriesOf(key), n .. '-0', n .. '-0') > 0
if not holds(key, token) then
  if known and isLast == '1' and holderOf(key) == '' then return 0 end
  return -1
end
if not known then
  call('XADD', entriesOf(key), n .. '-0', 'e', text)
  if picture ~= '' then
    call(PUBLISH, C .. 'previews:' .. user, key .. ' ' .. n .. ' ' .. picture)
  end
  publishTo(user, 'e ' .. key .. ' ' .. n .. ' ' .. text)
end
if isLast == '1' then
  endPrompt(key)
  addRecent(P .. 'ended:' .. user, key)
end
return call('PUBSUB', NUMSUB, C .. 'previews:' .. user)[2]`,
	renew: `
local lost = {}
for i = 1, #ARGV, 2 do
  if holds(ARGV[i], ARGV[i + 1]) then extend(ARGV[i], ${LEASE_MS})
  else lost[#lost + 1] = ARGV[i] end
end
return lost`,
	giveBack: `
for i = 1, #ARGV, 2 do
  if holds(ARGV[i], ARGV[i + 1]) then call('ZADD', LEASES, 0, ARGV[i]) end
end`,
	drop: `if holds(ARGV[1], ARGV[2]) then endPrompt(ARGV[1]) end`,
	vacant: `return call('ZRANGE', LEASES, '-inf', nowMs(), 'BYSCORE')`,
	register: `
for i = 1, #ARGV, 2 do
  local hasEnded = call('ZSCORE', P .. 'ended:' .. ARGV[i + 1], ARGV[i])
  if not hasEnded then call('ZADD', LEASES, 'NX', 0, ARGV[i]) end
end`,
	received: `
local key, upTo, instance, group, user = unpack(ARGV)
if tonumber(upTo) <= tonumber(call('GET', receivedOf(key, group)) or 0) then return end
local isLive = call('PTTL', entriesOf(key)) == -1
call('SET', receivedOf(key, group), upTo, 'PX', isLive and ${RECEIVED_TTL_MS} or ${ENDED_TTL_MS$1})
publishTo(user, table.concat({'r', key, upTo, instance, group}, ' '))`,
	cancel: `publishTo(ARGV[1], 'c ' .. ARGV[2] .. ' ' .. ARGV[3])`,
	fetched: `
local user, id, encodedId = unpack(ARGV)
addRecent(P .. 'fetched:' .. user, id)
publishTo(user, 'f ' .. encodedId)`,
	recent: `
local since = nowMs() - ${ENDED_TTL_MS$1}
return {
  call('ZRANGE', P .. 'ended:' .. ARGV[1], since, '+inf', 'BYSCORE'),
  call('ZRANGE', P .. 'fetched:' .. ARGV[1], since, '+inf', 'BYSCORE')
}`,
	withEntries: `
local found = {}
for _, key in ipairs(ARGV) do
  if call('EXISTS', entriesOf(key)) == 1 then found[#found + 1] = key end
end
return found`
};
function defineReplicationScripts(redis, partition) {
	const options = {
		namespace: "replication",
		key: partition.prefix,
		prelude: PRELUDE(partition)
	};
	return defineScripts(redis, SCRIPTS, options);
}
// src/replication/partitions.ts
/**
* The prompts of the users in one partition. The event log of each prompt is a Redis stream whose ids begin with the
* position. Messages about all prompts of the partition are received in the order in which Redis sent them.
*/
var PromptPartition = class {
	scripts;
	/** The same scripts on the connection with a time limit, for calls that a client waits for. */
	clientScripts;
	subscriber;
	#redis;
	#keys;
	#handlers;
	/** The picture of the next received entry. */
	#picture;
	constructor(links, redis, keys, handlers) {
		this.scripts = defineReplicationScripts(redis, keys);
		this.clientScripts = defineReplicationScripts(links.commands, keys);
		this.subscriber = links.subscriber(keys);
		this.#redis = redis;
		this.#keys = keys;
		this.#handlers = handlers;
	}
	/** Resolves when all later messages about this user's prompts are received. */
	async follow(user) {
		await this.subscriber.subscribe(`${this.#keys.channels}prompts:${user}`, this.#receiveText);
	}
	unfollow(user) {
		this.subscriber.unsubscribe(`${this.#keys.channels}prompts:${user}`, this.#receiveText);
	}
	/** Starts or stops receiving previews of this user. */
	watch(user, isThere) {
		const channel = `${this.#keys.channels}previews:${user}`;
		if (isThere) this.subscriber.subscribe(channel, this.#receivePicture).catch(ignoreError$1);
		else this.subscriber.unsubscribe(channel, this.#receivePicture);
	}
	/** Appends an entry; false when the token is no longer that of the leader. */
	async write({ key, user }, token, { n, text, picture }, isLast) {
		const published = picture && this.#handlers.isWatched(user) ? picture : "";
		const last = isLast ? "1" : "0";
		const reply = await this.scripts.append(key, token, n, text, user, last, published);
		if (reply < 0) return false;
		this.#handlers.onWatcherCount(user, reply);
		return true;
	}
	/** The entries after position `n`. */
	async after(key, n) {
		const stream = `${this.#keys.prefix}entries:${key}`;
		return (await this.#redis.xrange(stream, `(${n}-0`, "+")).map(([id, [, text = ""]]) => ({
			n: Number.parseInt(id, 10),
			text
		}));
	}
	/** The positions up to which sockets have received the log. */
	async receivedUpTo(key) {
		const receivedUpTo = `${this.#keys.prefix}received:${key}`;
		const [client, hosted] = await this.#redis.mget(receivedUpTo, `${receivedUpTo}:hosted`);
		return {
			client: Number(client ?? 0),
			hosted: Number(hosted ?? 0)
		};
	}
	/** True when a process leads the prompt, or will take it over. */
	async isLeased(key) {
		return await this.#redis.zscore(`${this.#keys.prefix}leases`, key) !== null;
	}
	#receivePicture = (message) => {
		const first = message.indexOf(32);
		const end = message.indexOf(32, first + 1);
		this.#picture = {
			name: message.toString("latin1", 0, end),
			bytes: message.subarray(end + 1)
		};
	};
	#receiveText = (bytes, channel) => {
		const message = bytes.toString();
		const body = message.slice(2);
		if (message.startsWith("e")) return this.#receiveEntry(body);
		const [key = "", upTo = "", instance = "", group = "client"] = body.split(" ");
		if (message.startsWith("r")) return this.#handlers.onReceived(key, group, Number(upTo), instance);
		if (!message.startsWith("f")) return this.#handlers.onCancel(key, upTo);
		const user = channel.slice(`${this.#keys.channels}prompts:`.length);
		this.#handlers.onFetched(user, Buffer.from(key, "base64url").toString());
	};
	#receiveEntry(body) {
		const end = body.indexOf(" ", body.indexOf(" ") + 1);
		const name = body.slice(0, end);
		const [key = "", n = ""] = name.split(" ");
		const bytes = this.#picture?.name === name ? this.#picture.bytes : void 0;
		this.#picture = void 0;
		this.#handlers.onEntry(key, Number(n), body.slice(end + 1), bytes);
	}
};
/** Used where Redis may be unreachable: `RedisSubscriber` subscribes again when it is reachable. */
function ignoreError$1() {}
/** All partitions of prompts: 32 in a Redis Cluster, otherwise one. */
var PromptPartitions = class {
	all;
	#indexOf;
	/** The partitions of the prompts without a leader, by key. For some of these prompts the user is not known. */
	#vacant = /* @__PURE__ */ new Map();
	constructor(links, redis, handlers) {
		const { users, indexOf } = links.partitions;
		this.all = users.map((keys) => new PromptPartition(links, redis, keys, handlers));
		this.#indexOf = indexOf;
	}
	ofUser(user) {
		return this.all[this.#indexOf(user)];
	}
	of({ key, user }) {
		return user === "" && this.#vacant.get(key) || this.ofUser(user);
	}
	/** Keys of the prompts without a leader, oldest first. */
	async vacantKeys() {
		const vacant = /* @__PURE__ */ new Map();
		await Promise.all(this.all.map(async (partition) => {
			for (const key of await partition.scripts.vacant()) vacant.set(key, partition);
		}));
		this.#vacant = vacant;
		return [...vacant.keys()].toSorted();
	}
	/** Calls `act` for each partition that has some of the prompts. */
	async each(prompts, act) {
		const byPartition = /* @__PURE__ */ new Map();
		for (const prompt of prompts) {
			const partition = this.of(prompt);
			byPartition.set(partition, [...byPartition.get(partition) ?? [], prompt]);
		}
		await Promise.all([...byPartition].map(([partition, some]) => act(partition, some)));
	}
};
// src/replication/log-stream.ts
/** The event log of one prompt in this process. Handles its entries one after the other. */
var LogStream = class {
	key;
	user;
	#store;
	#enqueue = createMutex();
	#subscriber;
	#token;
	#lastRead = 0;
	#isNew = false;
	#hasEnded = false;
	constructor({ key, user }, store) {
		this.key = key;
		this.user = user;
		this.#store = store;
	}
	/** The write token, if this process leads the prompt. */
	token() {
		return this.#token;
	}
	hasEnded() {
		return this.#hasEnded;
	}
	/** True when the log has no subscriber here, and will get none from this process. */
	isUnknown() {
		return this.#subscriber === void 0 && !this.#isNew;
	}
	/** True when the subscriber got the last entry. */
	hasAppliedEnd() {
		return this.#hasEnded && this.#subscriber !== void 0;
	}
	async subscribe(subscriber, since) {
		if (this.#token !== void 0 && this.#lastRead === 0) {
			this.#subscriber = subscriber;
			return;
		}
		await this.#enqueue(async () => {
			this.#subscriber = subscriber;
			subscriber.onSubscribed(await this.#store.receivedUpTo(this.key), since);
			this.#lastRead = 0;
			await this.#readMissing();
		});
	}
	/** Call when this process has claimed a new prompt, which it now leads. */
	startNew(token) {
		this.#isNew = true;
		this.#token = token;
	}
	/** Makes this process the leader after all entries are applied; false when it already leads with this token. */
	takeLead(token) {
		return this.#enqueue(async () => {
			if (this.#token === token) return false;
			await this.#readMissing();
			this.#token = token;
			return true;
		});
	}
	/** Call when another process leads the prompt, or may do so soon. */
	loseLead() {
		if (this.#token === void 0) return;
		this.#token = void 0;
		this.#subscriber?.onLeadershipLost();
		this.catchUp().catch(ignoreError);
	}
	/** Stores an entry, then applies it; rejects with `LeadershipLost` when this process does not lead the prompt. */
	async append(entry) {
		if (this.#token === void 0) throw new LeadershipLost();
		await this.#enqueue(() => this.#append(entry));
	}
	/** Applies an entry that another process wrote; reads missed entries first. */
	receive(n, text, picture) {
		return this.#enqueue(async () => {
			if (n <= this.#lastRead || this.#token !== void 0) return;
			if (n === this.#lastRead + 1) await this.#apply(n, decodeEntry(text, picture));
			else await this.#readMissing();
		});
	}
	/** Reads and applies missed entries. */
	catchUp() {
		return this.#enqueue(async () => {
			if (this.#token === void 0) await this.#readMissing();
		});
	}
	/** Reads the positions up to which sockets have received the log. Call when messages about them were missed. */
	async readReceivedPositions() {
		const upTo = await this.#store.receivedUpTo(this.key);
		for (const group of ["client", "hosted"]) this.receivedElsewhere(group, upTo[group]);
	}
	/** Applies the end of a prompt whose entries have expired. */
	finish(kind) {
		return this.#enqueue(async () => {
			if (this.#hasEnded || this.#token !== void 0) return;
			await this.#apply(this.#lastRead + 1, { kind });
		});
	}
	/** Call when sockets of another process have received the log up to this position. */
	receivedElsewhere(group, upTo) {
		this.#subscriber?.onReceivedElsewhere(group, upTo);
	}
	/** Resolves when all received entries are applied. */
	whenIdle() {
		return this.#enqueue(async () => {});
	}
	async #append(entry) {
		if (this.#token === void 0) throw new LeadershipLost();
		const n = this.#lastRead + 1;
		const isLast = entry.kind === "recorded";
		if (!await this.#store.write(this, this.#token, {
			n,
			...encodeEntry(entry)
		}, isLast)) {
			this.loseLead();
			throw new LeadershipLost();
		}
		if (isLast) this.#token = void 0;
		await this.#apply(n, entry);
	}
	async #apply(n, entry) {
		this.#lastRead = n;
		if (entry.kind === "recorded" || entry.kind === "removed") this.#hasEnded = true;
		await this.#subscriber?.apply(entry, n);
	}
	async #readMissing() {
		for (const { n, text } of await this.#store.after(this.key, this.#lastRead)) await this.#apply(n, decodeEntry(text));
	}
};
function ignoreError() {}
/** @internal */
function encodeEntry(entry) {
	if (entry.kind !== "input") return { text: JSON.stringify(entry) };
	const { input } = entry;
	if ("files" in input) return { text: encodeInput({
		...input,
		files: [...input.files]
	}) };
	if (!isPreview(input)) return { text: encodeInput(input) };
	const { bytes, ...data } = input.event.data;
	const head = Buffer.from(bytes.subarray(0, 4)).toString("base64");
	return {
		text: encodeInput({
			...input,
			event: {
				event: "preview",
				data,
				head
			}
		}),
		picture: bytes
	};
}
/** A preview without its picture gets the first bytes of it, so that its step is still counted. */
function decodeEntry(text, picture) {
	const entry = parseJson(text);
	if (entry.kind !== "input") return entry;
	const { input } = entry;
	if ("files" in input) return {
		kind: "input",
		input: withFiles(input)
	};
	if (!isPreview(input)) return entry;
	const { head, data } = input.event;
	const bytes = picture ?? Buffer.from(head, "base64");
	const event = {
		event: "preview",
		data: {
			...data,
			bytes
		}
	};
	return {
		kind: "input",
		input: {
			...input,
			event
		}
	};
}
function withFiles(input) {
	return {
		...input,
		files: new Map(input.files)
	};
}
function encodeInput(input) {
	return stringifyJson({
		kind: "input",
		input
	});
}
function isPreview(input) {
	return input.kind === "event" && input.event.event === "preview";
}
// src/replication/log-streams.ts
/** How long the log of an ended prompt is kept, which is as long as its frames. */
const ENDED_TTL_MS = 12e4;
/** The event logs of all prompts that this process knows. */
var LogStreams = class {
	#storeOf;
	#streams = /* @__PURE__ */ new Map();
	#byUser = new ByUser();
	#endedSinceMs = /* @__PURE__ */ new WeakMap();
	constructor(storeOf) {
		this.#storeOf = storeOf;
	}
	get(key) {
		return this.#streams.get(key);
	}
	/** The log of this prompt; created if it is not known. */
	open(prompt) {
		const stream = this.#streams.get(prompt.key) ?? new LogStream(prompt, this.#storeOf(prompt));
		this.#streams.set(prompt.key, stream);
		this.#byUser.add(stream.user, stream);
		return stream;
	}
	delete(key) {
		const stream = this.#streams.get(key);
		if (stream) this.#byUser.delete(stream.user, stream);
		this.#streams.delete(key);
	}
	/** The write token of a prompt, for the ledger; throws `LeadershipLost` when this process does not lead the prompt. */
	token(key) {
		const token = this.get(key)?.token();
		if (token === void 0) throw new LeadershipLost();
		return token;
	}
	/** Call when the ledger refused a write: ends the leadership before the next renewal, and returns the error to throw. */
	refused(key, token) {
		const stream = this.get(key);
		if (stream?.token() === token) stream.loseLead();
		return new LeadershipLost();
	}
	isLed(key) {
		return this.get(key)?.token() !== void 0;
	}
	/** The logs of the prompts that this process leads. */
	led() {
		return [...this.#streams.values()].filter((stream) => stream.token() !== void 0);
	}
	ofUser(user) {
		return [...this.#byUser.of(user)];
	}
	deleteOfUser(user) {
		for (const stream of this.ofUser(user)) this.delete(stream.key);
	}
	/** Removes prompts that ended more than `ENDED_TTL_MS` ago. */
	removeEnded(nowMs) {
		for (const stream of this.#streams.values()) {
			if (!stream.hasEnded()) continue;
			const sinceMs = this.#endedSinceMs.get(stream) ?? nowMs;
			this.#endedSinceMs.set(stream, sinceMs);
			if (nowMs - sinceMs >= ENDED_TTL_MS) this.delete(stream.key);
		}
	}
};
/** The arguments for a script about led prompts: key and token of each. */
function keysAndTokens(led) {
	return led.flatMap((stream) => [stream.key, stream.token() ?? ""]);
}
// src/replication/former-servers.ts
const FORMER_SERVERS = "a server of an earlier version still runs on this Redis: stop all of them before the first one of this version";
/**
* Throws when a server of an earlier version runs on this Redis. Those servers publish entries on one channel of all
* users, which this version does not read.
*/
async function refuseFormerServers(links) {
	const { commands, channels, cluster } = links;
	if (cluster) return;
	const [, count] = await commands.pubsub("NUMSUB", `${channels}events`);
	if (Number(count) > 0) throw new Error(FORMER_SERVERS);
}
// src/replication/shared-event-log.ts
/**
* The intervals at which leases are renewed, prompts without a leader are looked for, and the stored prompts of the
* followed users are read again.
*/
const INTERVAL_MS = {
	renew: LEASE_MS * .3,
	findVacant: 1e3,
	resync: 3e4
};
const MAX_WATCHED_USERS = 1e5;
/** A slower reply means that Redis was unreachable. */
const SLOW_REDIS_MS = 1e3;
/** A call waits for missed entries at most this long; then it is answered without them. */
const CATCH_UP_TIMEOUT_MS = 2e3;
/**
* The event log that several processes share, in one Redis or a cluster. The leader of a prompt appends entries to
* its stream. The processes that follow the user receive the entries, and read missed ones from the stream. A process
* follows a user while it has a socket of the user, leads a prompt of the user, or had a recent call of the user.
*/
var SharedEventLog = class {
	#options;
	#clock;
	#redis;
	#partitions;
	/** The users that have sockets in this process. */
	#localUsers = /* @__PURE__ */ new Set();
	/** How many processes had sockets of a user when this process last appended an entry for the user. */
	#watcherCounts = new I(atMost(MAX_WATCHED_USERS));
	#streams;
	#users;
	#discoveries = createDiscoveries(async (key) => {
		await this.#handlers?.discover(key).catch(this.#logFailure("read a prompt"));
	});
	#timers = [];
	#handlers;
	#takeoverAllowedAtMs = 0;
	#isClosed = false;
	/** The write tokens of the prompts that this process leads. */
	leadership;
	constructor(options) {
		const { links, clock = monotonicClock } = options;
		this.#options = options;
		this.#clock = clock;
		this.#redis = links.connect();
		const partitions = new PromptPartitions(links, this.#redis, this.#partitionHandlers());
		const streams = new LogStreams((prompt) => partitions.of(prompt));
		this.#partitions = partitions;
		this.#streams = streams;
		this.leadership = streams;
		this.#users = new FollowedUsers({
			clock,
			partitions,
			streams,
			handlers: () => this.#handlers,
			discover: (key) => this.#discoveries.run(key),
			needed: () => /* @__PURE__ */ new Set([...this.#localUsers, ...streams.led().map(({ user }) => user)])
		});
	}
	async start(handlers, live) {
		this.#handlers = handlers;
		await refuseFormerServers(this.#options.links);
		await this.#partitions.each(live, ({ scripts }, some) => scripts.register(...some.flatMap(({ key, user }) => [key, user])));
		for (const partition of this.#partitions.all) partition.subscriber.onReconnect(() => this.#onReconnect(partition));
		await this.#findVacant();
		this.#timers.push(setInterval(() => void this.#renew(), INTERVAL_MS.renew), setInterval(() => void this.#updateUsers(), INTERVAL_MS.renew), setInterval(() => void this.#findVacant(), INTERVAL_MS.findVacant), setInterval(() => void this.#resync(), INTERVAL_MS.resync));
	}
	async close() {
		this.#isClosed = true;
		for (const timer of this.#timers) clearInterval(timer);
		for (const { subscriber } of this.#partitions.all) subscriber.close();
		const givenBack = this.#giveBack();
		await completesWithin(CATCH_UP_TIMEOUT_MS, givenBack).catch(() => false);
		this.#redis.disconnect();
	}
	async #giveBack() {
		await this.#partitions.each(this.#streams.led(), ({ scripts }, some) => scripts.giveBack(...keysAndTokens(some)));
	}
	/** If the claim succeeds after this has rejected, its lease expires and the prompt is removed. */
	async claim(prompt) {
		const { clientScripts } = this.#partitions.of(prompt);
		const token = await clientScripts.claim(prompt.key, this.#options.instance);
		this.#streams.open(prompt).startNew(token);
		this.#users.follow(prompt.user).catch(this.#logFailure("follow a user"));
	}
	async takeOver(prompt) {
		const { scripts } = this.#partitions.of(prompt);
		const token = await scripts.takeOver(prompt.key, this.#options.instance);
		return token !== null && await this.#streams.open(prompt).takeLead(token);
	}
	stopLeading(key) {
		this.#streams.get(key)?.loseLead();
	}
	async discard(key) {
		const stream = this.#streams.get(key);
		const token = stream?.token();
		this.#streams.delete(key);
		if (stream && token !== void 0) await this.#partitions.of(stream).scripts.drop(key, token);
	}
	isLeader(key) {
		return this.#streams.isLed(key);
	}
	subscribe(prompt, subscriber) {
		const since = this.#discoveries.hasFirstEntry(prompt.key) ? "its start" : "later";
		this.#streams.open(prompt).subscribe(subscriber, since).catch(this.#logFailure("read a prompt"));
	}
	hasAppliedEnd(key) {
		return this.#streams.get(key)?.hasAppliedEnd() ?? false;
	}
	async append(key, entry) {
		const stream = this.#streams.get(key);
		if (!stream) throw new LeadershipLost();
		await stream.append(entry);
	}
	markReceived(key, group, position) {
		const user = this.#streams.get(key)?.user;
		if (user === void 0) return;
		const { scripts } = this.#partitions.ofUser(user);
		scripts.received(key, position, this.#options.instance, group, user).catch(this.#logFailure("publish a received position"));
	}
	resultFetched(user, promptId) {
		const { scripts } = this.#partitions.ofUser(user);
		scripts.fetched(user, promptId, Buffer.from(promptId).toString("base64url")).catch(this.#logFailure("publish that a result was fetched"));
	}
	async requestCancel({ key, user }) {
		const { scripts } = this.#partitions.ofUser(user);
		await scripts.cancel(user, key, this.#options.instance).catch(this.#logFailure("publish a cancel"));
	}
	isWatched(user) {
		return (this.#watcherCounts.get(user) ?? 0) > (this.#localUsers.has(user) ? 1 : 0);
	}
	watch(user, isThere) {
		if (isThere) this.#localUsers.add(user);
		else this.#localUsers.delete(user);
		this.#partitions.ofUser(user).watch(user, isThere);
	}
	isFollowed(user) {
		return this.#users.has(user);
	}
	followUser(user) {
		return this.#users.follow(user);
	}
	/** Resolves when all entries that were published before this call are applied, or after `CATCH_UP_TIMEOUT_MS`. */
	async whenCaughtUp(user) {
		await this.#users.follow(user);
		await completesWithin(CATCH_UP_TIMEOUT_MS, this.#catchUp(user));
	}
	async #catchUp(user) {
		await this.#partitions.ofUser(user).subscriber.ping();
		await this.#users.whenRecovered(user);
		await this.#discoveries.whenDone();
		await Promise.all(this.#streams.ofUser(user).map((stream) => stream.whenIdle()));
	}
	#partitionHandlers() {
		return {
			onEntry: (key, n, text, picture) => this.#onEntry(key, n, text, picture),
			onReceived: (key, group, upTo, sender) => {
				if (sender !== this.#options.instance) this.#streams.get(key)?.receivedElsewhere(group, upTo);
			},
			onFetched: (user, promptId) => this.#handlers?.resultFetched(user, promptId),
			onCancel: (key, sender) => {
				if (sender !== this.#options.instance) this.#handlers?.cancelRequested(key);
			},
			isWatched: (user) => this.isWatched(user),
			onWatcherCount: (user, count) => void this.#watcherCounts.set(user, count)
		};
	}
	#onReconnect(partition) {
		this.#delayTakeover();
		const users = this.#users.all().filter((user) => this.#partitions.ofUser(user) === partition);
		this.#users.recover(users).catch(this.#logFailure("read missed entries"));
	}
	#onEntry(key, n, text, picture) {
		const stream = this.#streams.get(key);
		if (!stream || stream.isUnknown()) this.#discoveries.run(key, n);
		else if (stream.token() === void 0) stream.receive(n, text, picture).catch(this.#logFailure("apply an entry"));
	}
	#renew = this.#repeated("renew leases", async () => {
		const led = this.#streams.led();
		await this.#partitions.each(led, async ({ scripts }, some) => {
			const lostKeys = await scripts.renew(...keysAndTokens(some));
			for (const key of lostKeys) this.#streams.get(key)?.loseLead();
		});
	});
	/** Not in `#renew`, because it waits for subscriptions. */
	#updateUsers = this.#repeated("follow the users", () => this.#users.update());
	#findVacant = this.#repeated("take over prompts without a leader", async () => {
		const askedAtMs = this.#clock.now();
		const keys = await this.#partitions.vacantKeys();
		if (this.#clock.now() - askedAtMs > SLOW_REDIS_MS) this.#delayTakeover();
		if (this.#clock.now() < this.#takeoverAllowedAtMs) return;
		const vacantKeys = keys.filter((key) => !this.#streams.isLed(key));
		if (vacantKeys.length > 0) await this.#handlers?.takeOverVacant(vacantKeys);
		this.#streams.removeEnded(this.#clock.now());
	});
	#resync = this.#repeated("read missed entries", async () => {
		for (const user of this.#users.all()) await this.#users.resync(user);
	});
	/** A task that logs its failure; a call during a run leads to one more run. */
	#repeated(action, task) {
		return coalesce(() => task().catch(this.#logFailure(action)));
	}
	/** Call after an outage of Redis: the live leaders need time to renew their leases. */
	#delayTakeover() {
		this.#takeoverAllowedAtMs = this.#clock.now() + LEASE_MS;
	}
	#logFailure(action) {
		return (error) => {
			if (this.#isClosed) return;
			const facts = {
				event: "replication.failed",
				err: error,
				what: action
			};
			this.#options.log.warn(facts, `could not ${action}`);
		};
	}
};
export { SharedEventLog };
