import type { IncomingHttpHeaders } from 'node:http';
import { tooLargePart } from './connections.ts';
import type { OpenAnswer } from './exchange.ts';
import { type Result, type V2Error, refuse, v2Error } from '../../protocol/job-api.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJsonOrUndefined,
} from '../../protocol/json.ts';
import { readRetryAfter } from '../../http/retry-after.ts';
import type { RemoteLimits } from '../limits.ts';
import { withoutFolders, withoutFoldersIn } from '../files/upload-paths.ts';
import { redactError } from './redact.ts';
import { readAtMost } from '../../lib/read-at-most.ts';

/** A whole answer. */
export type ServiceReply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** `undefined`: the body is not JSON. */
  readonly json: Json | undefined;
  /** True when the body is some other text: it may come from a proxy in between. */
  readonly isPage: boolean;
};

/** The statuses that may come from a proxy when the body is a page, even if the service is down. */
const PROXY_PAGE_STATUSES = new Set([403, 404, 405, 410]);

/** The code for a status when the body has no code of the contract. */
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

/** The hosted service has names of its own for `not_found`. */
const NOT_FOUND = /^(job|asset)_not_found$/;

/** Returns a refusal as a value. A client never gets the text of a proxy's page. */
export function toError(reply: ServiceReply, secret?: string): V2Error {
  const { status, headers, json } = reply;
  const envelope = isJsonObject(json) ? (isJsonObject(json['error']) ? json['error'] : json) : {};
  const statedCode = textOf(envelope, 'code');
  const isProxyPage = reply.isPage && PROXY_PAGE_STATUSES.has(status);
  const isAnswer = status >= 400 && !isProxyPage;
  const fallback = isAnswer ? fallbackCode(status) : 'bad_upstream_response';
  const code = statedCode?.replace(NOT_FOUND, 'not_found') ?? fallback;
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

/** Returns the error for a call without a complete answer. */
export function lostError(cause: Error): V2Error {
  if (tooLargePart(cause) === undefined) return unreachable();
  const message = 'The job service gave an answer that is too large.';
  return v2Error(502, 'bad_upstream_response', message);
}

export function unreachable(): V2Error {
  return v2Error(503, 'upstream_unreachable', 'The job service could not be reached.');
}

/**
 * Refuses an answer that is not in the contract: a login page, a proxy's page, an incomplete body.
 */
export function invalidAnswer<T>(): Result<T> {
  return refuse(502, 'bad_upstream_response', 'The job service gave an answer that is none.');
}

/** Returns the wait to use. A missing, meaningless or very long one is replaced by a bound. */
export function retryAfterMs(seconds: number | undefined, limits: RemoteLimits): number {
  const wanted = seconds === undefined ? limits.defaultRetryAfterMs : seconds * 1000;
  return Math.min(limits.maxRetryAfterMs, Math.max(limits.minRetryAfterMs, wanted));
}

function fallbackCode(status: number): string {
  return CODE_OF_STATUS[status] ?? (status >= 500 ? 'upstream_error' : 'bad_upstream_response');
}

/** Returns the details of a refusal. Some refusals have more members than the contract's three. */
function detailsOf(envelope: JsonObject): Json {
  const { code, message: _, details = null, ...extra } = envelope;
  const hasExtra = code !== undefined && Object.keys(extra).length > 0;
  return details ?? (hasExtra ? extra : null);
}

function textOf(value: JsonObject, key: string): string | undefined {
  const text = value[key];
  return typeof text === 'string' && text !== '' ? text : undefined;
}

const MAX_BYTES = 64 * 1024;
const READ_TIMEOUT_MS = 5_000;

/** Reads the body of a refusal, up to the size and the time that a refusal may take. */
export async function readRefusal({ status, headers, body }: OpenAnswer): Promise<ServiceReply> {
  const timer = setTimeout(() => body.destroy(), READ_TIMEOUT_MS);
  try {
    const { json, isPage } = readBody(String(await readAtMost(MAX_BYTES, body)));
    // A storage service's own text for missing bytes is not a page.
    return { status, headers, json, isPage: isPage && isHtml(headers) };
  } catch {
    return { status, headers, json: undefined, isPage: false };
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the members of a reply that depend on its body. */
export function readBody(text: string): Pick<ServiceReply, 'json' | 'isPage'> {
  const json = parseJsonOrUndefined(text);
  return { json, isPage: json === undefined && text !== '' };
}

export function isHtml(headers: IncomingHttpHeaders): boolean {
  return /\bhtml\b/i.test(headers['content-type'] ?? '');
}
