import { randomUUID } from 'node:crypto';
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
  createServer,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { closingAnswer, inTurn, lastAnswer } from './client-connection.ts';
import { type DialectOf, earlyRefusal } from './unserved/early-refusal.ts';
import { answerUnreadable } from './unserved/unreadable-request.ts';
import type { Logger } from '../observability/log.ts';

/** Time limits for a peer; a slow peer that keeps sending is not cut off. */
export type HttpTimeouts = {
  /** Time from the first byte of a request, or from the connection, to the end of its headers. */
  readonly headersMs: number;
  /** Time without a byte of the body. */
  readonly bodyIdleMs: number;
};

/** Key and certificate chain, as PEM; `undefined`: plain HTTP. */
type Tls = { readonly key: Buffer; readonly cert: Buffer } | undefined;

/**
 * An idle connection is closed after this time: longer than a proxy keeps its own (75 s in nginx) and
 * than clients pause between polls. A connection closed during a poll looks like a reset.
 */
const IDLE_CONNECTION_MS = 80_000;
const DEFAULT_TIMEOUTS: HttpTimeouts = { headersMs: 10_000, bodyIdleMs: 30_000 };

type ServerParts = {
  readonly tls?: Tls;
  readonly log?: Logger;
  /** For calls that no handler sees. */
  readonly dialectOf?: DialectOf;
};

const local: DialectOf = () => 'local';

/** Limits that keep a slow or hostile peer from holding the server; a slow upload that goes on is not cut off. */
export function createHttpServer(
  handler: RequestListener,
  options: Partial<HttpTimeouts> & ServerParts = {},
): Server {
  const { tls, log, dialectOf = local, ...given } = options;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...given };
  const limits: ServerOptions = {
    maxHeaderSize: 16 * 1024,
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: Math.min(5000, timeouts.headersMs),
    requestTimeout: 0,
    // The handler refuses it, in the form of the API that is called.
    requireHostHeader: false,
    keepAliveTimeout: IDLE_CONNECTION_MS,
  };
  const server: Server = tls
    ? createTlsServer({ ...limits, ...tls, handshakeTimeout: timeouts.headersMs })
    : createServer(limits);
  server.on('request', inTurn(withReadableTarget(handler, dialectOf)));
  server.maxHeadersCount = 100;
  const { bodyIdleMs } = timeouts;
  server.on('request', createBodyTimeouts(server, { bodyIdleMs, dialectOf }));
  server.on('checkExpectation', inTurn(createRefusal(UNKNOWN_EXPECTATION, dialectOf)));
  server.on('clientError', answerUnreadable({ log, dialectOf }));
  return server;
}

/**
 * Ends requests whose body has stopped, as Node does for headers. One timer checks all of them: a
 * stopped body is noticed after once to twice the time.
 */
function createBodyTimeouts(
  server: Server,
  { bodyIdleMs, dialectOf }: { readonly bodyIdleMs: number; readonly dialectOf: DialectOf },
): RequestListener {
  const openBodies = new Map<
    IncomingMessage,
    { readonly response: ServerResponse; bytes: number }
  >();
  const timer = setInterval(() => {
    for (const [request, body] of openBodies) {
      const { socket } = request;
      if (request.complete || request.destroyed) {
        openBodies.delete(request);
        continue;
      }
      // While the buffer is full nothing is read: it is held up here, not by the peer.
      const isBufferFull = request.readableLength >= request.readableHighWaterMark;
      const isHeldUp = isBufferFull || socket.isPaused();
      const isStalled = socket.bytesRead === body.bytes && !isHeldUp;
      if (isStalled) endStalledRequest(request, body.response, dialectOf);
      body.bytes = socket.bytesRead;
    }
  }, bodyIdleMs).unref();
  server.once('close', () => clearInterval(timer));
  return (request, response) => {
    const { headers } = request;
    if (headers['transfer-encoding'] === undefined && !(Number(headers['content-length']) > 0))
      return;
    openBodies.set(request, { response, bytes: NOT_YET_READ });
    request.once('close', () => openBodies.delete(request));
  };
}

/** Bytes a socket has never read. */
const NOT_YET_READ = -1;

const STALLED = { status: 408, message: 'The rest of the body did not come in time.' } as const;
const UNKNOWN_EXPECTATION = {
  status: 417,
  message: 'The only expectation that can be met is 100-continue.',
} as const;
const NO_TARGET = { status: 400, message: 'The address asked for is no address.' } as const;

function endStalledRequest(
  request: IncomingMessage,
  response: ServerResponse,
  dialectOf: DialectOf,
): void {
  const { socket } = request;
  // An answer that waits for earlier ones must not be written into them.
  if (!response.headersSent && response.socket === socket) {
    const { headers, body } = earlyRefusal(request, STALLED, dialectOf);
    const id = response.getHeader('X-Request-Id');
    const own = { ...headers, ...(id !== undefined && { 'X-Request-Id': String(id) }) };
    socket.write(closingAnswer(STALLED.status, own, body));
  }
  socket.destroySoon();
}

