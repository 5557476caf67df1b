import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

const CONTINUE = 'HTTP/1.1 100';
const END_OF_HEAD = '\r\n\r\n';
/** Most bytes of a head that is held until it is complete. */
const MAX_HEAD_BYTES = 16 * 1024;
const EMPTY = Buffer.alloc(0);

/**
 * Some services send `100 Continue` unasked, before an answer. The library closes such a
 * connection, and loses a call that may have taken effect; so the interim answer is removed before
 * the library sees it.
 */
export function skippingContinue(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      if (result[1]) skipContinue(result[1]);
      callback(...result);
    });
}

/**
 * For a connection of one call at a time: what is read after a call was written begins an answer.
 * @internal
 */
export function skipContinue(socket: Pick<Socket, 'read' | 'bytesWritten'>): void {
  const read = socket.read.bind(socket) as (bytes?: number) => Buffer | null;
  let written = 0;
  let isAnswerStart = false;
  let held: Buffer = EMPTY;
  socket.read = (bytes?: number): Buffer | null => {
    // The stream reads 0 bytes to fetch more, and ignores the result.
    if (bytes !== undefined) return read(bytes);
    for (let chunk = read(); chunk !== null; chunk = read()) {
      if (socket.bytesWritten !== written) {
        written = socket.bytesWritten;
        isAnswerStart = true;
      }
      if (!isAnswerStart) return chunk;
      held = afterContinue(held.length === 0 ? chunk : Buffer.concat([held, chunk]));
      if (mayBeContinue(held)) continue;
      isAnswerStart = false;
      const answer = held;
      held = EMPTY;
      return answer;
    }
    return null;
  };
}

function afterContinue(bytes: Buffer): Buffer {
  let rest = bytes;
  while (rest.toString('latin1', 0, CONTINUE.length) === CONTINUE) {
    const end = rest.indexOf(END_OF_HEAD);
    if (end < 0) break;
    rest = rest.subarray(end + END_OF_HEAD.length);
  }
  return rest;
}

function mayBeContinue(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, CONTINUE.length);
  return bytes.length < MAX_HEAD_BYTES && CONTINUE.startsWith(start);
}
