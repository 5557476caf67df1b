import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Pool, buildConnector } from 'undici';
import type { ProxyOutcome } from './proxy-call.ts';
import type { ProxyRequest, ProxyExchange } from './proxy-exchange.ts';
import { createFastCall } from './fast-call.ts';

type Options = {
  readonly connectTimeoutMs: number;
  readonly silenceMs: number;
  readonly keepAliveMs: number;
};

/** The pool scans all its connections for a free one, and never closes idle ones early. */
const MAX_CONCURRENT = 256;

/** For these methods the library adds no length and closes no connection. */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'DELETE']);

/** Sends small calls to one upstream, each after its whole body has arrived. */
export function createFastRelay(origin: string, options: Options) {
  const { connectTimeoutMs, silenceMs, keepAliveMs } = options;
  const connectionError = { isCurrent: false };
  const pool = new Pool(origin, {
    connect: skippingContinue(
      trackingErrors(connectionError, buildConnector({ timeout: connectTimeoutMs })),
    ),
    pipelining: 1,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
  });
  let active = 0;

  async function send(exchange: ProxyExchange, order: ProxyRequest): Promise<ProxyOutcome> {
    const { req } = exchange;
    const length = smallLength(req) ?? 0;
    const body = length > 0 ? await readSmallBody(req, length) : undefined;
    if (length > 0 && body === undefined) {
      exchange.respond = false;
      return 'answered';
    }
    if (body) order.observer?.onRequest(body);
    return new Promise((resolve) => {
      const { path, headers } = order;
      const handler = createFastCall({ exchange, order, silenceMs, connectionError, resolve });
      pool.dispatch({ path, method: req.method ?? '', headers, body: body ?? null }, handler);
    });
  }

  return {
    /** True when a call may take this path. */
    accepts({ method = '', headers }: IncomingMessage): boolean {
      if (active >= MAX_CONCURRENT || smallLength({ headers }) === undefined) return false;
      if (headers.accept?.includes('text/event-stream')) return false;
      if (WITH_BODY.has(method)) return true;
      return WITHOUT_BODY.has(method) && headers['content-length'] === undefined;
    },
    /** Sends a call once. */
    async send(exchange: ProxyExchange, order: ProxyRequest): Promise<ProxyOutcome> {
      active++;
      try {
        return await send(exchange, order);
      } finally {
        active--;
      }
    },
    close: (): void => void pool.destroy(),
  };
}

/**
 * Tracks reset connections. The library takes an answer without a length as complete even when its
 * connection was reset. It notices a reset later than this listener, within the same event.
 */
function trackingErrors(
  connectionError: { isCurrent: boolean },
  connect: buildConnector.connector,
): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      result[1]?.prependListener('error', () => {
        connectionError.isCurrent = true;
        queueMicrotask(() => (connectionError.isCurrent = false));
      });
      callback(...result);
    });
}

/** Larger bodies are streamed. */
const MAX_SMALL_BODY_BYTES = 64 * 1024;

/** `undefined`: the body is incomplete, since the client has disconnected. */
type SmallBody = Promise<Buffer | undefined>;

/**
 * Returns the length of a body that is small enough to wait for; `undefined` when it is unknown or
 * too long.
 */
function smallLength({ headers }: Pick<IncomingMessage, 'headers'>): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  const length = Number(headers['content-length'] ?? 0);
  return length <= MAX_SMALL_BODY_BYTES ? length : undefined;
}

/** Reads a body of known length. Most bodies arrive together with their head. */
function readSmallBody(request: IncomingMessage, length: number): SmallBody {
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

const CONTINUE = 'HTTP/1.1 100';
const END_OF_HEAD = '\r\n\r\n';
/** The maximum size of a head that is held until it is complete. */
const MAX_HEAD_BYTES = 16 * 1024;
const EMPTY = Buffer.alloc(0);

/**
 * Removes `100 Continue` answers. Some services send one unrequested, before an answer. The library
 * closes such a connection, and loses a call that may have taken effect.
 */
function skippingContinue(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      if (result[1]) skipContinue(result[1]);
      callback(...result);
    });
}

/**
 * Does this for a connection with one call at a time: bytes that are read after a call was written
 * begin an answer.
 * @internal
 */
export function skipContinue(socket: Pick<Socket, 'read' | 'bytesWritten'>): void {
  const read = socket.read.bind(socket) as (bytes?: number) => Buffer | null;
  let written = 0;
  let isAnswerStart = false;
  let held: Buffer = EMPTY;
  socket.read = (bytes?: number): Buffer | null => {
    // A read of 0 bytes makes the stream fetch more; its result is ignored.
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