/** Answers every request with this refusal. */
function createRefusal(
  refusal: { readonly status: number; readonly message: string },
  dialectOf: DialectOf,
): RequestListener {
  return (request, response) => {
    const { headers, body } = earlyRefusal(request, refusal, dialectOf);
    const own = { 'X-Request-Id': randomUUID(), 'X-Content-Type-Options': 'nosniff' };
    response.writeHead(refusal.status, { ...own, ...headers }).end(body);
  };
}

/** The framework fails on a target that is neither a path nor an address. */
function withReadableTarget(handler: RequestListener, dialectOf: DialectOf): RequestListener {
  const refuse = createRefusal(NO_TARGET, dialectOf);
  return (request, response) => {
    const { url = '' } = request;
    const isReadable = url.startsWith('/') || url === '*' || URL.canParse(url);
    (isReadable ? handler : refuse)(request, response);
  };
}

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/**
 * Passes on WebSocket upgrades. A request that offers another protocol (`h2c`: curl, Java) is
 * served without the upgrade, as the standard allows.
 */
export function onWebSocket(server: Server, onOpen: OnUpgrade): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const isWebSocket = /\bwebsocket\b/i.test(request.headers.upgrade ?? '');
    const serve = (): void => {
      if (socket.destroyed) return;
      if (isWebSocket) onOpen(request, socket, head);
      else reparseRequest(server, socket, [headWithoutUpgrade(request), head]);
    };
    // Answers go out in the order of their requests.
    const earlier = lastAnswer(socket);
    if (earlier === undefined || earlier.closed) return serve();
    // Nothing else listens meanwhile; without a listener an error ends the process.
    socket.on('error', destroy);
    earlier.once('close', serve);
  });
}

/** Lets the server read what it has read, as of a new connection. */
function reparseRequest(server: Server, socket: Socket, bytes: readonly Buffer[]): void {
  // Each time the server starts to listen again.
  socket.off('error', destroy).removeAllListeners('timeout').setTimeout(0);
  socket.unshift(Buffer.concat(bytes));
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket);
}

function destroy(this: Socket): void {
  this.destroy();
}

function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    if (UPGRADE_HEADERS.test(name)) continue;
    lines.push(`${name}: ${/^connection$/i.test(name) ? withoutUpgradeTokens(value) : value}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

const UPGRADE_HEADERS = /^(upgrade|http2-settings)$/i;

function withoutUpgradeTokens(connection: string): string {
  const names = connection.split(',').map((name) => name.trim());
  return names.filter((name) => !UPGRADE_HEADERS.test(name)).join(', ');
}

/** Binds; resolves with the port, rejects with a sentence a person can act on. */
export function listen(
  server: Server,
  address: { readonly listen: string; readonly port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === 'EADDRINUSE' ? 'the port is in use' : cause.message;
      reject(new Error(`cannot listen on ${address.listen}:${address.port}: ${reason}`, { cause }));
    });
    server.listen(address.port, address.listen, () =>
      resolve((server.address() as AddressInfo).port),
    );
  });
}

/** Node lets so many connections wait until the process takes them. */
const MAX_WAITING_CONNECTIONS = 511;

/**
 * Takes the connections that wait, then stops to listen. The system would reset them, with the calls that were sent on
 * them, which a balancer does not send again.
 */
export async function stopListening(server: Server): Promise<void> {
  let taken = 0;
  const count = (): number => taken++;
  server.on('connection', count);
  // The turn that this one is in has looked for connections before.
  await nextTurn();
  let before = -1;
  // A turn of the event loop takes one.
  for (let turn = 0; taken > before && turn <= MAX_WAITING_CONNECTIONS; turn++) {
    before = taken;
    await nextTurn();
  }
  server.off('connection', count);
  server.close();
}

const READING = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Counts the calls under way that change something and have arrived whole: they wait for this process alone. */
export function countChanges(server: Server): () => number {
  const changes = new Set<IncomingMessage>();
  server.on('request', (request, response) => {
    if (READING.has(request.method ?? '')) return;
    changes.add(request);
    response.once('close', () => changes.delete(request));
  });
  return () => [...changes].filter((request) => request.complete).length;
}

/** The address as people type it. */
export function urlOf(
  address: { readonly listen: string; readonly tls?: Tls },
  port: number,
): string {
  const host = address.listen.includes(':') ? `[${address.listen}]` : address.listen;
  return `${address.tls ? 'https' : 'http'}://${host}:${port}`;
}
