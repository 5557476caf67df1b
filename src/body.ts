import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { tooLargeText } from './spool.ts';

/** A request body as text, or why it was not taken. */
export type BodyText =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly status: 400 | 413 | 415; readonly message: string };

/** Reads a body within the limit; after a 413 the rest is not read, so answer with `Connection: close`. */
export async function readBodyText(
  request: IncomingMessage,
  options: { readonly maxBytes: number },
): Promise<BodyText> {
  const { maxBytes } = options;
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding !== 'identity') {
    return { ok: false, status: 415, message: `Content-Encoding ${encoding} is not taken.` };
  }
  if (Number(request.headers['content-length']) > maxBytes) return tooLarge(maxBytes);
  return collect(request, maxBytes);
}

function textOf(bytes: Buffer): BodyText {
  if (!isUtf8(bytes)) return NOT_TEXT;
  try {
    const text = bytes.toString('utf8');
    return { ok: true, value: text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text };
  } catch {
    // Longer than a text can be.
    return NOT_TEXT;
  }
}

const NOT_TEXT: BodyText = { ok: false, status: 400, message: 'The body is not UTF-8 text.' };
const BYTE_ORDER_MARK = 0xfeff;

/** Not `for await`: leaving that loop early destroys the socket, and the answer with it. */
function collect(request: IncomingMessage, maxBytes: number): Promise<BodyText> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) return void chunks.push(chunk);
      request.removeAllListeners('data').pause();
      resolve(tooLarge(maxBytes));
    });
    const cutOff = (): void =>
      resolve({ ok: false, status: 400, message: 'The body was cut off.' });
    request.once('end', () => resolve(textOf(Buffer.concat(chunks, size))));
    request.once('error', cutOff);
    request.once('close', cutOff);
  });
}

function tooLarge(maxBytes: number): BodyText & { ok: false } {
  return { ok: false, status: 413, message: tooLargeText(maxBytes) };
}
