import { Readable } from 'node:stream';

type Bytes = AsyncIterable<Buffer>;

export type ResumePlan = {
  readonly start: number;
  /** The last byte, inclusive. */
  readonly end: number;
  /**
   * Returns the bytes from this byte on, after the read was interrupted. Throws when they cannot be
   * read.
   */
  readonly reopen: (fromByte: number, cause: unknown) => Promise<Bytes>;
};

/** Returns a body and its continuations as one stream, which fails when it cannot be completed. */
export function resumedBytes(first: Bytes, plan: ResumePlan): Readable {
  return Readable.from(chunksOf(first, plan), { objectMode: false });
}

async function* chunksOf(first: Bytes, { start, end, reopen }: ResumePlan): AsyncGenerator<Buffer> {
  let body = first;
  for (let at = start; ;) {
    let cause: unknown = new Error('the bytes ended early');
    let isReading = true;
    try {
      for await (const chunk of body) {
        at += chunk.length;
        isReading = false;
        // The client would read the surplus bytes as its next answer.
        if (at > end + 1) throw new Error('too many bytes');
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
