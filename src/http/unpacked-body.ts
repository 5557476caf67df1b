import type { IncomingMessage } from 'node:http';
import { type Readable, finished } from 'node:stream';
import { tooLargeText } from '../lib/spool.ts';
import { type Gunzip, type Inflate, createGunzip, createInflate } from 'node:zlib';

/** The content codings that v1's server unpacks. */
const UNPACKERS: ReadonlyMap<string, () => Gunzip | Inflate> = new Map([
  ['gzip', () => createGunzip(OPTIONS)],
  ['deflate', () => createInflate(OPTIONS)],
]);

const OPTIONS = { chunkSize: 64 * 1024 };

/** A refused body. Unless it `isSyntax`, its rest is not read: answer with `Connection: close`. */
export type BodyRefusal = {
  readonly ok: false;
  readonly status: 400 | 413 | 415 | 503 | 507;
  readonly message: string;
  readonly retryAfterSeconds?: number;
  /** True when the body is not JSON. Other refusals do not say if it is. */
  readonly isSyntax?: true;
};

/** Refuses a body that cannot be unpacked, or whose stated length is too large. */
export function refusedByHeaders(
  { headers }: IncomingMessage,
  maxBytes: number,
): BodyRefusal | undefined {
  const encoding = encodingOf(headers);
  if (encoding !== 'identity' && !UNPACKERS.has(encoding))
    return refusedBody(415, `Content-Encoding ${encoding} is not taken.`);
  const isTooLarge = Number(headers['content-length']) > maxBytes;
  return isTooLarge ? refusedBody(413, tooLargeText(maxBytes)) : undefined;
}

export function refusedBody(status: BodyRefusal['status'], message: string): BodyRefusal {
  return { ok: false, status, message };
}

/**
 * Returns the unpacked bytes of a body, which may be many times the announced length. A reader that
 * stops calls `stopUnpacking`: the request itself stays open for the answer.
 */
export function unpackedBody(request: IncomingMessage): Readable {
  const unpacker = UNPACKERS.get(encodingOf(request.headers))?.();
  if (unpacker === undefined) return request;
  // The reader may have stopped.
  unpacker.on('error', () => {});
  finished(request, { writable: false }, (cause) => cause && unpacker.destroy(cause));
  return request.pipe(unpacker);
}

export function stopUnpacking(body: Readable, request: IncomingMessage): void {
  if (body !== request) body.destroy();
}

/** True for the error of a body that does not match its stated encoding. */
export function isUnpackError(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('Z_');
}

function encodingOf(headers: IncomingMessage['headers']): string {
  // A header without a value names no encoding.
  return headers['content-encoding']?.toLowerCase() || 'identity';
}
