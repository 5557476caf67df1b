import { Readable } from "node:stream";
// src/upstreams/resumed-bytes.ts
/** Returns a body and its continuations as one stream, which fails when it cannot be completed. */
function resumedBytes(first, plan) {
	return Readable.from(chunksOf(first, plan), { objectMode: false });
}
async function* chunksOf(first, { start, end, reopen }) {
	let body = first;
	for (let at = start;;) {
		let cause = /* @__PURE__ */ new Error("the bytes ended early");
		let isReading = true;
		try {
			for await (const chunk of body) {
				at += chunk.length;
				isReading = false;
				if (at > end + 1) throw new Error("too many bytes");
				yield chunk;
				isReading = true;
			}
		} catch (error) {
			if (!isReading) throw error;
			cause = error;
		}
		if (at > end) return;
		body = await reopen(at, cause);
	}
}
export { resumedBytes as t };
