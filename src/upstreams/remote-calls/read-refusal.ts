import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { readAtMost } from '../../lib/read-at-most.ts';
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
    return { status, headers, json: parseJson(String(await readAtMost(MAX_BYTES, body))) };
  } catch {
    return { status, headers };
  } finally {
    clearTimeout(timer);
  }
}
