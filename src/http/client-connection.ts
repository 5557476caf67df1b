import {
  type IncomingMessage,
  type RequestListener,
  STATUS_CODES,
  type ServerResponse,
} from 'node:http';
import type { Duplex } from 'node:stream';

/** The two ends of a call. */
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

/** The last answer of a connection, for one that has no `ServerResponse` to write it. */
export function closingAnswer(
  status: number,
  headers: { readonly [name: string]: string },
  body = '',
): string {
  const length = String(Buffer.byteLength(body));
  const lines = headerLines({ Connection: 'close', 'Content-Length': length, ...headers });
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n');
}

export function headerLines(headers: { readonly [name: string]: string }): string[] {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
}

/** Calls of one connection that wait for their turn before no more are read. */
const MAX_WAITING = 1000;

type Calls = { last: ServerResponse; waiting: number };
const callsOf = new WeakMap<Duplex, Calls>();

/** The answer to the last call that a connection has brought. */
export function lastAnswer(socket: Duplex): ServerResponse | undefined {
  return callsOf.get(socket)?.last;
}

/**
 * Serves the calls that a client pipelines one after the other, each in another iteration of the event loop: their
 * answers have this order anyway, and other clients are served in between. Node would begin all of them at once.
 */
export function inTurn(serve: RequestListener): RequestListener {
  return (request, response) => {
    const { socket } = request;
    const calls = callsOf.get(socket) ?? { last: response, waiting: 0 };
    const earlier = calls.last;
    calls.last = response;
    callsOf.set(socket, calls);
    // Node gives an answer its connection when the one before has ended.
    if (response.socket !== null) return serve(request, response);
    if (++calls.waiting === MAX_WAITING) socket.on('resume', pause).pause();
    const handleTurn = (): void => {
      if (calls.waiting-- === MAX_WAITING) socket.off('resume', pause).resume();
      if (response.socket !== null) serve(request, response);
    };
    earlier.once('close', () => setImmediate(handleTurn));
  };
}

/** Node resumes a connection at the end of each call. */
function pause(this: Duplex): void {
  this.pause();
}
