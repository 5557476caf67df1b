import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import { type Json, parseJson } from '../wire/json.ts';
import { V1Error, plainError } from './errors.ts';

/** What the v1 server says when a body is too large; the number is the limit in bytes. */
export function tooLargeText(maxBytes: number): string {
  return `Maximum request body size ${maxBytes} exceeded.`;
}

/** Reads a body as JSON whatever its content type says; v1 clients label it as anything. */
export async function readJson(ctx: Koa.Context, maxBytes: number): Promise<Json> {
  const text = await readText(ctx, maxBytes);
  try {
    return parseJson(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'unreadable';
    throw new V1Error(400, plainError('invalid_json', `The body is not JSON: ${reason.slice(0, 200)}`), {
      cause,
    });
  }
}

/** Reads a body as UTF-8 text within the limit. */
export async function readText(ctx: Koa.Context, maxBytes: number): Promise<string> {
  const bytes = await readBytes(ctx, maxBytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new V1Error(400, plainError('invalid_json', 'The body is not UTF-8 text.'), { cause });
  }
}

async function readBytes(ctx: Koa.Context, maxBytes: number): Promise<Buffer> {
  const encoding = ctx.get('Content-Encoding').toLowerCase();
  if (encoding !== '' && encoding !== 'identity') {
    throw new V1Error(415, plainError('unsupported_encoding', `Content-Encoding ${encoding} is not taken.`));
  }
  if (Number(ctx.get('Content-Length')) > maxBytes) throw tooLarge(maxBytes);
  return collect(ctx.req, maxBytes);
}

/** Not `for await`: leaving that loop early destroys the socket, and the 413 with it. */
function collect(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) return void chunks.push(chunk);
      request.removeAllListeners('data').pause();
      reject(tooLarge(maxBytes));
    });
    request.once('end', () => resolve(Buffer.concat(chunks, size)));
    request.once('error', reject);
    request.once('close', () => reject(new V1Error(400)));
  });
}

/** The connection is closed after the answer: the rest of the body is not worth reading. */
function tooLarge(maxBytes: number): V1Error {
  return new V1Error(413, tooLargeText(maxBytes), { headers: { Connection: 'close' } });
}
