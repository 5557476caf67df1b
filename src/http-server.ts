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
import { routerRefusal } from './wire/router-refusal.ts';

/** How long a peer may take; a slow one that keeps sending is spared. */
export type Patience = {
  /** From the first byte of a request, or from connecting, to the end of its headers. */
  readonly headersMs: number;
  /** Without a byte of the body. */
  readonly bodyIdleMs: number;
};

/** Key and certificate chain, as PEM; `undefined`: plain HTTP. */
type Tls = { readonly key: Buffer; readonly cert: Buffer } | undefined;

const PATIENCE: Patience = { headersMs: 10_000, bodyIdleMs: 30_000 };

/** Limits that keep a slow or hostile peer from holding the server; honest slow uploads are spared. */
export function createHttpServer(
  handler: RequestListener,
  options: Partial<Patience> & { readonly tls?: Tls } = {},
): Server {
  const { tls, ...given } = options;
  const patience = { ...PATIENCE, ...given };
  const limits: ServerOptions = {
    maxHeaderSize: 16 * 1024,
    headersTimeout: patience.headersMs,
    connectionsCheckingInterval: Math.min(5000, patience.headersMs),
    requestTimeout: 0,
    // Pollers come every five seconds and more rarely; closing under them looks like a reset.
    keepAliveTimeout: 80_000,
  };
  const server: Server = tls
    ? createTlsServer({ ...limits, ...tls, handshakeTimeout: patience.headersMs }, handler)
    : createServer(limits, handler);
  server.maxHeadersCount = 100;
  server.on('request', createBodyWatch(server, patience.bodyIdleMs));
  server.on('checkExpectation', refuseExpectation);
  return server;
}

/**
 * Ends requests whose body has stopped coming, as Node does for headers. One timer looks after all
 * of them: a body that stops is noticed after once to twice the time.
 */
function createBodyWatch(server: Server, idleMs: number): RequestListener {
  const coming = new Map<IncomingMessage, { readonly response: ServerResponse; bytes: number }>();
  const timer = setInterval(() => {
    for (const [request, body] of coming) {
      const { socket } = request;
      if (request.complete || request.destroyed) {
        coming.delete(request);
        continue;
      }
      // While the buffer is full nothing is read: it is held up here, not by the peer.
      const isFull = request.readableLength >= request.readableHighWaterMark;
      if (socket.bytesRead === body.bytes && !isFull) giveUp(request, body.response);
      body.bytes = socket.bytesRead;
    }
  }, idleMs).unref();
  server.once('close', () => clearInterval(timer));
  return (request, response) => {
    const { headers } = request;
    if (headers['transfer-encoding'] === undefined && !(Number(headers['content-length']) > 0))
      return;
    coming.set(request, { response, bytes: NOT_SEEN });
    request.once('close', () => coming.delete(request));
  };
}

/** Bytes a socket has never read. */
const NOT_SEEN = -1;

function giveUp({ url, socket }: IncomingMessage, response: ServerResponse): void {
  if (!response.headersSent) {
    const { headers = {}, body = '' } = routerRefusal(url, 408, randomUUID) ?? {};
    const length = { 'Content-Length': String(Buffer.byteLength(body)) };
    const told = Object.entries({ Connection: 'close', ...length, ...headers });
    const lines = told.map(([name, value]) => `${name}: ${value}`);
    socket.write(['HTTP/1.1 408 Request Timeout', ...lines, '', body].join('\r\n'));
  }
  socket.destroySoon();
}

/** Of another expectation than `100-continue`. */
function refuseExpectation({ url }: IncomingMessage, response: ServerResponse): void {
  const refusal = routerRefusal(url, 417, randomUUID);
  response.writeHead(417, refusal?.headers).end(refusal?.body);
}

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/**
 * Hands over who asks for a WebSocket. Whoever offers another protocol (`h2c`: curl, Java) is served
 * as if he had not, which is what an offer nobody takes up means.
 */
export function onWebSocket(server: Server, open: OnUpgrade): void {
  const answers = new WeakMap<Duplex, ServerResponse>();
  server.on('request', ({ socket }, response) => void answers.set(socket, response));
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (/\bwebsocket\b/i.test(request.headers.upgrade ?? '')) return open(request, socket, head);
    const before = answers.get(socket);
    const again = (): void => readAgain(server, socket, [headWithoutOffer(request), head]);
    // Answers go out in the order of their requests.
    if (before === undefined || before.closed) return again();
    // Meanwhile nobody else listens; without a listener an error ends the process.
    socket.on('error', destroy);
    before.once('close', again);
  });
}

/** Lets the server read what it has read, as of a new connection. */
function readAgain(server: Server, socket: Socket, bytes: readonly Buffer[]): void {
  if (socket.destroyed) return;
  // Each time the server listens once more.
  socket.off('error', destroy).removeAllListeners('timeout').setTimeout(0);
  socket.unshift(Buffer.concat(bytes));
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket);
}

function destroy(this: Socket): void {
  this.destroy();
}

function headWithoutOffer({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    if (OFFER.test(name)) continue;
    lines.push(`${name}: ${/^connection$/i.test(name) ? withoutOffer(value) : value}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

const OFFER = /^(upgrade|http2-settings)$/i;

function withoutOffer(connection: string): string {
  const names = connection.split(',').map((name) => name.trim());
  return names.filter((name) => !OFFER.test(name)).join(', ');
}

/** Binds; resolves with the port, rejects with a sentence a person can act on. */
export function listen(
  server: Server,
  where: { readonly listen: string; readonly port: number },
): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === 'EADDRINUSE' ? 'the port is in use' : cause.message;
      reject(new Error(`cannot listen on ${where.listen}:${where.port}: ${reason}`, { cause }));
    });
    server.listen(where.port, where.listen, () => resolve((server.address() as AddressInfo).port));
  });
}

/** The address as people type it. */
export function urlOf(
  where: { readonly listen: string; readonly tls?: Tls },
  port: number,
): string {
  const host = where.listen.includes(':') ? `[${where.listen}]` : where.listen;
  return `${where.tls ? 'https' : 'http'}://${host}:${port}`;
}
