import type { Readable } from 'node:stream';

/** Reads a stream to its end. `undefined`, and the stream is closed, when it has more bytes. */
export async function readAtMost(maxBytes: number, stream: Readable): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}
