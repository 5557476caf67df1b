import {
  type IncomingMessage,
  type RequestListener,
  STATUS_CODES,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** The request and the response of a call. */
export type CallConnection = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly writable: boolean;
};

/** True when the client has left. */
export function isClientGone({ req, writable }: CallConnection): boolean {
  return !writable || req.socket.destroyed;
}

/** A signal that aborts when the caller disconnects. */
export function disconnectSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (res.destroyed) controller.abort();
  res.once('close', () => controller.abort());
  // A write to a socket that has just closed is not an error.
  res.on('error', () => {});
  return controller.signal;
}

/** Writes the last answer of a connection that has no `ServerResponse`. */
export function closingAnswer(
  status: number,
  headers: { readonly [name: string]: string },
  body = '',
): string {
  const length = String(Buffer.byteLength(body));
  const lines = headerLines({ Connection: 'close', 'Content-Length': length, ...headers });
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n');
}

/** Returns the lines of a head. Nothing but this keeps a control character out of them. */
export function headerLines(headers: { readonly [name: string]: string }): string[] {
  return Object.entries(headers).map(
    ([name, value]) => `${name}: ${value.replaceAll(/\p{Cc}/gu, '?')}`,
  );
}

const connectionsByServer = new WeakMap<Server, ReadonlySet<Socket>>();

/** Returns the open connections of a server, from the first call on. */
export function connectionsOf(server: Server): ReadonlySet<Socket> {
  const known = connectionsByServer.get(server);
  if (known) return known;
  const open = new Set<Socket>();
  connectionsByServer.set(server, open);
  const add = (socket: Socket): void => {
    // A socket comes back when its offer of another protocol was not taken.
    if (open.has(socket)) return;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  };
  server.on('connection', add).on('secureConnection', add);
  return open;
}

/** When this many calls of one connection wait for their turn, no more are read. */
const MAX_WAITING = 1000;

/** The answers of a connection that are not closed yet, in order. */
type Calls = { readonly answers: ServerResponse[]; waiting: number };
const callsOf = new WeakMap<Duplex, Calls>();

/** Returns the responses to the calls on a connection that are not closed yet. */
export function openAnswers(socket: Duplex): readonly ServerResponse[] {
  return callsOf.get(socket)?.answers ?? [];
}

/** Returns the response to the last call on a connection, unless it is closed. */
export function lastAnswer(socket: Duplex): ServerResponse | undefined {
  return openAnswers(socket).at(-1);
}

/**
 * Serves pipelined calls of a client one after the other, each in another iteration of the event
 * loop. Their answers have this order anyway, and other clients are served in between. Node would
 * begin all of them at once, also those behind the last answer of a connection.
 */
export function serveInOrder(serve: RequestListener): RequestListener {
  const serveIfOpen: RequestListener = (request, response) => {
    if (response.socket?.writable === true) serve(request, response);
  };
  return (request, response) => {
    const { socket } = request;
    const calls = callsOf.get(socket) ?? { answers: [], waiting: 0 };
    callsOf.set(socket, calls);
    const earlier = calls.answers.at(-1);
    calls.answers.push(response);
    // Koa adds seven to send a stream. Node warns of more than ten.
    response.setMaxListeners(20);
    // A connection that waits for its next call must not keep the last one in memory.
    response.once('close', () => calls.answers.splice(calls.answers.indexOf(response), 1));
    // Node assigns the connection to a response when the previous response has ended.
    if (response.socket !== null || earlier === undefined) return serveIfOpen(request, response);
    if (++calls.waiting === MAX_WAITING) socket.on('resume', pause).pause();
    const handleTurn = (): void => {
      if (calls.waiting-- === MAX_WAITING) socket.off('resume', pause).resume();
      serveIfOpen(request, response);
    };
    earlier.once('close', () => setImmediate(handleTurn));
  };
}

/** Keeps a connection paused: Node resumes it at the end of each call. */
function pause(this: Duplex): void {
  this.pause();
}
