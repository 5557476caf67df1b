// node_modules/async-mutex/index.mjs
const E_TIMEOUT = /* @__PURE__ */ new Error("timeout while waiting for mutex to become available");
const E_CANCELED = /* @__PURE__ */ new Error("request for lock canceled");
var __awaiter$2 = function(thisArg, _arguments, P, generator) {
	function adopt(value) {
		return value instanceof P ? value : new P(function(resolve) {
			resolve(value);
		});
	}
	return new (P || (P = Promise))(function(resolve, reject) {
		function fulfilled(value) {
			try {
				step(generator.next(value));
			} catch (e) {
				reject(e);
			}
		}
		function rejected(value) {
			try {
				step(generator["throw"](value));
			} catch (e) {
				reject(e);
			}
		}
		function step(result) {
			result.done ? resolve(result.value) : adopt(result.value).then(fulfilled, rejected);
		}
		step((generator = generator.apply(thisArg, _arguments || [])).next());
	});
};
var Semaphore = class {
	constructor(_value, _cancelError = E_CANCELED) {
		this._value = _value;
		this._cancelError = _cancelError;
		this._queue = [];
		this._weightedWaiters = [];
	}
	acquire(weight = 1, priority = 0) {
		if (weight <= 0) throw new Error(`invalid weight ${weight}: must be positive`);
		return new Promise((resolve, reject) => {
			const task = {
				resolve,
				reject,
				weight,
				priority
			};
			const i = findIndexFromEnd(this._queue, (other) => priority <= other.priority);
			if (i === -1 && weight <= this._value) this._dispatchItem(task);
			else this._queue.splice(i + 1, 0, task);
		});
	}
	runExclusive(callback_1) {
		return __awaiter$2(this, arguments, void 0, function* (callback, weight = 1, priority = 0) {
			const [value, release] = yield this.acquire(weight, priority);
			try {
				return yield callback(value);
			} finally {
				release();
			}
		});
	}
	waitForUnlock(weight = 1, priority = 0) {
		if (weight <= 0) throw new Error(`invalid weight ${weight}: must be positive`);
		if (this._couldLockImmediately(weight, priority)) return Promise.resolve();
		else return new Promise((resolve) => {
			if (!this._weightedWaiters[weight - 1]) this._weightedWaiters[weight - 1] = [];
			insertSorted(this._weightedWaiters[weight - 1], {
				resolve,
				priority
			});
		});
	}
	isLocked() {
		return this._value <= 0;
	}
	getValue() {
		return this._value;
	}
	setValue(value) {
		this._value = value;
		this._dispatchQueue();
	}
	release(weight = 1) {
		if (weight <= 0) throw new Error(`invalid weight ${weight}: must be positive`);
		this._value += weight;
		this._dispatchQueue();
	}
	cancel() {
		this._queue.forEach((entry) => entry.reject(this._cancelError));
		this._queue = [];
	}
	_dispatchQueue() {
		this._drainUnlockWaiters();
		while (this._queue.length > 0 && this._queue[0].weight <= this._value) {
			this._dispatchItem(this._queue.shift());
			this._drainUnlockWaiters();
		}
	}
	_dispatchItem(item) {
		const previousValue = this._value;
		this._value -= item.weight;
		item.resolve([previousValue, this._newReleaser(item.weight)]);
	}
	_newReleaser(weight) {
		let called = false;
		return () => {
			if (called) return;
			called = true;
			this.release(weight);
		};
	}
	_drainUnlockWaiters() {
		if (this._queue.length === 0) for (let weight = this._value; weight > 0; weight--) {
			const waiters = this._weightedWaiters[weight - 1];
			if (!waiters) continue;
			waiters.forEach((waiter) => waiter.resolve());
			this._weightedWaiters[weight - 1] = [];
		}
		else {
			const queuedPriority = this._queue[0].priority;
			for (let weight = this._value; weight > 0; weight--) {
				const waiters = this._weightedWaiters[weight - 1];
				if (!waiters) continue;
				const i = waiters.findIndex((waiter) => waiter.priority <= queuedPriority);
				(i === -1 ? waiters : waiters.splice(0, i)).forEach(((waiter) => waiter.resolve()));
			}
		}
	}
	_couldLockImmediately(weight, priority) {
		return (this._queue.length === 0 || this._queue[0].priority < priority) && weight <= this._value;
	}
};
function insertSorted(a, v) {
	const i = findIndexFromEnd(a, (other) => v.priority <= other.priority);
	a.splice(i + 1, 0, v);
}
function findIndexFromEnd(a, predicate) {
	for (let i = a.length - 1; i >= 0; i--) if (predicate(a[i])) return i;
	return -1;
}
var __awaiter = function(thisArg, _arguments, P, generator) {
	function adopt(value) {
		return value instanceof P ? value : new P(function(resolve) {
			resolve(value);
		});
	}
	return new (P || (P = Promise))(function(resolve, reject) {
		function fulfilled(value) {
			try {
				step(generator.next(value));
			} catch (e) {
				reject(e);
			}
		}
		function rejected(value) {
			try {
				step(generator["throw"](value));
			} catch (e) {
				reject(e);
			}
		}
		function step(result) {
			result.done ? resolve(result.value) : adopt(result.value).then(fulfilled, rejected);
		}
		step((generator = generator.apply(thisArg, _arguments || [])).next());
	});
};
function withTimeout(sync, timeout, timeoutError = E_TIMEOUT) {
	return {
		acquire: (weightOrPriority, priority) => {
			let weight;
			if (isSemaphore(sync)) weight = weightOrPriority;
			else {
				weight = void 0;
				priority = weightOrPriority;
			}
			if (weight !== void 0 && weight <= 0) throw new Error(`invalid weight ${weight}: must be positive`);
			return new Promise((resolve, reject) => __awaiter(this, void 0, void 0, function* () {
				let isTimeout = false;
				const handle = setTimeout(() => {
					isTimeout = true;
					reject(timeoutError);
				}, timeout);
				try {
					const ticket = yield isSemaphore(sync) ? sync.acquire(weight, priority) : sync.acquire(priority);
					if (isTimeout) (Array.isArray(ticket) ? ticket[1] : ticket)();
					else {
						clearTimeout(handle);
						resolve(ticket);
					}
				} catch (e) {
					if (!isTimeout) {
						clearTimeout(handle);
						reject(e);
					}
				}
			}));
		},
		runExclusive(callback, weight, priority) {
			return __awaiter(this, void 0, void 0, function* () {
				let release = () => void 0;
				try {
					const ticket = yield this.acquire(weight, priority);
					if (Array.isArray(ticket)) {
						release = ticket[1];
						return yield callback(ticket[0]);
					} else {
						release = ticket;
						return yield callback();
					}
				} finally {
					release();
				}
			});
		},
		release(weight) {
			sync.release(weight);
		},
		cancel() {
			return sync.cancel();
		},
		waitForUnlock: (weightOrPriority, priority) => {
			let weight;
			if (isSemaphore(sync)) weight = weightOrPriority;
			else {
				weight = void 0;
				priority = weightOrPriority;
			}
			if (weight !== void 0 && weight <= 0) throw new Error(`invalid weight ${weight}: must be positive`);
			return new Promise((resolve, reject) => {
				const handle = setTimeout(() => reject(timeoutError), timeout);
				(isSemaphore(sync) ? sync.waitForUnlock(weight, priority) : sync.waitForUnlock(priority)).then(() => {
					clearTimeout(handle);
					resolve();
				});
			});
		},
		isLocked: () => sync.isLocked(),
		getValue: () => sync.getValue(),
		setValue: (value) => sync.setValue(value)
	};
}
function isSemaphore(sync) {
	return sync.getValue !== void 0;
}
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
export { createDeferred as a, createSemaphore as c, Semaphore as d, withTimeout as f, createAdaptiveSemaphore as i, forEachConcurrently as l, Latch as n, createKeyedMutex as o, coalesce as r, createMutex as s, BackgroundTasks as t, lazily as u };
