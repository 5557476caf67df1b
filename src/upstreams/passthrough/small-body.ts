import type { IncomingMessage } from 'node:http';

/** Larger bodies are streamed. */
const MAX_SMALL_BODY_BYTES = 64 * 1024;

/** `undefined`: it is cut off, and so is the client. */
export type SmallBody = Promise<Buffer | undefined>;

/**
 * Length of a body that is small enough to wait for; `undefined` when it is unknown or too long.
 */
export function smallLength({ headers }: Pick<IncomingMessage, 'headers'>): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  const length = Number(headers['content-length'] ?? 0);
  return length <= MAX_SMALL_BODY_BYTES ? length : undefined;
}

/** Reads a body of known length; most arrive together with their head. */
export function readSmallBody(request: IncomingMessage, length: number): SmallBody {
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve) => {
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size === length) resolve(chunks.length === 1 ? chunk : Buffer.concat(chunks));
    });
    request.once('close', () => resolve(undefined));
  });
}
