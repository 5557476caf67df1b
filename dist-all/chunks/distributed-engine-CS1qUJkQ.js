import { o as systemClock } from "./event-loop-BDDWO5Ig.js";
import { a as workerLost, d as createJobFiles, h as SWEEP_FAILURE, i as createEngine, l as toEndPatch, n as JobRun, o as jobFromRow, r as PeriodicTask, s as jobStateOf, v as sweep } from "./job-engine-BheqOIMe.js";
import { t as require_cjs } from "./cjs-B5a7sYc3.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { t as reached } from "./crash-point-PZMw3ZMz.js";
import { t as COMMAND_TIMEOUT_MS } from "./redis-BqcOn5as.js";
import { n as createQueueKeys, t as QUEUE_NAME } from "./redis-keys-Pwz_6M3Y.js";
import { i as defineQueueScripts, n as createSharedOutputNames, t as createSharedBlobs } from "./shared-blobs-C0oQS5jk.js";
import { t as I } from "./index.min-rxNe_V92.js";
import { a as StopRequest, c as JobFeed, f as dropOldestPreview, p as IS_TERMINAL } from "./asset-refs-DdHYYwNI.js";
import { l as stringifyJson, o as parseJson } from "./json-0U1hIHCx.js";
import { r as coalesce } from "./concurrency-B9CCxp_8.js";
import { r as createProcessLeases } from "./leases-C9MnyXjq.js";
import { randomUUID } from "node:crypto";
// src/upstreams/distributed/bull-worker.ts
var import_cjs = require_cjs();
/**
* The interval at which locks are renewed. It is much shorter than a lock, so that locks do not expire when Redis is
* unreachable for some seconds.
*/
const RENEW_MS = 500;
/** The interval at which idle workers poll, because BullMQ does not notify them of a returned job. */
const IDLE_POLL_S = 1;
/** A job fails when more of its workers died, even if none of its nodes has begun. */
const MAX_STALLS = 20;
const RETRY_DELAY_MS = {
	first: 1e3,
	last: 3e4
};
/** The same error is logged at most once in this time. */
const LOG_REPEAT_MS = 3e4;
const MAX_REASONS = 100;
/** Runs the jobs that BullMQ assigns to this process. */
var BullWorker = class {
	#options;
	#worker;
	#recentlyLogged = new I({
		max: MAX_REASONS,
		ttl: LOG_REPEAT_MS
	});
	#running = /* @__PURE__ */ new Set();
	#isClosing = false;
	constructor(options) {
		this.#options = options;
		this.#worker = new import_cjs.Worker(QUEUE_NAME, (job, token, signal) => this.#run(job, token, signal), {
			...workerOptions(options),
			autorun: false
		});
		this.#worker.on("error", (error) => this.#onError(error));
		this.#worker.on("failed", (job, error) => void this.#onFailed(job, error));
		this.#worker.on("lockRenewalFailed", (ids) => ids.forEach((id) => this.stop(id, "lost")));
	}
	start() {
		if (this.#isClosing) return;
		this.#worker.run().catch((error) => {
			if (this.#isClosing) return;
			this.#options.log.fatal({
				event: "queue.worker_stopped",
				err: error
			}, "the worker of the job queue has stopped");
		});
	}
	/** Stops a job if it runs here. */
	stop(id, reason) {
		this.#worker.cancelJob(id, reason);
	}
	/** The ids of the jobs that run here. */
	running() {
		return [...this.#running];
	}
	async close() {
		this.#isClosing = true;
		const closed = this.#worker.close();
		this.#worker.cancelAllJobs("shutdown");
		await closed;
	}
	async #run(job, token, signal = AbortSignal.abort("shutdown")) {
		if ((this.#isClosing ? "interrupted" : await this.#runHere(job.id ?? "", signal)) === "over") return;
		await job.moveToWait(token);
		await this.#options.onReturned(job.data.user);
		throw new import_cjs.WaitingError();
	}
	async #runHere(id, signal) {
		this.#running.add(id);
		const stop = stopRequestOf(signal);
		return await this.#options.run(id, stop).finally(() => this.#running.delete(id));
	}
	/** Logs a failed run. Ends the job if BullMQ has given it up, after too many runs or deaths; otherwise BullMQ tries again. */
	async #onFailed(job, error) {
		const { log } = this.#options;
		log.error({
			event: "queue.ticket_failed",
			err: error,
			job: job?.id
		}, "a job of the queue could not be processed");
		if (job?.id === void 0 || job.finishedOn === void 0) return;
		const isDead = error instanceof import_cjs.UnrecoverableError;
		await this.#options.giveUp(job.id, isDead ? { deaths: 21 } : error);
	}
	#onError({ name, message: reason }) {
		if (name === "ReplyError") this.#pause();
		if (!this.#recentlyLogged.has(reason)) this.#options.log.warn({
			event: "queue.unavailable",
			reason
		}, "the job queue reports an error");
		this.#recentlyLogged.set(reason, true);
	}
	/**
	* Pauses the worker for a second. When Redis refuses a command, for example because it is full, BullMQ repeats it
	* without a delay, 9,000 times a second.
	*/
	async #pause() {
		if (this.#worker.isPaused()) return;
		await this.#worker.pause(true);
		await this.#options.clock.sleep(RETRY_DELAY_MS.first);
		if (!this.#isClosing) await this.#worker.resume();
	}
};
function workerOptions({ redis, keys, concurrency, takeover }) {
	return {
		connection: redis,
		prefix: keys.bullPrefix,
		concurrency,
		lockDuration: takeover.lockMs,
		lockRenewTime: Math.min(RENEW_MS, takeover.lockMs / 2),
		stalledInterval: takeover.checkMs,
		maxStalledCount: MAX_STALLS,
		drainDelay: IDLE_POLL_S,
		runRetryDelay: RETRY_DELAY_MS.first,
		settings: { backoffStrategy: retryDelayMs }
	};
}
function retryDelayMs(failures) {
	return Math.min(RETRY_DELAY_MS.first * 2 ** (failures - 1), RETRY_DELAY_MS.last);
}
/** Makes a stop request of BullMQ's signal; the reason of the signal is the reason to stop. */
function stopRequestOf(signal) {
	const stop = new StopRequest();
	const request = () => stop.request(signal.reason);
	if (signal.aborted) request();
	signal.addEventListener("abort", request);
	return stop;
}
// src/upstreams/distributed/bull-job-queue.ts
/** BullMQ's events are not read, because each reader would get those of all jobs. */
const MAX_LOGGED_EVENTS = 0;
/** A run that fails for an internal reason is repeated up to this number; `BullWorker` sets the delays. */
const MAX_RUNS = 100;
/** The queue that several processes share. Each of its jobs is a BullMQ job with the same id. */
var BullJobQueue = class {
	#options;
	#scripts;
	#queue;
	constructor(options) {
		const { redis, keys } = options;
		this.#options = options;
		this.#scripts = defineQueueScripts(redis, keys);
		this.#queue = new import_cjs.Queue(QUEUE_NAME, {
			connection: redis,
			prefix: keys.bullPrefix,
			streams: { events: { maxLen: MAX_LOGGED_EVENTS } },
			defaultJobOptions: {
				removeOnComplete: true,
				removeOnFail: true,
				attempts: MAX_RUNS,
				backoff: { type: "custom" }
			}
		});
		this.#queue.on("error", this.#logError);
	}
	async add(jobs) {
		const added = (await Promise.all(jobs.map((job) => this.#enter(job)))).flatMap((job) => job.opts.priority > 0 ? [job] : []);
		if (added.length === 0) return;
		reached("after-queue-entry");
		await Promise.all(added.map(({ name, data, opts }) => this.#queue.add(name, data, opts)));
		await Promise.all([...new Set(jobs.map(({ user }) => user))].map((user) => this.#arrange(user)));
	}
	/** False when a live worker has the job: then BullMQ does not remove it. */
	async remove(id) {
		return await this.#queue.remove(id) === 1;
	}
	async cancel(id) {
		return await this.#scripts.cancel(id) === 1;
	}
	async positions(ids) {
		const { redis, keys } = this.#options;
		const [only, ...others] = ids;
		if (only === void 0) return [];
		if (others.length === 0) return [await redis.zrank(keys.waiting, only)];
		const waiting = await redis.zrange(keys.waiting, 0, "-1");
		const positions = new Map(waiting.map((id, position) => [id, position]));
		return ids.map((id) => positions.get(id) ?? null);
	}
	waiting() {
		return this.#withTimeout(this.#queue.getJobCountByTypes("wait", "prioritized", "delayed"));
	}
	waitingOf(user) {
		return this.#withTimeout(this.#scripts.waitingOf(user));
	}
	async nextOrder() {
		const { redis, keys } = this.#options;
		const highest = await this.#withTimeout(redis.get(keys.highestOrder));
		return highest === null ? 0 : Math.floor(Number(highest)) + 1;
	}
	worker(options) {
		const worker = new BullWorker({
			...this.#options,
			...options,
			onReturned: (user) => this.#arrange(user)
		});
		const { pubsub, keys } = this.#options;
		const onCancel = (id) => worker.stop(id.toString(), "canceled");
		const listening = pubsub.subscribe(keys.cancelChannel(this.#options.worker), onCancel).catch(this.#logError);
		pubsub.onReconnect(() => void this.#cancelMissed(worker).catch(this.#logError));
		return {
			start: () => void listening.then(() => worker.start()),
			close: () => worker.close()
		};
	}
	async close() {
		await this.#queue.close();
	}
	async #enter({ id, user, order }) {
		const priority = await this.#scripts.enter(id, user, order);
		return {
			name: "job",
			data: { user },
			opts: {
				jobId: id,
				priority
			}
		};
	}
	#arrange(user) {
		return this.#scripts.arrange(user);
	}
	/** Rejects after the time limit. The submission is not recorded yet, so its caller need not wait for Redis. */
	async #withTimeout(reply) {
		const { timeoutMs = COMMAND_TIMEOUT_MS } = this.#options;
		if (await completesWithin(timeoutMs, reply)) return await reply;
		throw new Error("Command timed out");
	}
	/** Stops the running jobs whose cancel message was missed. */
	async #cancelMissed(worker) {
		const { redis, keys } = this.#options;
		for (const id of worker.running()) if (await redis.hexists(keys.run(id), "cancel") === 1) worker.stop(id, "canceled");
	}
	#logError = (error) => this.#options.log.debug({
		event: "queue.error",
		err: error
	}, "BullMQ reports an error");
};
// src/upstreams/distributed-state/run-codec.ts
const LINE_END = 10;
/** The first byte of a published preview. */
const PREVIEW = 112;
/** A position is the fence times this, plus the number of the event. No run has so many events. */
const FENCE_UNIT = 2 ** 32;
/** The names of hash fields begin with this: before the number of an output, or the id of a node with shown results. */
const OUTPUT = "output:";
const UI = "ui:";
/** Decodes the state of a run from its hash; `undefined` when there is none. */
function stateOf(fields) {
	if (fields["fence"] === void 0) return void 0;
	const { status, startedAtMs, progress, cached, cancel, end } = fields;
	const isStopping = cancel !== void 0 && status === "running";
	const outputs = valuesOf(fields, OUTPUT).toSorted(([a], [b]) => Number(a) - Number(b));
	const ui = valuesOf(fields, UI);
	return {
		end: end === void 0 ? void 0 : JSON.parse(end),
		status: isStopping ? "canceling" : status ?? "queued",
		startedAtMs: startedAtMs === void 0 ? null : Number(startedAtMs),
		...progress !== void 0 && { progress: parseJson(progress) },
		...outputs.length > 0 && { outputs: outputs.map(([, output]) => output) },
		...ui.length > 0 && { ui: Object.fromEntries(ui) },
		...cached !== void 0 && { cachedNodes: parseJson(cached) }
	};
}
/** The hash fields that an event changes, with their values. Each output and each shown result has a field. */
function fieldsOf(job, { event, data }) {
	const write = (value) => stringifyJson(value);
	if (event === "status") return {
		status: job.status,
		cached: write(job.cachedNodes)
	};
	if (event === "progress") return { progress: write(job.progress) };
	if (event === "output") return { [`${OUTPUT}${job.outputs.length - 1}`]: write(job.outputs.at(-1)) };
	if (event !== "x_node" || !data.ui) return {};
	return { [`${UI}${data.node_id}`]: write(data.ui) };
}
function valuesOf(fields, prefix) {
	return Object.entries(fields).filter(([name]) => name.startsWith(prefix)).map(([name, text]) => [name.slice(prefix.length), parseJson(text)]);
}
/** Encodes an event of a job, as it is stored and published. */
function encodeEvent(event) {
	return stringifyJson(event);
}
/** Decodes an event of `encodeEvent`. */
function decodeEvent(text) {
	return parseJson(text);
}
/** Encodes a preview: a line of JSON, then the bytes of the picture. Previews are published, but not stored. */
function encodePreview({ data: { bytes, ...head } }) {
	return Buffer.concat([Buffer.from(`${stringifyJson(head)}\n`), bytes]);
}
/** Decodes a published event and its position in the stream; a preview has no position. */
function decodePublished(message) {
	const end = message.indexOf(LINE_END);
	const head = message.toString("utf8", 1, end);
	const body = message.subarray(end + 1);
	if (message[0] !== PREVIEW) return {
		event: decodeEvent(body.toString()),
		position: positionOf(head)
	};
	return { event: {
		event: "preview",
		data: {
			...parseJson(head),
			bytes: body
		}
	} };
}
/** The position of an event from the id `FENCE-N` of its stream entry. `N` has no gaps within a fence. */
function positionOf(id) {
	const [fence = 0, n = 0] = id.split("-").map(Number);
	return fence * FENCE_UNIT + n;
}
/** The id of the stream entry at a position. */
function idOf(position) {
	return `${Math.floor(position / FENCE_UNIT)}-${position % FENCE_UNIT}`;
}
// src/upstreams/distributed-state/run-state.ts
/** How long subscribers can read the end of a job. */
const ENDED_TTL_MS = 3e5;
/**
* Creates the functions for the states of runs in Redis; each change is one script. `worker`: the name under which
* this process claims jobs, and to which requests to cancel them are sent.
*/
function createRunStates(redis, keys, worker) {
	const scripts = defineQueueScripts(redis, keys);
	const write = (act, { id, fence = 0 }, ...args) => scripts[act](id, fence, ...args);
	return {
		claim: async (id, nowMs) => toClaim(await scripts.claim(id, nowMs, 3, worker)),
		/** Claims a job only to end it. A worker that has it can then write no more. */
		seize: async (id) => toClaim(await scripts.claim(id, 0, "")),
		/** Counts an attempt. Call it before the first node begins: the count is durable when this resolves. */
		begin: (job) => write("begin", job),
		/** Takes back the attempt of a worker that had this job under an earlier fence and did not crash. */
		stillAlive: ({ id, fence = 0 }) => scripts.stillAlive(id, fence),
		/** Stores and publishes events, and stores the fields that they change. */
		append(job, items) {
			const changed = items.map((item) => item.kind === "e" ? item.fields : {});
			const pairs = Object.entries(Object.assign({}, ...changed));
			const args = items.flatMap((item) => item.kind === "p" ? [
				"p",
				0,
				item.bytes
			] : [
				"e",
				item.n,
				item.text
			]);
			return write("append", job, pairs.length, ...pairs.flat(), ...args);
		},
		/** Decides the end of a job; `ok` also when an end was decided before. */
		end: (job, patch) => write("end", job, patch.status, JSON.stringify(patch), statusEvent(patch.status, null)),
		/** Returns a claimed job to the queue. `attemptsReturned`: 1 if the attempt is not counted. */
		requeue: (job, attemptsReturned) => write("requeue", job, statusEvent("queued", 0), attemptsReturned),
		/** True while this claim of a job is the current one and the job has not ended. */
		async isCurrent({ id, fence = 0 }) {
			const [current, end] = await redis.hmget(keys.run(id), "fence", "end");
			return Number(current) === fence && end === null;
		},
		/** Call when the end is in the ledger: the keys of the job expire after five minutes. */
		async expire(id) {
			const all = [keys.run(id), keys.eventStream(id)];
			await Promise.all(all.map((key) => redis.pexpire(key, ENDED_TTL_MS)));
		},
		/** The states of runs, in the order of the ids; `undefined` for unknown jobs. */
		async read(ids) {
			return (await Promise.all(ids.map((id) => redis.hgetall(keys.run(id))))).map(stateOf);
		}
	};
}
function toClaim([kind, first, attempts = 0]) {
	if (kind === "ended") return {
		kind,
		patch: JSON.parse(String(first))
	};
	return {
		kind,
		fence: Number(first),
		attempts: Number(attempts)
	};
}
function statusEvent(status, position) {
	return encodeEvent({
		event: "status",
		data: {
			status,
			queue_position: position
		}
	});
}
// src/upstreams/distributed/shared-services.ts
/** A connection that is silent for this long while commands wait is closed and opened again. */
const SOCKET_TIMEOUT_MS = 1e4;
const TAKEOVER = {
	lockMs: 6e3,
	checkMs: 1e3
};
/** Opens the services over the shared Redis and files that all parts of this process use. */
function openSharedServices(deps) {
	const { links, ledger, limits, log, nodes, clock = systemClock } = deps;
	const redis = links.connect({ socketTimeout: SOCKET_TIMEOUT_MS });
	const keys = createQueueKeys(links.partitions);
	const blobs = createSharedBlobs({
		redis,
		keys,
		blobs: deps.blobs,
		ledger,
		clock
	});
	const jobFiles = createJobFiles({
		ledger,
		nodes,
		blobs,
		clock,
		names: createSharedOutputNames(redis, keys),
		highestUsedElsewhere: deps.highestUsedElsewhere,
		retentionMs: limits.retentionMs,
		isInUse: async (id) => (await ledger.jobs.unfinished()).some((row) => jobFromRow(row).reads.has(id))
	});
	const pubsub = links.subscriber(links.partitions.queue);
	const worker = randomUUID();
	return {
		redis,
		keys,
		pubsub,
		blobs,
		jobFiles,
		queue: new BullJobQueue({
			redis,
			pubsub,
			keys,
			worker,
			takeover: {
				...TAKEOVER,
				...deps.takeover
			},
			clock,
			log
		}),
		runState: createRunStates(redis, keys, worker),
		clock
	};
}
// src/upstreams/distributed/event-mirrors.ts
/** The submitter of a job gets all its events if it asks for them within this time. */
const SUBMITTER_MS = 3e4;
const MAX_SUBMITTED = 1e4;
/** The interval at which streams are read, in case a message was lost. */
const CATCH_UP_MS = 15e3;
/** The interval at which the queue positions of waiting jobs are read. */
const POSITIONS_MS = 500;
/** Makes feeds in this process of the events of jobs that other processes run. */
var EventMirrors = class {
	#options;
	#mirrors = /* @__PURE__ */ new Set();
	/** The submitter of each job that was just submitted here, by job id. */
	#submitted = new I({
		max: MAX_SUBMITTED,
		ttl: SUBMITTER_MS
	});
	#updatePositions = coalesce(() => this.#readPositions().catch(this.#logFailure));
	#timers;
	constructor(options) {
		this.#options = options;
		this.#timers = [setInterval(() => this.#catchUpAll(), CATCH_UP_MS).unref(), setInterval(() => void this.#updatePositions(), POSITIONS_MS).unref()];
		options.pubsub.onReconnect(() => this.#catchUpAll());
	}
	/** Call when the user has submitted a job here: its first subscription then gets all events. */
	submitted(user, id) {
		this.#submitted.set(id, user);
	}
	/** All events of a job for the user who has just submitted it here. `undefined` for other callers, and the second time. */
	ofSubmitter(caller, id, signal) {
		if (this.#submitted.get(id) !== caller.user) return void 0;
		this.#submitted.delete(id);
		const mirror = this.#create(id);
		const events = mirror.feed.subscribe(signal);
		mirror.open().catch(this.#logFailure);
		return events;
	}
	/** Subscribes to a job. The first events are its latest status and progress. */
	async subscribe(id, signal) {
		const mirror = this.#create(id);
		await mirror.open();
		return mirror.feed.subscribe(signal);
	}
	close() {
		for (const timer of this.#timers) clearInterval(timer);
		for (const mirror of this.#mirrors) mirror.close();
	}
	#create(id) {
		const mirror = new EventMirror(id, this.#options, () => this.#mirrors.delete(mirror));
		this.#mirrors.add(mirror);
		return mirror;
	}
	#catchUpAll() {
		for (const mirror of this.#mirrors) mirror.readMissed().catch(this.#logFailure);
	}
	async #readPositions() {
		const waiting = [...this.#mirrors].filter((mirror) => mirror.isWaiting());
		if (waiting.length === 0) return;
		const positions = await this.#options.queue.positions(waiting.map(({ id }) => id));
		for (const [i, mirror] of waiting.entries()) mirror.setQueuePosition(positions[i] ?? null);
	}
	#logFailure = (error) => this.#options.log.warn({
		event: "job_events.read_failed",
		err: error
	}, "could not read events of jobs");
};
/** A feed in this process of the events of one job that another process runs. */
var EventMirror = class {
	id;
	feed = new JobFeed({ status: "queued" }, () => this.close());
	#options;
	#onClose;
	/** Reads and applies the events after the last known position. */
	#catchUp = coalesce(() => this.#readStream());
	/** The position of the last applied event. */
	#last = 0;
	/** True when the job has ended, or when its events are no longer read. */
	#isClosed = false;
	constructor(id, options, onClose) {
		this.id = id;
		this.#options = options;
		this.#onClose = onClose;
	}
	isWaiting() {
		return this.feed.status()?.status === "queued";
	}
	setQueuePosition(position) {
		const isKnown = position === this.feed.status()?.queue_position;
		if (position === null || isKnown || !this.isWaiting()) return;
		this.feed.emit({
			event: "status",
			data: {
				status: "queued",
				queue_position: position
			}
		});
	}
	close() {
		if (this.#isClosed) return;
		this.#isClosed = true;
		this.feed.end();
		const { pubsub, keys } = this.#options;
		pubsub.unsubscribe(keys.eventChannel(this.id), this.#onMessage);
		this.#onClose();
	}
	/** Resolves once the mirror is subscribed and has read the stream; a failure closes it. */
	async open() {
		const { keys, pubsub } = this.#options;
		try {
			await pubsub.subscribe(keys.eventChannel(this.id), this.#onMessage);
			await this.#catchUp();
			if (!this.#isClosed) await this.#compareStatus();
		} catch (error) {
			this.close();
			throw error;
		}
	}
	/** Reads missed events. If the state of the run has expired, its end was missed: closes the feed, and its reader reads the job. */
	async readMissed() {
		const { redis, keys } = this.#options;
		await this.#catchUp();
		if (await redis.exists(keys.run(this.id)) === 0) this.close();
	}
	async #readStream() {
		const { redis, keys } = this.#options;
		const entries = await redis.xrange(keys.eventStream(this.id), `(${idOf(this.#last)}`, "+");
		for (const [id, [, text = ""]] of entries) this.#apply(positionOf(id), decodeEvent(text));
	}
	#onMessage = (message) => {
		const { position, event } = decodePublished(message);
		if (position === void 0) this.feed.emit(event);
		else if (position === this.#last + 1) this.#apply(position, event);
		else if (position > this.#last) this.#catchUp().catch(() => {});
	};
	#apply(position, event) {
		if (this.#isClosed || position <= this.#last) return;
		this.#last = position;
		this.feed.emit(event);
		if (event.event === "status" && IS_TERMINAL[event.data.status]) this.close();
	}
	/** Emits the status of the run, which may be newer than the last event: a worker may have claimed the job since. */
	async #compareStatus() {
		const { runState, queue } = this.#options;
		const last = this.#last;
		const [[run], [position = null]] = await Promise.all([runState.read([this.id]), queue.positions([this.id])]);
		if (!run?.status || IS_TERMINAL[run.status] || this.#isClosed || this.#last !== last) return;
		const { status } = run;
		if (status === this.feed.status()?.status && position === null) return;
		this.feed.emit({
			event: "status",
			data: {
				status,
				queue_position: position
			}
		});
	}
};
// src/upstreams/distributed/janitor.ts
const JANITOR = {
	name: "janitor",
	leaseMs: 3e5
};
/** The interval at which bytes without a record are removed. */
const UNRECORDED_EVERY_MS = 36e5;
/** A sweep reads the unfinished jobs again when its list is this old. */
const REREAD_MS = 1e3;
/** Files are removed this long after they expire, so that a job which reuses them can extend their retention. */
const GRACE_MS = 6e4;
/** Removes expired data and repairs the queue, in one process at a time for all processes. */
var Janitor = class {
	#options;
	#leases;
	#periodicTask;
	constructor(options) {
		const { redis, keys, clock, log, sweepIntervalMs: everyMs } = options;
		this.#options = options;
		this.#leases = createProcessLeases(redis, keys.prefix);
		const failure = SWEEP_FAILURE;
		this.#periodicTask = new PeriodicTask(() => this.#run(), {
			log,
			clock,
			everyMs,
			failure
		});
	}
	/**
	* Restores the queue at once, then cleans up at an interval. The queue does not wait for the lease: the lease of a
	* crashed janitor lasts for minutes.
	*/
	start() {
		this.#periodicTask.start(async () => this.#options.queue.add(await this.#options.ledger.jobs.unfinished()));
	}
	close() {
		return this.#periodicTask.close();
	}
	async #run() {
		const { redis, keys } = this.#options;
		const ids = await Promise.all(keys.ledgerIds.map((key) => redis.get(key)));
		if (ids.some((id) => id === null || id !== ids[0])) return;
		await this.#leases.tryWith(JANITOR, () => this.#cleanUp());
	}
	async #cleanUp() {
		const { redis, keys, ledger, blobs, queue } = this.#options;
		await queue.add(await ledger.jobs.unfinished());
		await this.#sweep();
		await blobs.finishRemovals();
		if (await redis.set(keys.unrecordedSweep, "1", "PX", UNRECORDED_EVERY_MS, "NX") === "OK") await blobs.removeUnrecorded();
	}
	async #sweep() {
		const { jobFiles, ledger, assetBudgetBytes, clock } = this.#options;
		const unfinished = new I({
			max: 1,
			ttl: REREAD_MS,
			ttlResolution: 0,
			perf: clock,
			fetchMethod: async () => idsOf(await ledger.jobs.unfinished())
		});
		const current = () => unfinished.forceFetch("jobs");
		await sweep({
			...jobFiles,
			ledger,
			assetBudgetBytes,
			clock: { now: () => clock.now() - GRACE_MS },
			isInUse: async (id) => (await current()).inputs.has(id),
			isLive: async (id) => (await current()).jobs.has(id)
		});
	}
};
/** The ids of the jobs, and of the assets that they read. */
function idsOf(rows) {
	return {
		jobs: new Set(rows.map(({ id }) => id)),
		inputs: new Set(rows.flatMap((row) => [...jobFromRow(row).reads]))
	};
}
// src/upstreams/distributed/event-publisher.ts
/** The most events that one script writes. */
const MAX_BATCH = 200;
/**
* The feed of a job that publishes its events to other processes, in order. Events that come during a write are
* collected for the next one. While Redis is unreachable, all events and the latest previews are kept.
*/
var EventPublisher = class extends JobFeed {
	#runState;
	#run;
	#waiting = [];
	#eventCount = 0;
	#isOver = false;
	#send = coalesce(async () => {
		try {
			while (this.#waiting.length > 0 && !this.#isOver) await this.#sendBatch();
		} catch (error) {
			this.#isOver = true;
			this.#run().onPublishError(error);
		}
	});
	/** `run` gets the result of each batch. */
	constructor(runState, run) {
		super({ status: "running" });
		this.#runState = runState;
		this.#run = run;
	}
	emit(event) {
		super.emit(event);
		this.#publish(event);
	}
	/** Resolves when all events so far are written, or cannot be written. */
	drain() {
		return this.#send();
	}
	#publish(event) {
		if (this.#isOver) return;
		if (event.event === "preview") {
			dropOldestPreview(this.#waiting, ({ kind }) => kind === "p");
			this.#waiting.push({
				kind: "p",
				bytes: encodePreview(event)
			});
		} else {
			const fields = fieldsOf(this.#run().job, event);
			this.#waiting.push({
				kind: "e",
				n: ++this.#eventCount,
				text: encodeEvent(event),
				fields
			});
		}
		this.#send();
	}
	async #sendBatch() {
		const run = this.#run();
		const result = await this.#runState.append(run.job, this.#waiting.splice(0, MAX_BATCH));
		this.#isOver = result === "stale";
		run.applyResult(result);
	}
};
// src/upstreams/distributed/redis-runs.ts
/** The delay between attempts to requeue a job while Redis refuses writes. */
const RETRY_MS = 1e3;
/** The state of unfinished jobs in Redis, for several processes. Each run has a fence of its own. */
function createRedisRuns(options) {
	const { ledger, runState, eventMirrors, clock, log } = options;
	const record = async (id, patch) => {
		await ledger.jobs.update(id, patch);
		await runState.expire(id);
	};
	/** Claims a job. `undefined`: the job has ended, and its end is in the ledger. */
	async function takeOver(id, claimJob) {
		const row = await ledger.jobs.get(id);
		if (!row || isOver(row)) {
			await runState.expire(id);
			return;
		}
		const claim = await claimJob(id);
		reached("after-claim");
		if (claim.kind !== "ended") return {
			...claim,
			job: {
				...jobFromRow(row),
				fence: claim.fence
			}
		};
		await record(id, claim.patch);
	}
	function startRun(queued, stop, attempts) {
		const feed = new EventPublisher(runState, () => run);
		const begun = {
			status: "running",
			startedAtMs: clock.now(),
			attempts
		};
		const job = {
			...queued,
			...begun,
			feed
		};
		const run = new JobRun({
			job,
			stop,
			drain: () => feed.drain(),
			log
		});
		return run;
	}
	return {
		isShared: true,
		statesOf: (rows) => statesOf(rows, options),
		ownEvents: (caller, id, signal) => eventMirrors.ofSubmitter(caller, id, signal),
		subscribe: (id, signal) => eventMirrors.subscribe(id, signal),
		add(job) {
			eventMirrors.submitted(job.user, job.id);
			return () => {};
		},
		async claim(id, stop) {
			const claim = await takeOver(id, () => runState.claim(id, clock.now()));
			if (!claim) return { kind: "over" };
			const { kind, job, attempts } = claim;
			if (kind === "run") return {
				kind,
				run: startRun(job, stop, attempts)
			};
			if (kind === "cancel") return {
				kind: "end",
				job,
				end: { status: "canceled" }
			};
			const end = workerLost(attempts);
			return {
				kind: "end",
				job: {
					...job,
					startedAtMs: clock.now()
				},
				end
			};
		},
		seize: async (id) => (await takeOver(id, runState.seize))?.job,
		recordCancel: async () => {},
		async begin(job) {
			if (await runState.begin(job) === "stale") throw new Error("another worker took this job over");
		},
		isCurrent: (job) => runState.isCurrent(job),
		async end(job, ended) {
			await job.filesOnDisk?.();
			const patch = await toEndPatch(ended);
			const result = await runState.end(job, patch);
			if (result !== "ok") return result;
			reached("after-job-end-decided");
			await record(job.id, patch);
			reached("after-job-end");
			return result;
		},
		async requeue(run) {
			while (!run.isLost) try {
				await runState.requeue(run.job, run.isUnpublished ? 0 : 1);
				return;
			} catch (error) {
				if (run.isClosing) throw error;
				await clock.sleep(RETRY_MS);
			}
		},
		discarded: (job) => runState.stillAlive(job)
	};
}
/** The states of rows of the ledger, with the current state and queue position of unfinished jobs. */
async function statesOf(rows, { runState, queue }) {
	const live = rows.filter((row) => !isOver(row)).map(({ id }) => id);
	const [runs, positions] = await Promise.all([runState.read(live), queue.positions(live)]);
	const indexes = new Map(live.map((id, i) => [id, i]));
	return rows.map((row) => {
		const i = indexes.get(row.id) ?? -1;
		return currentState(row, runs[i], positions[i] ?? null);
	});
}
/** The state of a job. Until the end is stored in the row, the state of the run is newer than the row. */
function currentState(row, run, position) {
	if (run === void 0) return {
		...jobStateOf(row),
		position: null
	};
	const { end, ...state } = run;
	if (end) return {
		...jobStateOf({
			...row,
			...end
		}),
		position: null
	};
	return {
		...jobStateOf(row),
		...state,
		position
	};
}
function isOver(row) {
	return IS_TERMINAL[row.status];
}
// src/upstreams/distributed/distributed-engine.ts
const CLOSE_WITHIN_MS = 1e4;
/**
* Creates the embedded engine over Redis, which several processes share. This process accepts jobs, and runs jobs
* when `concurrency` is not 0.
*/
async function createDistributedEngine(deps) {
	const shared = openSharedServices(deps);
	const { log, limits, ledger } = deps;
	const eventMirrors = new EventMirrors({
		...shared,
		log
	});
	const engine = await createEngine({
		...deps,
		...shared,
		runs: createRedisRuns({
			...shared,
			ledger,
			eventMirrors,
			log
		}),
		cleanUp: new Janitor({
			...limits,
			...shared,
			ledger,
			log
		})
	});
	return {
		...engine,
		async close() {
			eventMirrors.close();
			if (!await completesWithin(CLOSE_WITHIN_MS, engine.close())) log.warn({ event: "worker.close_timed_out" }, "Redis is unavailable: other processes take over the running jobs");
			shared.pubsub.close();
		}
	};
}
export { createDistributedEngine };
