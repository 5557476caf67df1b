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
import { inTurn, lastAnswer } from './client-connection.ts';
import { routerRefusal } from './router-refusal.ts';
import { answerUnreadable } from './unreadable-request.ts';
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

/** Limits that keep a slow or hostile peer from holding the server; a slow upload that goes on is not cut off. */
export function createHttpServer(
  handler: RequestListener,
  options: Partial<HttpTimeouts> & { readonly tls?: Tls; readonly log?: Logger } = {},
): Server {
  const { tls, log, ...given } = options;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...given };
  const limits: ServerOptions = {
    maxHeaderSize: 16 * 1024,
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: Math.min(5000, timeouts.headersMs),
    requestTimeout: 0,
    keepAliveTimeout: IDLE_CONNECTION_MS,
  };
  const server: Server = tls
    ? createTlsServer({ ...limits, ...tls, handshakeTimeout: timeouts.headersMs })
    : createServer(limits);
  server.on('request', inTurn(handler));
  server.maxHeadersCount = 100;
  server.on('request', createBodyTimeouts(server, timeouts.bodyIdleMs));
  server.on('checkExpectation', inTurn(refuseExpectation));
  server.on('clientError', answerUnreadable(log));
  return server;
}

/**
 * Ends requests whose body has stopped, as Node does for headers. One timer checks all of them: a
 * stopped body is noticed after once to twice the time.
 */
function createBodyTimeouts(server: Server, idleMs: number): RequestListener {
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
      if (socket.bytesRead === body.bytes && !isHeldUp) endStalledRequest(request, body.response);
      body.bytes = socket.bytesRead;
    }
  }, idleMs).unref();
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

function endStalledRequest({ url, socket }: IncomingMessage, response: ServerResponse): void {
  // An answer that waits for earlier ones must not be written into them.
  if (!response.headersSent && response.socket === socket) {
    const { headers = {}, body = '' } = routerRefusal(url, 408, randomUUID) ?? {};
    const length = { 'Content-Length': String(Buffer.byteLength(body)) };
    const id = response.getHeader('X-Request-Id');
    const own = { ...length, ...(id !== undefined && { 'X-Request-Id': String(id) }) };
    const headerPairs = Object.entries({ Connection: 'close', ...own, ...headers });
    const lines = headerPairs.map(([name, value]) => `${name}: ${value}`);
    socket.write(['HTTP/1.1 408 Request Timeout', ...lines, '', body].join('\r\n'));
  }
  socket.destroySoon();
}

/** The answer to an expectation other than `100-continue`. */
function refuseExpectation({ url }: IncomingMessage, response: ServerResponse): void {
  const refusal = routerRefusal(url, 417, randomUUID);
  response.writeHead(417, refusal?.headers).end(refusal?.body);
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

/** The address as people type it. */
export function urlOf(
  address: { readonly listen: string; readonly tls?: Tls },
  port: number,
): string {
  const host = address.listen.includes(':') ? `[${address.listen}]` : address.listen;
  return `${address.tls ? 'https' : 'http'}://${host}:${port}`;
}
