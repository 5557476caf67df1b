import type { IncomingMessage, ServerResponse } from 'node:http';
import type { V1RouteName } from '../migration/v1-routes.ts';
import type { PublicAddresses } from '../http/public-address.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { Authenticate } from '../auth/identity.ts';
import type { Deprecation } from '../migration/deprecation.ts';
import { type FastHandler, type V1Route, routeNameOf, aliasesOf } from './routes.ts';
import { agentOf, isOwnCall } from '../auth/calling-client.ts';

/** A call that is answered without Koa. */
export type FastCall = {
  /** The pattern it is counted under. */
  readonly route: string;
  /**
   * Answers it with these headers (names and values by turns) beside its own, and resolves with its
   * caller. Resolves with `undefined`, or rejects, when Koa has to answer it.
   */
  send(extraHeaders: readonly string[]): Promise<Caller | undefined>;
};

/** Finds calls that can be answered without Koa; `undefined`: anything about the call is unusual. */
export type FastPath = (req: IncomingMessage, res: ServerResponse) => FastCall | undefined;

type FastPathOptions = {
  readonly authenticate: Authenticate;
  readonly deprecation: Deprecation;
  readonly addresses: Pick<PublicAddresses, 'prefixOf'>;
};

type FastRoute = {
  readonly name: V1RouteName;
  readonly fastAnswer: FastHandler;
  /** The headers that announce the end of v1, with links below a public prefix. */
  readonly headersBelow: (prefix: string) => readonly string[];
};

/** Usual calls to routes with a `fastAnswer` skip Koa; the answer is the same. */
export function createFastPath(options: FastPathOptions, routes: readonly V1Route[]): FastPath {
  const { deprecation } = options;
  const byPath = new Map<string, FastRoute>();
  for (const route of routes) {
    const { fastAnswer } = route;
    if (fastAnswer === undefined || route.method !== 'GET') continue;
    const name = routeNameOf(route);
    const headersFor = (prefix: string) =>
      Object.entries(deprecation.headersFor(name, {}, prefix)).flat();
    const lines = headersFor('');
    const headersBelow = (prefix: string) => (prefix === '' ? lines : headersFor(prefix));
    for (const path of aliasesOf(route)) byPath.set(path, { name, fastAnswer, headersBelow });
  }
  return (req, res) => {
    const { method, url = '' } = req;
    const route = method === 'GET' ? byPath.get(url) : undefined;
    if (route === undefined || hasBody(req) || deprecation.hasBrownouts) return undefined;
    return {
      route: url,
      send: (extraHeaders) => answerRoute(options, route, { req, res, extraHeaders }),
    };
  };
}

type RawCall = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly extraHeaders: readonly string[];
};

async function answerRoute(
  { authenticate, deprecation, addresses }: FastPathOptions,
  { name, fastAnswer, headersBelow }: FastRoute,
  { req, res, extraHeaders }: RawCall,
): ReturnType<FastCall['send']> {
  const caller = await authenticate(req);
  const fastReply = caller && (await fastAnswer(req, caller));
  if (caller === undefined || fastReply === undefined) return undefined;
  if (!isOwnCall(req)) countCall(deprecation, name, { req, caller });
  if (res.destroyed) return caller;
  const { status, headers, body } = fastReply;
  const lines = headersBelow(addresses.prefixOf(req));
  res.writeHead(status, [...extraHeaders, ...lines, ...Object.entries(headers).flat()]);
  res.end(body);
  await new Promise<void>((resolve) => void res.once('close', resolve));
  return caller;
}

function countCall(
  { countCall: increment }: Deprecation,
  route: V1RouteName,
  { req, caller: { user } }: Pick<RawCall, 'req'> & { readonly caller: Caller },
): void {
  increment({ user, agent: agentOf(req), clientId: '', route });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}
