import { Readable } from 'node:stream';
import type Koa from 'koa';

/** Up to here an answer is one text with its length, beyond it is sent as the client takes it. */
const MAX_WHOLE_CHARS = 1024 * 1024;
const CHUNK_CHARS = 64 * 1024;

type JsonPieces = Iterator<string> | AsyncIterator<string>;

/**
 * Sends JSON text piece by piece. Only one piece is in memory: the next one is produced when the
 * client has taken the previous one.
 */
export async function sendJsonPieces(ctx: Koa.Context, pieces: JsonPieces): Promise<void> {
  let start = '';
  for (;;) {
    const { value, done } = await pieces.next();
    if (done === true) return sendJsonText(ctx, start);
    start += value;
    if (start.length > MAX_WHOLE_CHARS) break;
  }
  const rest = Readable.from(chunks(start, pieces), { objectMode: false });
  // An answer that has begun can only be cut off: half of it must not pass for all of it.
  rest.once('error', () => ctx.res.destroy());
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = rest;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
}

async function* chunks(start: string, pieces: JsonPieces): AsyncGenerator<Buffer> {
  try {
    yield* slices(start);
    start = '';
    for (;;) {
      const { value, done } = await pieces.next();
      if (done === true) return;
      yield* slices(value as string);
    }
  } finally {
    // The client may have left before the end.
    await pieces.return?.();
  }
}

function* slices(text: string): Generator<Buffer> {
  for (let from = 0; from < text.length;) {
    const to = endOfSlice(text, from + CHUNK_CHARS);
    yield Buffer.from(text.slice(from, to));
    from = to;
  }
}

/** The two halves of a character stay together. */
function endOfSlice(text: string, at: number): number {
  const isSurrogateHalf = (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
  return isSurrogateHalf ? at + 1 : at;
}

/** Sends JSON that is text already. */
export function sendJsonText(ctx: Koa.Context, text: string | Buffer): void {
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = text;
}
