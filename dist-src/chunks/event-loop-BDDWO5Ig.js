import { setTimeout as setTimeout$1 } from "node:timers/promises";
// src/lib/clock.ts
function callAfter(ms, act) {
	const timer = setTimeout(act, ms);
	return () => clearTimeout(timer);
}
async function sleep(ms, signal) {
	await setTimeout$1(ms, void 0, signal && { signal });
}
/** The wall clock. Use it for times that are stored or sent. It can be set back. */
const systemClock = {
	now: Date.now,
	sleep,
	callAfter
};
/**
* A clock that never goes back when the wall clock is set. Use it for durations, deadlines and
* retries.
*/
const monotonicClock = {
	now: monotonicNow,
	sleep,
	callAfter
};
/** Read once: it never changes, and each read costs four calls. */
const { timeOrigin } = performance;
/** Returns milliseconds since 1970 that advance steadily, even when the wall clock is set. */
function monotonicNow() {
	return timeOrigin + performance.now();
}
// src/lib/event-loop.ts
/** The number of values that are processed before other work may run: about two milliseconds. */
const VALUES_PER_STEP = 5e3;
const waiting = [];
/**
* Resolves in a later iteration of the event loop. Each iteration resumes one waiting task, in the
* order of arrival, so that many large bodies together block the loop no longer than one.
*/
function yieldToEventLoop() {
	return new Promise((resolve) => {
		if (waiting.push(resolve) === 1) setImmediate(resumeNext);
	});
}
function resumeNext() {
	waiting.shift()?.();
	if (waiting.length > 0) setImmediate(resumeNext);
}
/** Runs the work, and lets other work of the process run in between. Small work is done at once. */
async function runInSteps(steps) {
	let left = VALUES_PER_STEP;
	for (;;) {
		const step = steps.next();
		if (step.done === true) return step.value;
		left -= step.value;
		if (left > 0) continue;
		await yieldToEventLoop();
		left = VALUES_PER_STEP;
	}
}
/**
* Divides long work into pieces of `count` steps. Call it after each step and await its result:
* other work runs between two pieces. A step that does the work of several passes its `weight`.
*/
function yieldEvery(count) {
	let left = count;
	return (weight = 1) => {
		left -= weight;
		if (left > 0) return void 0;
		left = count;
		return yieldToEventLoop();
	};
}
export { monotonicNow as a, monotonicClock as i, yieldEvery as n, systemClock as o, yieldToEventLoop as r, runInSteps as t };
