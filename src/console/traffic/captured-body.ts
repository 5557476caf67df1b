import type { IncomingMessage, ServerResponse } from 'node:http';

/** The beginning of a body, and the length of the whole. */
export type CapturedBody = {
  readonly pieces: Buffer[];
  capturedBytes: number;
  totalBytes: number;
};

/** The number of bytes of a body that are recorded. */
export const MAX_BODY_BYTES = 128 * 1024;

function emptyBody(): CapturedBody {
  return { pieces: [], capturedBytes: 0, totalBytes: 0 };
}

/** Returns a body that was received as a whole. */
export function bodyOf(bytes: Buffer): CapturedBody {
  const body = emptyBody();
  addPiece(body, bytes);
  return body;
}

/** Returns true when only the beginning of a body was recorded. */
export function isCut({ capturedBytes, totalBytes }: CapturedBody): boolean {
  return capturedBytes < totalBytes;
}

/** Returns the recorded bytes of a body. */
export function bytesOf({ pieces }: CapturedBody): Buffer {
  return Buffer.concat(pieces);
}

function addPiece(body: CapturedBody, piece: Buffer): void {
  body.totalBytes += piece.length;
  const room = MAX_BODY_BYTES - body.capturedBytes;
  if (room <= 0) return;
  // Copied, since a slice would keep the whole of a large chunk in memory.
  const kept = piece.length <= room ? piece : Buffer.from(piece.subarray(0, room));
  body.pieces.push(kept);
  body.capturedBytes += kept.length;
}

function toBuffer(chunk: unknown, encoding: unknown): Buffer | undefined {
  if (Buffer.isBuffer(chunk)) return chunk;
  if (chunk instanceof Uint8Array) return Buffer.from(chunk);
  if (typeof chunk !== 'string') return undefined;
  return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8');
}

/**
 * Records the body of a request when the parser delivers it. The body is not read here, so nothing
 * else changes.
 */
export function captureRequest(request: IncomingMessage): CapturedBody {
  const body = emptyBody();
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    const piece = toBuffer(chunk, encoding);
    if (piece) addPiece(body, piece);
    return push(chunk, encoding);
  };
  return body;
}

/** Records the body of an answer when it is written. */
export function captureResponse(response: ServerResponse): CapturedBody {
  const body = emptyBody();
  for (const name of ['write', 'end'] as const) {
    const original = response[name].bind(response) as (...args: unknown[]) => unknown;
    const recording = (...args: unknown[]): unknown => {
      const piece = toBuffer(args[0], args[1]);
      if (piece) addPiece(body, piece);
      return original(...args);
    };
    Object.assign(response, { [name]: recording });
  }
  return body;
}
