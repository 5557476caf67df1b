import type { IncomingMessage } from 'node:http';
import { type Readable, finished } from 'node:stream';
import { type Gunzip, type Inflate, createGunzip, createInflate } from 'node:zlib';

/** The content codings that v1's server unpacks. */
const UNPACKERS: ReadonlyMap<string, () => Gunzip | Inflate> = new Map([
  ['gzip', () => createGunzip(OPTIONS)],
  ['deflate', () => createInflate(OPTIONS)],
]);

const OPTIONS = { chunkSize: 64 * 1024 };

/** The coding of a body that is refused with 415; `undefined`: its bytes can be read. */
export function unknownEncoding({ headers }: IncomingMessage): string | undefined {
  const encoding = encodingOf(headers);
  return encoding === 'identity' || UNPACKERS.has(encoding) ? undefined : encoding;
}

/**
 * The bytes of a body, unpacked; they may be many times the announced length. A reader that stops
 * calls `stopUnpacking`: the request itself stays open for the answer.
 */
export function unpackedBody(request: IncomingMessage): Readable {
  const unpacker = UNPACKERS.get(encodingOf(request.headers))?.();
  if (unpacker === undefined) return request;
  // Its reader may have stopped.
  unpacker.on('error', () => {});
  finished(request, { writable: false }, (cause) => cause && unpacker.destroy(cause));
  return request.pipe(unpacker);
}

export function stopUnpacking(body: Readable, request: IncomingMessage): void {
  if (body !== request) body.destroy();
}

/** True for the error of a body that is not what its encoding says. */
export function isUnpackError(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && code.startsWith('Z_');
}

function encodingOf(headers: IncomingMessage['headers']): string {
  return headers['content-encoding']?.toLowerCase() ?? 'identity';
}
