import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { privateCaching } from '../http/answer.ts';
import { closingAnswer, headerLines } from '../http/client-connection.ts';
import { type Logger, requestId } from '../observability/log.ts';
import { readTarget } from '../protocol/request-target.ts';
import { rulesOf } from '../dialects/dialect.ts';
import { type FailedAnswer, type FailedCall, errorReply } from '../dialects/error-reply.ts';
import { NO_VALID_KEY, V1Error, faultOf, plainError, ruleFault } from '../dialects/errors.ts';
import type { Hub, NewConnection } from '../sockets/hub.ts';
import type { Deprecation } from '../migration/deprecation.ts';
import { logRefusal } from './routing/log-refusal.ts';
import type { CallChecks } from '../auth/guard.ts';
import { routesFor } from './routes.ts';
import {
  agentOf,
  isBrowser,
  isOwnCall,
  isUsableClientId,
  mayBeSilent,
} from '../auth/calling-client.ts';

/** Received frames above v1's limit close the socket with code 1009. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024;
/** Clients do not fragment what they send; each fragment costs far more memory than its bytes. */
const FRAGMENT_LIMITS = { maxFragments: 64, maxBufferedChunks: 4096 } as const;
/**
 * After this time a client has read the 101, also on a busy machine. People do not notice the
 * delay.
 */
const FIRST_FRAME_DELAY_MS = 20;

type UpgradeOptions = {
  readonly hub: Hub;
  readonly auth: CallChecks;
  readonly log: Logger;
  readonly deprecation: Deprecation;
  /** Resolves when all frames are ready that a new socket of this user gets at once. */
  readonly whenCurrent?: (user: string) => Promise<void>;
  readonly limits: { readonly maxSockets: number; readonly maxSocketsPerUser: number };
  /** Called with the status of each upgrade. 101 means that a socket was opened. */
  readonly onUpgrade?: (status: number, request: IncomingMessage) => void;
};

/** A plain `GET /ws`: a 400 with a message, so that the client learns what is missing. */
export const plainSocketRoutes = routesFor<void>({
  'GET /ws'() {
    throw new V1Error(400, 'This path speaks WebSocket: the request has no upgrade header.');
  },
});

/** Handles the server's `upgrade` event; every refusal is an HTTP answer before the upgrade. */
export function createUpgrade(
  options: UpgradeOptions,
): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const { log, hub, onUpgrade } = options;
  const refuse = createRefuse(options);
  const server = createSocketServer(options, refuse);
  return (request, socket, head) => {
    socket.on('error', destroySocket);
    void checkUpgrade(options, request).then(
      (result) => {
        if (!('user' in result)) return refuse(request, socket, result);
        // Checked last: upgrades that were checked at the same time would all find the same free
        // slots.
        if (!hasRoom(options, result)) {
          const headers = deprecationHeaders(options, request);
          return refuse(request, socket, { ...noRoom(options), headers });
        }
        dropEmptyProtocols(request);
        // Frames are small and must not be delayed.
        server.handleUpgrade(request, socket, head, (ws) => {
          onUpgrade?.(101, request);
          hub.addConnection({ ws, socket, firstFrameDelayMs: FIRST_FRAME_DELAY_MS }, result);
        });
      },
      (error: unknown) => {
        log.error({ event: 'socket.upgrade_failed', err: error }, 'a WebSocket upgrade failed');
        refuse(request, socket, refusalOf(500));
      },
    );
  };
}

function createRefuse(options: UpgradeOptions): Refuse {
  return (request, socket, refusal) => {
    const { status, headers, body } = errorReply(refusal, callOf(options, request));
    options.onUpgrade?.(status, request);
    const id = requestId(request.headers['x-request-id']?.toString());
    const caching = { 'Cache-Control': privateCaching(() => false) };
    const own = { 'X-Request-Id': id, 'X-Content-Type-Options': 'nosniff', ...caching };
    // A peer that never closes its side would keep the connection, which no time limit of HTTP
    // watches.
    socket.once('finish', destroySocket);
    socket.end(closingAnswer(status, { ...own, ...headers }, body));
  };
}

/**
 * Removes empty protocol names. v1 knows no sub-protocols; some libraries send one without a name.
 */
function dropEmptyProtocols({ headers }: IncomingMessage): void {
  if (headers['sec-websocket-protocol']?.trim() === '') delete headers['sec-websocket-protocol'];
}

type Refuse = (request: IncomingMessage, socket: Duplex, refusal: FailedAnswer) => void;

