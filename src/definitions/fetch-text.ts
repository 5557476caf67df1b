import { readFile, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { readRetryAfter } from '../http/retry-after.ts';
import { readAtMost } from '../lib/read-at-most.ts';

/** Where a text came from. */
export type TextOrigin = {
  /** Index of the address that had it. Addresses may carry secrets, and this is stored on disk. */
  readonly from: number;
  /** The tag that the source sent with it, for conditional requests. */
  readonly etag?: string | undefined;
};

/** A text of definitions. */
export type SourceText = TextOrigin & { readonly bytes: Buffer };

/**
 * Why a source gave no text. `none`: it has no definitions. `locked`: it wants a key, or another
 * one. `failing`: it answers, but not with a text. `unreachable`: it does not answer.
 */
export type Missing = {
  readonly kind: 'none' | 'locked' | 'failing' | 'unreachable';
  readonly reason: string;
  readonly retryAfterMs?: number | undefined;
};

export type FetchOutcome =
  | ({ readonly kind: 'text' } & SourceText)
  | { readonly kind: 'same' }
  | Missing;

export type FetchLimits = Readonly<typeof FETCH_LIMITS>;

export const FETCH_LIMITS = {
  /** Larger texts are refused; bytes after decompression. */
  maxBytes: 64 * 1024 * 1024,
  /** For the whole answer. Making the list takes some servers seconds. */
  timeoutMs: 180_000,
};

type UrlRequest = {
  readonly key: string | undefined;
  /** The text that is known already. */
  readonly known: TextOrigin | undefined;
  readonly limits: FetchLimits;
  readonly signal: AbortSignal;
};

/** Fetches from the first address that has a text, beginning with the one that had it before. */
export async function fetchText(
  urls: readonly string[],
  request: UrlRequest,
): Promise<FetchOutcome> {
  const { known } = request;
  let missing: Missing = { kind: 'none', reason: 'there is no address' };
  const before = urls.filter((_, index) => index === known?.from);
  for (const url of new Set([...before, ...urls])) {
    const from = urls.indexOf(url);
    const outcome = await fetchUrl(url, from, request);
    if (outcome.kind === 'text' || outcome.kind === 'same') return outcome;
    if (outcome.kind === 'unreachable') return outcome;
    // Of several addresses, one that wants a key says most, and one that has nothing least.
    if (missing.kind === 'none' || outcome.kind === 'locked') missing = outcome;
  }
  return missing;
}

/** Follows no redirect, so that a key cannot leave the origin. */
async function fetchUrl(
  url: string,
  from: number,
  { key, known, limits, signal }: UrlRequest,
): Promise<FetchOutcome> {
  const etag = known?.from === from ? known.etag : undefined;
  const { origin, pathname, search } = new URL(url);
  try {
    const response = await fetch(origin + pathname + search, {
      redirect: 'manual',
      headers: {
        'user-agent': 'holdover',
        accept: 'application/json',
        'accept-encoding': 'gzip',
        // The jobs' own header, and the one that v1 services read.
        ...(key !== undefined && { authorization: `Bearer ${key}`, 'x-api-key': key }),
        ...(etag !== undefined && { 'if-none-match': etag }),
      },
      signal: AbortSignal.any([signal, AbortSignal.timeout(limits.timeoutMs)]),
    });
    if (response.status === 200) return await textOf(response, from, limits);
    await response.body?.cancel();
    if (response.status === 304 && etag !== undefined) return { kind: 'same' };
    return missingOf(response);
  } catch (error) {
    // Other messages quote headers, and so the key.
    const { name, cause } = error as Error;
    return { kind: 'unreachable', reason: cause instanceof Error ? cause.message : name };
  }
}

async function textOf(
  { body, headers }: Response,
  from: number,
  { maxBytes }: FetchLimits,
): Promise<FetchOutcome> {
  const stream = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  const bytes = await readAtMost(maxBytes, stream);
  if (!bytes) return { kind: 'failing', reason: `it is larger than ${maxBytes} bytes` };
  // Servers of a front end answer any address with its page.
  if (!/^(\ufeff)?\s*\{/.test(bytes.toString('utf8', 0, 100))) {
    return { kind: 'none', reason: 'it answers with something else than JSON' };
  }
  return { kind: 'text', bytes, from, etag: headers.get('etag') ?? undefined };
}

/** Statuses that mean there is nothing here; other errors may pass. */
const NO_DEFINITIONS_STATUSES = new Set([400, 404, 405, 406, 410, 501]);
const UNAVAILABLE_STATUSES = new Set([429, 502, 503, 504]);

function missingOf({ status, headers }: Response): Missing {
  const reason = `it answers ${status}`;
  if (status === 401 || status === 403) return { kind: 'locked', reason };
  // A redirect may lead anywhere, to a login page for instance: there is nothing here.
  if (NO_DEFINITIONS_STATUSES.has(status) || (status >= 300 && status < 400)) {
    return { kind: 'none', reason };
  }
  const seconds = readRetryAfter(Object.fromEntries(headers), Date.now());
  return {
    kind: UNAVAILABLE_STATUSES.has(status) ? 'unreachable' : 'failing',
    reason,
    retryAfterMs: seconds && seconds * 1000,
  };
}

/** Reads the operator's file, unless it is still the one that was read before. */
export async function readText(
  path: string,
  known: TextOrigin | undefined,
  { maxBytes }: FetchLimits,
): Promise<FetchOutcome> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) return { kind: 'unreachable', reason: 'it is no file' };
    const { size, mtimeMs, ino } = stats;
    const etag = `${size}-${mtimeMs}-${ino}`;
    if (etag === known?.etag) return { kind: 'same' };
    if (size > maxBytes) return { kind: 'failing', reason: `it is larger than ${maxBytes} bytes` };
    return { kind: 'text', bytes: await readFile(path), from: 0, etag };
  } catch (error) {
    return { kind: 'unreachable', reason: (error as Error).message };
  }
}
