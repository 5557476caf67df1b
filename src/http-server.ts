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
      if (socket.bytesRead === body.bytes && !isFull) giveUp(socket, body.response);
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

function giveUp(socket: Socket, response: ServerResponse): void {
  if (!response.headersSent) {
    socket.write('HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
  }
  socket.destroySoon();
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
