import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { parseJson } from '../../protocol/json.ts';
import type { Reply } from './errors.ts';

const MAX_BYTES = 64 * 1024;
const READ_TIMEOUT_MS = 5_000;

/** A refusal whose body is yet to be read: no more of it, and for no longer, than one takes. */
export async function readRefusal(answer: {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}): Promise<Reply> {
  const { status, headers, body } = answer;
  const timer = setTimeout(() => body.destroy(), READ_TIMEOUT_MS);
  try {
    return { status, headers, json: parseJson(await readText(body)) };
  } catch {
    return { status, headers };
  } finally {
    clearTimeout(timer);
  }
}

async function readText(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    if ((size += (chunk as Buffer).length) > MAX_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
