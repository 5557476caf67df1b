// src/lib/read-at-most.ts
/** Reads a stream to its end. `undefined`, and the stream is closed, when it has more bytes. */
async function readAtMost(maxBytes, stream) {
	const chunks = [];
	let size = 0;
	for await (const chunk of stream) {
		size += chunk.length;
		if (size > maxBytes) return void 0;
		chunks.push(chunk);
	}
	return Buffer.concat(chunks, size);
}
export { readAtMost as t };
