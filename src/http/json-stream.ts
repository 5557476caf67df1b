import { Readable } from 'node:stream';
import type Koa from 'koa';
import { PythonTextWriter, toPythonText } from '../protocol/python-json-text.ts';

/**
 * Up to this size an answer is one text with its length. A longer one is sent as the client accepts
 * it.
 */
const MAX_WHOLE_CHARS = 1024 * 1024;
const CHUNK_CHARS = 64 * 1024;

type JsonPieces = Iterator<string> | AsyncIterator<string>;

/**
 * Sends JSON text in pieces. Only one piece is in memory: the next is made when the client has
 * accepted the previous one.
 */
export async function sendJsonPieces(ctx: Koa.Context, pieces: JsonPieces): Promise<void> {
  const start: string[] = [];
  for (let chars = 0; chars <= MAX_WHOLE_CHARS;) {
    const { value, done } = await pieces.next();
    if (done === true) return sendJsonText(ctx, start.join(''));
    start.push(value);
    chars += value.length;
  }
  const rest = Readable.from(chunks(start, pieces), { objectMode: false });
  // An answer that has begun can only be cut off, so that the client sees that it is not complete.
  rest.once('error', () => ctx.res.destroy());
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = rest;
}

async function* chunks(start: string[], pieces: JsonPieces): AsyncGenerator<Buffer> {
  const writer = new PythonTextWriter();
  try {
    for (const piece of start.splice(0)) yield* slices(piece, writer);
    for (;;) {
      const { value, done } = await pieces.next();
      if (done === true) return;
      yield* slices(value as string, writer);
    }
  } finally {
    // The client may have disconnected before the end.
    await pieces.return?.();
  }
}

function* slices(text: string, writer: PythonTextWriter): Generator<Buffer> {
  for (let from = 0; from < text.length; from += CHUNK_CHARS)
    yield Buffer.from(writer.write(text.slice(from, from + CHUNK_CHARS)), 'latin1');
}

/** Sends text or bytes that are JSON already. */
export function sendJsonText(ctx: Koa.Context, text: string | Buffer): void {
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = typeof text === 'string' ? toPythonText(text) : text;
}
