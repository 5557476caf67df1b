import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { Logger } from '../telemetry.ts';
import { stringifyJson } from '../wire/json.ts';
import { V1Error, plainError } from './errors.ts';
import type { Guard } from './guard.ts';
import type { Hub } from './hub.ts';
import type { Authenticate } from './identity.ts';
import type { V1Route } from './routes.ts';

/** Inbound frames beyond v1's limit close the socket with 1009. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
/** No client fragments what it sends; each piece costs far more memory than it has bytes. */
const PIECES = { maxFragments: 64, maxBufferedChunks: 4096 } as const;
const MAX_CLIENT_ID_CHARS = 128;

type Deps = {
  readonly hub: Hub;
  readonly guard: Guard;
  readonly authenticate: Authenticate;
  readonly log: Logger;
  readonly maxSockets: number;
  readonly maxSocketsPerUser: number;
  /** Hears what each upgrade was answered; 101 is a socket. */
  readonly onUpgrade?: (status: number) => void;
};

/** A plain `GET /ws`: v1 says 400 in words, so that a wrong client is told what is missing. */
export const PLAIN_SOCKET_ROUTES: readonly V1Route[] = [
  {
    method: 'GET',
    path: '/ws',
    handle: () => {
      throw new V1Error(400, 'This path speaks WebSocket: the request has no upgrade header.');
    },
  },
];

/** Handles the server's `upgrade` event: every refusal is an HTTP answer before the upgrade. */
export function createUpgrade(
  deps: Deps,
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    ...PIECES,
    perMessageDeflate: false,
  });
  const refuse = (socket: Duplex, status: number): void => {
    deps.onUpgrade?.(status);
    answer(socket, status);
  };
  return (request, socket, head) => {
    socket.on('error', () => socket.destroy());
    void judge(deps, request).then(
      (verdict) => {
        if ('status' in verdict) return refuse(socket, verdict.status);
        // Frames are small and each one matters at once.
        server.handleUpgrade(request, socket, head, (ws) => {
          deps.onUpgrade?.(101);
          deps.hub.attach(ws, verdict);
        });
      },
      (error: unknown) => {
        deps.log.error({ err: error }, 'upgrade failed');
        refuse(socket, 500);
      },
    );
  };
}

type Verdict =
  | { readonly status: number }
  | { readonly user: string; readonly clientId: string | null; readonly watches: boolean };

async function judge(
  { hub, guard, authenticate, ...limits }: Deps,
  request: IncomingMessage,
): Promise<Verdict> {
  const [path, query = ''] = (request.url ?? '').split('?', 2);
  const refusal = guard(request);
  if (refusal) return { status: refusal.status };
  if (path !== '/ws' && path !== '/api/ws') return { status: 404 };
  if (request.method !== 'GET') return { status: 405 };
  const caller = await authenticate(request);
  if (caller === undefined) return { status: 401 };
  const params = new URLSearchParams(query);
  const clientId = params.get('clientId');
  if (clientId !== null && !isUsable(clientId)) return { status: 400 };
  const full =
    hub.count() >= limits.maxSockets || hub.count(caller.user) >= limits.maxSocketsPerUser;
  const watches = params.get('watch') === '1';
  return full ? { status: 503 } : { user: caller.user, clientId, watches };
}

function isUsable(clientId: string): boolean {
  return clientId.length <= MAX_CLIENT_ID_CHARS && !/\p{Cc}/u.test(clientId);
}

function answer(socket: Duplex, status: number): void {
  const reason = STATUS_CODES[status] ?? '';
  const body = status === 403 ? '' : stringifyJson(plainError(`${status}`, reason));
  const authenticate = status === 401 ? 'WWW-Authenticate: Bearer\r\n' : '';
  const type = body === '' ? '' : 'Content-Type: application/json; charset=utf-8\r\n';
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\n${authenticate}${type}` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
