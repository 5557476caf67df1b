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
import { Answer, observedAnswer } from './answer.ts';
import {
  closingAnswer,
  connectionsOf,
  lastAnswer,
  openAnswers,
  serveInOrder,
} from './client-connection.ts';
import { MAX_PARSED_HEAD_BYTES, headFault } from './head-limits.ts';
import { type DialectOf, type Refusal, earlyRefusal } from './unserved/early-refusal.ts';
import { answerUnreadable } from './unserved/unreadable-request.ts';
import type { Logger } from '../observability/log.ts';

/** The time limits for a client. A slow client that keeps sending is not cut off. */
export type HttpTimeouts = {
  /**
   * The time from the first byte of a request, or from the connection, to the end of its headers.
   */
  readonly headersMs: number;
  /** The time without a byte of the body. */
  readonly bodyIdleMs: number;
};

/** Key and certificate chain, as PEM; `undefined`: plain HTTP. */
type Tls = { readonly key: Buffer; readonly cert: Buffer } | undefined;

/**
 * An idle connection is closed after this time. It is longer than proxies (75 s in nginx) and pools
 * of clients (90 s in Go and reqwest) keep their own: a `POST` on a connection that closes is lost.
 */
const IDLE_CONNECTION_MS = 120_000;
const DEFAULT_TIMEOUTS: HttpTimeouts = { headersMs: 10_000, bodyIdleMs: 30_000 };

type ServerParts = {
  readonly tls?: Tls;
  readonly log?: Logger;
  /** Returns the dialect of calls that no handler sees. */
  readonly dialectOf?: DialectOf;
  /** Called when the head of an answer has been written, in the same turn. */
  readonly onAnswered?: ((request: IncomingMessage) => void) | undefined;
};

const local: DialectOf = () => 'local';

/**
 * Creates a server with limits, so that a slow or hostile client cannot block it. A slow upload
 * that continues is not cut off.
 */
export function createHttpServer(
  handler: RequestListener,
  options: Partial<HttpTimeouts> & ServerParts = {},
): Server {
  const { tls, log, dialectOf = local, onAnswered, ...given } = options;
  const timeouts = { ...DEFAULT_TIMEOUTS, ...given };
  const limits: ServerOptions<typeof IncomingMessage, typeof Answer> = {
    ServerResponse: onAnswered ? observedAnswer(onAnswered) : Answer,
    maxHeaderSize: MAX_PARSED_HEAD_BYTES,
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: Math.min(5000, timeouts.headersMs),
    requestTimeout: 0,
    // The handler refuses a missing `Host`, in the form of the API that is called.
    requireHostHeader: false,
    keepAliveTimeout: IDLE_CONNECTION_MS,
  };
  const server: Server = tls
    ? createTlsServer({ ...limits, ...tls, handshakeTimeout: timeouts.headersMs })
    : createServer(limits);
  const serve = withReadableTarget(handler, dialectOf);
  server.on('request', serveInOrder(serve));
  // The handler counts them: Node 20 drops the rest, and Node 24 refuses the request before it knows the address.
  server.maxHeadersCount = 0;
  endStalledBodies(server, timeouts.bodyIdleMs, dialectOf);
  const refuseExpectation = createRefusal(UNKNOWN_EXPECTATION, dialectOf);
  server.on(
    'checkExpectation',
    // The handler refuses a head above the limits, and closes the connection.
    serveInOrder((request, response) =>
      (headFault(request) ? serve : refuseExpectation)(request, response),
    ),
  );
  server.on('clientError', answerUnreadable({ log, dialectOf }));
  return server;
}

/**
 * Ends requests whose body has stopped, as Node does for headers. One timer checks all of them, so
 * a stopped body is noticed after once to twice the time.
 */
function endStalledBodies(server: Server, bodyIdleMs: number, dialectOf: DialectOf): void {
  const connections = connectionsOf(server);
  const bytesBefore = new WeakMap<IncomingMessage, number>();
  const timer = setInterval(() => {
    for (const socket of connections) {
      const response = lastAnswer(socket);
      if (response === undefined || response.req.complete || response.req.destroyed) continue;
      const { req: request } = response;
      // While the buffer is full, no data is read: then this process is slow, not the client.
      const isBufferFull = request.readableLength >= request.readableHighWaterMark;
      const isHeldUp = isBufferFull || socket.isPaused();
      const isStalled = socket.bytesRead === bytesBefore.get(request) && !isHeldUp;
      if (isStalled) endStalledRequest(request, response, dialectOf);
      bytesBefore.set(request, socket.bytesRead);
    }
  }, bodyIdleMs).unref();
  server.once('close', () => clearInterval(timer));
}

const STALLED: Refusal = { status: 408, message: 'The rest of the body did not come in time.' };
const UNKNOWN_EXPECTATION: Refusal = {
  status: 417,
  message: 'The only expectation that can be met is 100-continue.',
};
const NO_TARGET: Refusal = { status: 400, message: 'The address asked for is no address.' };

