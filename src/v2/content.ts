import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { spoolStream } from '../spool.ts';
import { type ByteRange, type Content, type Result, ok, refuse } from '../wire/jobs.ts';
import { parseJson } from '../wire/json.ts';
import type { Account } from './accounts.ts';
import type { Calls } from './call.ts';
import { type Reply, badAnswer, unreachable } from './errors.ts';
import { type UpstreamLinks, redirectTarget } from './links.ts';

type Deps = {
  readonly calls: Calls;
  readonly links: UpstreamLinks;
  readonly spoolDir: string;
  readonly maxSpoolBytes: number;
};

type Wanted = { readonly account: Account; readonly assetId: string; readonly range?: ByteRange };

const MAX_REFUSAL_BYTES = 64 * 1024;

/** Bytes as they come, or where they are; a redirect is never followed here, the key would go along. */
export async function openContent(deps: Deps, wanted: Wanted): Promise<Result<Content>> {
  const { calls, links } = deps;
  const { account, assetId, range } = wanted;
  const answer = await calls.open(account, {
    method: 'GET',
    path: links.target('assets', assetId, 'content'),
    headers: { accept: '*/*', ...(range && { range: `bytes=${range.start}-${range.end}` }) },
  });
  if (!answer.ok) return { ok: false, error: unreachable() };
  const { status, headers, body } = answer;
  if (status === 200 || status === 206) return bytesOf(deps, headers, body);
  if (status >= 300 && status < 400) {
    body.destroy();
    const location = redirectTarget(headers.location, links.origin);
    return location === undefined ? badAnswer() : ok({ kind: 'redirect', location });
  }
  const reply = await refusalOf(status, headers, body);
  return { ok: false, error: calls.refusal(account, reply) };
}

async function bytesOf(
  deps: Deps,
  headers: IncomingHttpHeaders,
  body: Readable,
): Promise<Result<Content>> {
  const range = rangeOf(headers['content-range']);
  const length = headers['content-length'];
  const known = range?.totalBytes ?? (length === undefined ? undefined : Number(length));
  const contentType = headers['content-type'] ?? 'application/octet-stream';
  const { etag } = headers;
  const facts = { kind: 'bytes', contentType, ...(etag !== undefined && { etag }) } as const;
  if (known !== undefined) {
    const part = range && { range: { start: range.start, end: range.end } };
    return ok({ ...facts, stream: body, totalBytes: known, ...part });
  }
  const spooled = await measured(deps, body);
  return spooled.ok ? ok({ ...facts, ...spooled.value }) : spooled;
}

/** Bytes of unknown length go over the disk: who asks wants to know how many there are. */
async function measured(
  { spoolDir, maxSpoolBytes }: Deps,
  body: Readable,
): Promise<Result<{ readonly stream: Readable; readonly totalBytes: number }>> {
  const spooled = await spoolStream(body, { dir: spoolDir, maxBytes: maxSpoolBytes });
  if (!spooled.ok) {
    body.destroy();
    return spooled.status === 400 ? { ok: false, error: unreachable() } : tooLarge();
  }
  const { path, sizeBytes } = spooled.value;
  const stream = createReadStream(path);
  stream.once('close', () => void rm(path, { force: true }).catch(() => {}));
  return ok({ stream, totalBytes: sizeBytes });
}

function tooLarge(): Result<never> {
  return refuse(502, 'bad_upstream_response', 'The file is too large to be passed on.');
}

/** `bytes 2-4/10`; a total of `*` is no total. */
function rangeOf(
  header: string | undefined,
): (ByteRange & { readonly totalBytes: number }) | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(header ?? '');
  if (!match) return undefined;
  const [start = 0, end = 0, totalBytes = 0] = match.slice(1).map(Number);
  return { start, end, totalBytes };
}

async function refusalOf(
  status: number,
  headers: IncomingHttpHeaders,
  body: Readable,
): Promise<Reply> {
  try {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of body) {
      chunks.push(chunk as Buffer);
      if ((size += (chunk as Buffer).length) > MAX_REFUSAL_BYTES) break;
    }
    return { status, headers, json: parseJson(Buffer.concat(chunks).toString('utf8')) };
  } catch {
    return { status, headers };
  }
}
