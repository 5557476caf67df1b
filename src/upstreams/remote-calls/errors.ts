import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { type Result, type V2Error, refuse } from '../../protocol/job-api.ts';
import { type Json, type JsonObject, isJsonObject, parseJson } from '../../protocol/json.ts';
import { readRetryAfter } from '../../http/retry-after.ts';
import type { RemoteLimits } from '../remote/limits.ts';
import { withoutFolders, withoutFoldersIn } from '../remote-files/upload-paths.ts';
import { redactError } from './redact.ts';
import { readAtMost } from '../../lib/read-at-most.ts';

/** A whole answer; `json` is absent when the body is none. */
export type Reply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly json?: Json;
  /** The body is not JSON: it may come from a proxy on the way. */
  readonly isPage?: boolean;
};

/** With a page as the body these statuses may come from a proxy, even when the service is down. */
const PROXY_PAGE_STATUSES = new Set([403, 404, 405, 410]);

/** The code of a status when the body has no code of the contract. */
const CODE_OF_STATUS: { readonly [status: number]: string } = {
  400: 'invalid_request',
  401: 'unauthorized',
  402: 'insufficient_credits',
  403: 'forbidden',
  404: 'not_found',
  413: 'payload_too_large',
  416: 'range_not_satisfiable',
  429: 'rate_limited',
  501: 'not_implemented',
};

/** The hosted service has its own words for these. */
const CODE_ALIASES: ReadonlyMap<string, string> = new Map([
  ['job_not_found', 'not_found'],
  ['asset_not_found', 'not_found'],
]);

/** A refusal as a value. Pages of proxies on the way are never repeated to the client. */
export function toError(reply: Reply, secret?: string): V2Error {
  const { status, headers, json } = reply;
  const envelope = isJsonObject(json) ? (isJsonObject(json['error']) ? json['error'] : json) : {};
  const statedCode = textOf(envelope, 'code');
  const isAnswer = status >= 400 && !isProxyPage(reply);
  const fallback = isAnswer ? fallbackCode(status) : 'bad_upstream_response';
  const code = statedCode === undefined ? fallback : (CODE_ALIASES.get(statedCode) ?? statedCode);
  const message = textOf(envelope, 'message') ?? `The job service answered ${status}.`;
  const retryAfterSeconds = readRetryAfter(headers, Date.now());
  const error: V2Error = {
    status: isAnswer ? status : 502,
    code,
    message: withoutFolders(message),
    details: withoutFoldersIn(detailsOf(envelope)),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(statedCode === 'upstream_unreachable' && { engineDown: true }),
  };
  return redactError(error, secret === undefined ? [] : [secret]);
}

/** The error when no complete answer arrived. */
export function unreachable(): V2Error {
  const message = 'The job service could not be reached.';
  return { status: 503, code: 'upstream_unreachable', message, details: null };
}

/** An answer that is not in the contract: a login page, a proxy's page, half a body. */
export function invalidAnswer<T>(): Result<T> {
  return refuse(502, 'bad_upstream_response', 'The job service gave an answer that is none.');
}

/** An answer that was cut off for its size. */
export function tooLargeAnswer<T>(): Result<T> {
  const message = 'The job service gave an answer that is too large.';
  return refuse(502, 'bad_upstream_response', message);
}

/** The wait to use: a missing, senseless or very long one is replaced by a bound. */
export function retryAfterMs(
  seconds: number | undefined,
  limits: Pick<RemoteLimits, 'minRetryAfterMs' | 'maxRetryAfterMs' | 'defaultRetryAfterMs'>,
): number {
  const wanted = seconds === undefined ? limits.defaultRetryAfterMs : seconds * 1000;
  return Math.min(limits.maxRetryAfterMs, Math.max(limits.minRetryAfterMs, wanted));
}

function isProxyPage({ status, isPage }: Reply): boolean {
  return isPage === true && PROXY_PAGE_STATUSES.has(status);
}

function fallbackCode(status: number): string {
  return CODE_OF_STATUS[status] ?? (status >= 500 ? 'upstream_error' : 'bad_upstream_response');
}

/** Some refusals carry more members than the contract's three. */
function detailsOf(envelope: JsonObject): Json {
  const { code: _code, message: _message, details = null, ...extraMembers } = envelope;
  const extra =
    Object.keys(extraMembers).length > 0 && 'code' in envelope ? extraMembers : undefined;
  return details ?? extra ?? null;
}

function textOf(value: JsonObject, key: string): string | undefined {
  const text = value[key];
  return typeof text === 'string' && text !== '' ? text : undefined;
}

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
    const { json, isPage } = readBody(String(await readAtMost(MAX_BYTES, body)));
    // A store's own words for bytes that are gone are no page.
    const isHtml = /\bhtml\b/i.test(headers['content-type'] ?? '');
    return {
      status,
      headers,
      ...(json !== undefined && { json }),
      isPage: isPage === true && isHtml,
    };
  } catch {
    return { status, headers };
  } finally {
    clearTimeout(timer);
  }
}

/** The members of a reply that its body decides. */
export function readBody(text: string): Pick<Reply, 'json' | 'isPage'> {
  if (text === '') return { isPage: false };
  try {
    return { json: parseJson(text) };
  } catch {
    return { isPage: true };
  }
}