function endStalledRequest(
  request: IncomingMessage,
  response: ServerResponse,
  dialectOf: DialectOf,
): void {
  const { socket } = request;
  // An answer that waits for earlier ones must not be written between them.
  if (!response.headersSent && response.socket === socket) {
    const { headers, body } = earlyRefusal(request, STALLED, dialectOf);
    const id = response.getHeader('X-Request-Id');
    const own = { ...headers, ...(id !== undefined && { 'X-Request-Id': String(id) }) };
    socket.write(closingAnswer(STALLED.status, own, body));
  }
  socket.destroySoon();
}

/** Returns a handler that answers every request with this refusal. */
function createRefusal(refusal: Refusal, dialectOf: DialectOf): RequestListener {
  return (request, response) => {
    const { headers, body } = earlyRefusal(request, refusal, dialectOf);
    const own = { 'X-Request-Id': randomUUID(), 'X-Content-Type-Options': 'nosniff' };
    response.writeHead(refusal.status, { ...own, ...headers }).end(body);
  };
}

const ESCAPED_PATH = /^[^?]*%[^?]*/;
/** The escapes of letters, digits, `-`, `_` and `~`: an address means the same without them. */
const NEEDLESS = /%(?:2d|3\d|[46][1-9a-f]|[57][\da]|5f|7e)/gi;

/**
 * Removes needless escapes from the path, and refuses a target that is neither a path nor an
 * address, on which the framework would fail.
 */
function withReadableTarget(handler: RequestListener, dialectOf: DialectOf): RequestListener {
  const refuse = createRefusal(NO_TARGET, dialectOf);
  return (request, response) => {
    const { url = '' } = request;
    request.url = url.replace(ESCAPED_PATH, (path) =>
      path.replaceAll(NEEDLESS, decodeURIComponent),
    );
    const isReadable = url.startsWith('/') || url === '*' || URL.canParse(url);
    (isReadable ? handler : refuse)(request, response);
  };
}

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/**
 * Passes on WebSocket upgrades. A request that offers another protocol (`h2c`: curl, Java) is
 * served without the upgrade, as the standard allows. One whose head exceeds a limit is passed on
 * too, to be refused: it may not be known as a whole.
 */
export function onWebSocket(server: Server, onOpen: OnUpgrade): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const isWebSocket = /\bwebsocket\b/i.test(request.headers.upgrade ?? '');
    const serve = (): void => {
      if (socket.destroyed) return;
      if (isWebSocket || headFault(request)) onOpen(request, socket, head);
      else reparseRequest(server, socket, [headWithoutUpgrade(request), head]);
    };
    // Answers must have the order of their requests.
    const earlier = lastAnswer(socket);
    if (earlier === undefined) return serve();
    // No other code listens meanwhile, and without a listener an error ends the process.
    socket.on('error', destroy);
    earlier.once('close', serve);
  });
}

/** Lets the server parse these bytes again, as those of a new connection. */
function reparseRequest(server: Server, socket: Socket, bytes: readonly Buffer[]): void {
  // A connection may be parsed again several times, and the server adds its listeners each time.
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

/**
 * Listens on the address. Resolves with the port; rejects with a sentence that says what to change.
 */
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

/** The number of connections that Node lets wait until the process accepts them. */
const MAX_WAITING_CONNECTIONS = 511;

/**
 * Accepts the connections that wait, then stops to listen. The system would reset these connections
 * with the calls on them, and a load balancer does not send such calls again.
 */
export async function stopListening(server: Server): Promise<void> {
  let taken = 0;
  const count = (): number => taken++;
  server.on('connection', count);
  // The current turn of the event loop has looked for connections already.
  await nextTurn();
  let before = -1;
  // Each turn of the event loop accepts one connection.
  for (let turn = 0; taken > before && turn <= MAX_WAITING_CONNECTIONS; turn++) {
    before = taken;
    await nextTurn();
  }
  server.off('connection', count);
  server.close();
}

/** The methods that change nothing. */
export const READ_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Counts the calls in progress that change something and have arrived completely: they wait for
 * this process only.
 */
export function countChanges(server: Server): () => number {
  const connections = connectionsOf(server);
  const isChange = ({ req }: ServerResponse): boolean =>
    req.complete && !READ_METHODS.has(req.method ?? '');
  return () => [...connections].flatMap(openAnswers).filter(isChange).length;
}

/** Returns the address as a user types it. */
export function urlOf(
  address: { readonly listen: string; readonly tls?: Tls },
  port: number,
): string {
  const host = address.listen.includes(':') ? `[${address.listen}]` : address.listen;
  return `${address.tls ? 'https' : 'http'}://${host}:${port}`;
}
