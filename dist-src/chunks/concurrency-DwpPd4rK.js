import { Semaphore } from "async-mutex";
// src/lib/concurrency.ts
/** Runs one piece of work at a time. */
function createMutex() {
	return createSemaphore(1);
}
/** Runs at most `max` pieces of work at a time. */
function createSemaphore(max) {
	const semaphore = new Semaphore(max);
	return (work) => semaphore.runExclusive(work);
}
/**
* Creates a mutex in which a key takes memory only while work for it runs or waits. It is a chain
* of promises: the library's mutex makes several for each piece of work, and a prompt has four
* pieces that do not wait.
*/
function createKeyedMutex() {
	const last = /* @__PURE__ */ new Map();
	return async (key, work) => {
		const before = last.get(key);
		const running = before ? before.then(work) : work();
		const ended = running.then(ignoreResult, ignoreResult);
		last.set(key, ended);
		try {
			return await running;
		} finally {
			if (last.get(key) === ended) last.delete(key);
		}
	};
}
function ignoreResult() {}
function createAdaptiveSemaphore(max) {
	const semaphore = new Semaphore(max);
	let limit = max;
	return {
		acquire: async () => void await semaphore.acquire(),
		release(end) {
			const next = nextLimit(limit, max, end);
			semaphore.setValue(semaphore.getValue() + 1 + next - limit);
			limit = next;
		}
	};
}
function nextLimit(limit, max, end) {
	if (end === "no capacity") return 1;
	return end === "passed" ? Math.min(max, limit * 2) : limit;
}
/**
* Acts on all items, with a limited number at a time. The first failure stops the rest; begun items
* end first.
*/
async function forEachConcurrently(maxConcurrent, items, act) {
	const remaining = items[Symbol.iterator]();
	let isStopped = false;
	const worker = async () => {
		while (!isStopped) {
			const next = remaining.next();
			if (next.done === true) return;
			await act(next.value);
		}
	};
	const stop = () => void (isStopped = true);
	const running = Array.from({ length: maxConcurrent }, () => worker().finally(stop));
	for (const end of await Promise.allSettled(running)) if (end.status === "rejected") throw end.reason;
}
function createDeferred() {
	let resolve = () => {};
	return {
		promise: new Promise((done) => resolve = done),
		resolve
	};
}
/**
* Tasks that run in the background until their owner closes. A waiting task costs no chain of
* promises, since there may be thousands.
*/
var BackgroundTasks = class {
	#stop = new AbortController();
	#running = /* @__PURE__ */ new Map();
	#lastId = 0;
	/** Aborted by `close`. */
	get signal() {
		return this.#stop.signal;
	}
	/**
	* Starts a task. The promise never rejects; `onError` gets the error, unless the task was
	* stopped.
	*/
	run(task, onError) {
		const id = ++this.#lastId;
		this.#running.set(id, Promise.resolve());
		const running = this.#runToEnd(id, task, onError);
		if (this.#running.has(id)) this.#running.set(id, running);
		return running;
	}
	/** Resolves when all tasks have ended. */
	async close() {
		this.#stop.abort();
		await Promise.all(this.#running.values());
	}
	async #runToEnd(id, task, onError) {
		try {
			await task();
		} catch (error) {
			if (!this.signal.aborted) onError(error);
		} finally {
			this.#running.delete(id);
		}
	}
};
/**
* Opens once. It has a promise only while it is closed and awaited: thousands of prompts have one.
*/
var Latch = class {
	#waiting;
	#isOpen = false;
	/** Resolves when the latch is open. */
	opened() {
		if (this.#isOpen) return Promise.resolve();
		return (this.#waiting ??= createDeferred()).promise;
	}
	open() {
		this.#isOpen = true;
		this.#waiting?.resolve();
		this.#waiting = void 0;
	}
};
/**
* Runs a task without overlaps: all calls during a run share the next run, which begins after it.
*/
function coalesce(task) {
	let last = Promise.resolve();
	let next;
	return () => next ??= last.catch(() => {}).then(() => {
		next = void 0;
		return last = task();
	});
}
/** Opens something when it is first needed. After a failure the next call tries again. */
function lazily(open) {
	let opened;
	return {
		get() {
			opened ??= open().catch((error) => {
				opened = void 0;
				throw error;
			});
			return opened;
		},
		/** Returns it if it was needed before, otherwise `undefined`. */
		known: () => opened
	};
}
export { createDeferred as a, createSemaphore as c, createAdaptiveSemaphore as i, forEachConcurrently as l, Latch as n, createKeyedMutex as o, coalesce as r, createMutex as s, BackgroundTasks as t, lazily as u };