function createSocketServer(options: UpgradeOptions, refuse: Refuse): WebSocketServer {
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    ...FRAGMENT_LIMITS,
    perMessageDeflate: false,
  });
  server.on('headers', (lines, request) => {
    lines.push(...headerLines(deprecationHeaders(options, request)));
  });
  // Without a handler the library would answer in HTML.
  server.on('wsClientError', ({ message }, socket, request) => {
    const fault = plainError('invalid_upgrade', `${message}.`);
    const headers = { ...deprecationHeaders(options, request), 'Sec-WebSocket-Version': '13' };
    refuse(request, socket, { status: 400, fault, headers });
  });
  return server;
}

/**
 * Defined outside the request handler: a handler that lives as long as the socket would keep the
 * request alive.
 */
function destroySocket(this: Duplex): void {
  this.destroy();
}

const LONG_CLIENT_ID = '"clientId" must be a text of at most 128 printable characters.';

function refusalOf(status: number, message = faultOf(status).message): FailedAnswer {
  return { status, fault: plainError(faultOf(status).code, message) };
}

function noRoom({ hub }: UpgradeOptions): FailedAnswer {
  return refusalOf(
    503,
    hub.isClosed() ? 'This server is stopping.' : 'There is no room for another WebSocket.',
  );
}

async function checkUpgrade(
  options: UpgradeOptions,
  request: IncomingMessage,
): Promise<NewConnection | FailedAnswer> {
  const { path } = readTarget(request.url ?? '');
  const refusal = options.auth.guard(request);
  if (refusal) {
    logRefusal(options, request, refusal);
    return { status: refusal.status, fault: ruleFault(refusal.rule, refusal.message) };
  }
  if (path !== '/ws' && path !== '/api/ws')
    return refusalOf(404, 'There is no WebSocket at this path.');
  if (request.method !== 'GET')
    return { ...refusalOf(405, 'A WebSocket is opened with GET.'), headers: { Allow: 'GET,HEAD' } };
  const result = await checkCaller(options, request);
  if ('user' in result) return result;
  return { ...result, headers: { ...deprecationHeaders(options, request), ...result.headers } };
}

function deprecationHeaders(
  { deprecation, auth }: UpgradeOptions,
  request: IncomingMessage,
): Readonly<Record<string, string>> {
  return deprecation.headersFor('GET /ws', {}, auth.addresses.prefixOf(request));
}

async function checkCaller(
  options: UpgradeOptions,
  request: IncomingMessage,
): Promise<NewConnection | FailedAnswer> {
  const { deprecation } = options;
  const caller = await options.auth.authenticate(request);
  if (caller === undefined)
    return { status: 401, fault: NO_VALID_KEY, headers: { 'WWW-Authenticate': 'Bearer' } };
  const { user } = caller;
  const params = new URLSearchParams(readTarget(request.url ?? '').query);
  const clientId = params.get('clientId');
  if (clientId !== null && !isUsableClientId(clientId)) return refusalOf(400, LONG_CLIENT_ID);
  const agent = agentOf(request);
  if (!isOwnCall(request)) {
    deprecation.countCall({ user, agent, clientId: clientId ?? '', route: 'GET /ws' });
    const refused = await deprecation.brownoutRefusal('GET /ws', { user, agent });
    if (refused) return refused;
  }
  await options.whenCurrent?.(user);
  const watches = params.get('watch') === '1';
  const dialect = options.auth.dialects.ofSocket(request);
  // Python's websocket-client sends an `Origin`, too.
  const byBrowser = isBrowser(request) && request.headers.origin !== undefined;
  const notice = deprecation.nextBrownoutNotice({ user, agent });
  const traits = { isBrowser: byBrowser, mayBeSilent: mayBeSilent(request), watches };
  return { user, clientId, ...traits, dialect, agent, notice };
}

function hasRoom(
  { hub, limits: { maxSockets, maxSocketsPerUser } }: UpgradeOptions,
  { user, clientId }: NewConnection,
): boolean {
  if (hub.isClosed()) return false;
  if (hub.count(user) >= maxSocketsPerUser) return hub.makeRoom({ user, clientId, where: 'user' });
  return hub.count() < maxSockets || hub.makeRoom({ user, clientId, where: 'server' });
}

/** Returns the call as an error needs it: with the dialect of the requested socket. */
function callOf(
  { auth }: UpgradeOptions,
  { method = '', url = '', headers }: IncomingMessage,
): FailedCall {
  return { method, url, rules: rulesOf(auth.dialects.ofSocket({ url, headers })) };
}
