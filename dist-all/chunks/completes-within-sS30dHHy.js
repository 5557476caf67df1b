// src/lib/completes-within.ts
/**
* Waits for a limited time for work that continues in any case. True when it finished in time;
* rejects when it failed in time. An abortable delay is not used, since each unneeded one creates
* an error with a stack.
*/
async function completesWithin(timeoutMs, work) {
	let timer;
	const timedOut = new Promise((resolve) => {
		timer = setTimeout(() => resolve(false), timeoutMs);
	});
	try {
		return await Promise.race([work.then(() => true), timedOut]);
	} finally {
		clearTimeout(timer);
	}
}
export { completesWithin as t };
