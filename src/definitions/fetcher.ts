import { type Readable, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type Dispatcher, Pool } from 'undici';
import { readAtMost } from '../lib/read-at-most.ts';
import { readRetryAfter } from '../http/retry-after.ts';
import type { FetchLimits } from './fetch-limits.ts';

/** Validators that the source sent with a version, for conditional requests. */
export type Validators = { readonly etag?: string; readonly lastModified?: string };

/** A text of definitions and where it came from. */
export type DefinitionsText = {
  readonly bytes: Buffer;
  /** Index of the address that had it. Addresses may carry secrets, and this is stored on disk. */
  readonly from: number;
  readonly validators: Validators;
};

/** Result of one fetch. */
export type FetchOutcome =
  | ({ readonly kind: 'text' } & DefinitionsText)
  | { readonly kind: 'same' }
  /** It is there, and has no definitions. */
  | { readonly kind: 'none'; readonly reason: string }
  /** It wants a key, or another one. */
  | { readonly kind: 'locked'; readonly reason: string }
  | {
      readonly kind: 'failed';
      readonly reason: string;
      readonly retryAfterMs?: number;
      /** It did answer: it is not down, it only does badly at this. */
      readonly isReachable?: true;
    };

type FetchRequest = {
  readonly url: string;
  readonly key?: string | undefined;
  readonly validators?: Validators | undefined;
};

/** Asks one origin for texts. */
export type Fetcher = ReturnType<typeof createFetcher>;

/** Answers that mean there is nothing here; whatever else is wrong may pass. */
const NO_DEFINITIONS_STATUSES = new Set([400, 404, 405, 406, 410, 501]);
const UNREACHABLE_STATUSES = new Set([502, 503, 504]);
const CONNECTIONS = 4;

/** It talks to this origin only and follows no redirect, so that a key cannot leave it. */
export function createFetcher(origin: string, limits: FetchLimits) {
  const connect = { timeout: limits.connectTimeoutMs };
  const pool = new Pool(origin, { connect, connections: CONNECTIONS, pipelining: 1 });
  return {
    origin,
    async fetch({ url, key, validators }: FetchRequest): Promise<FetchOutcome> {
      const { pathname, search } = new URL(url);
      try {
        const answer = await pool.request({
          method: 'GET',
          path: pathname + search,
          headers: { ...HEADERS, ...keyHeaders(key), ...conditions(validators) },
          headersTimeout: limits.headersTimeoutMs,
          bodyTimeout: limits.bodyIdleTimeoutMs,
          signal: AbortSignal.timeout(limits.wholeTimeoutMs),
        });
        return await outcomeOf(answer, limits);
      } catch (error) {
        return { kind: 'failed', reason: (error as Error).message };
      }
    },
    close: (): Promise<void> => pool.destroy(),
  };
}

const HEADERS = {
  'user-agent': 'holdover',
  accept: 'application/json',
  'accept-encoding': 'gzip',
};

/** The jobs' own header, and the one v1 services read. */
function keyHeaders(key: string | undefined): { [name: string]: string } {
  return key === undefined ? {} : { authorization: `Bearer ${key}`, 'x-api-key': key };
}

function conditions({ etag, lastModified }: Validators = {}): { [name: string]: string } {
  return {
    ...(etag !== undefined && { 'if-none-match': etag }),
    ...(lastModified !== undefined && { 'if-modified-since': lastModified }),
  };
}

async function outcomeOf(
  { statusCode: status, headers, body }: Dispatcher.ResponseData,
  { maxBytes }: FetchLimits,
): Promise<FetchOutcome> {
  if (status === 200) {
    const bytes = await readAtMost(maxBytes, decodedBody(body, headers['content-encoding']));
    if (!bytes)
      return { kind: 'failed', reason: `it is larger than ${maxBytes} bytes`, isReachable: true };
    const etag = headers['etag'];
    const lastModified = headers['last-modified'];
    const validators = {
      ...(typeof etag === 'string' && { etag }),
      ...(typeof lastModified === 'string' && { lastModified }),
    };
    return { kind: 'text', bytes, from: 0, validators };
  }
  body.on('error', () => {}).destroy();
  const reason = `it answers ${status}`;
  if (status === 304) return { kind: 'same' };
  if (status === 401 || status === 403) return { kind: 'locked', reason };
  // A redirect may lead anywhere, to a login page for instance: there is nothing here.
  if (NO_DEFINITIONS_STATUSES.has(status) || (status >= 300 && status < 400))
    return { kind: 'none', reason };
  return {
    kind: 'failed',
    reason,
    ...retryAfter(headers),
    ...(!UNREACHABLE_STATUSES.has(status) && status !== 429 && { isReachable: true }),
  };
}

function decodedBody(body: Readable, encoding: string | string[] | undefined): Readable {
  if (encoding === undefined || encoding === 'identity') return body;
  if (encoding === 'gzip') return pipeline(body, createGunzip(), () => {});
  body.on('error', () => {}).destroy();
  throw new Error('it answers in an encoding that was not requested');
}

function retryAfter(headers: Dispatcher.ResponseData['headers']): { retryAfterMs?: number } {
  const seconds = readRetryAfter(headers, Date.now());
  return seconds === undefined ? {} : { retryAfterMs: seconds * 1000 };
}
