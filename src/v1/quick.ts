import type { IncomingMessage, ServerResponse } from 'node:http';
import type { V1RouteName } from '../translate/successors.ts';
import type { PublicAddresses } from '../http/public-address.ts';
import type { Caller } from '../wire/jobs.ts';
import type { Authenticate } from './identity.ts';
import type { Leaving } from './leaving.ts';
import { type Quick, type V1Route, nameOf, twinsOf } from './routes.ts';
import { agentOf, isOwnCall } from './visitor.ts';

/** A call that may be answered at once, without a framework around it. */
export type Express = {
  /** The pattern it is counted under. */
  readonly route: string;
  /**
   * Answers it, with these headers (names and values by turns) beside its own, and tells whose call
   * it was. Rejects, or resolves with `undefined`, when the framework is to say what became of it.
   */
  send(carries: readonly string[]): Promise<Caller | undefined>;
};

/** Finds the calls that may; what is unusual about one is for the framework. */
export type Lane = (req: IncomingMessage, res: ServerResponse) => Express | undefined;

type Deps = {
  readonly authenticate: Authenticate;
  readonly deprecation: Leaving;
  readonly addresses: Pick<PublicAddresses, 'prefixOf'>;
};

type QuickRoute = {
  readonly name: V1RouteName;
  readonly quick: Quick;
  /** Headers that say of the end of v1, below a public prefix. */
  readonly linesBelow: (prefix: string) => readonly string[];
};

/** The way of usual calls to routes that have a quick answer; it says what the long way says. */
export function createQuickLane(deps: Deps, routes: readonly V1Route[]): Lane {
  const { deprecation } = deps;
  const byPath = new Map<string, QuickRoute>();
  for (const route of routes) {
    const { quick } = route;
    if (quick === undefined || route.method !== 'GET') continue;
    const name = nameOf(route);
    const below = (prefix: string) =>
      Object.entries(deprecation.headersFor(name, {}, prefix)).flat();
    const lines = below('');
    const linesBelow = (prefix: string) => (prefix === '' ? lines : below(prefix));
    for (const path of twinsOf(route)) byPath.set(path, { name, quick, linesBelow });
  }
  return (req, res) => {
    const { method, url = '' } = req;
    const route = method === 'GET' ? byPath.get(url) : undefined;
    if (route === undefined || hasBody(req) || deprecation.rehearses) return undefined;
    return { route: url, send: (carries) => answer(deps, route, { req, res, carries }) };
  };
}

type Call = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly carries: readonly string[];
};

async function answer(
  { authenticate, deprecation, addresses }: Deps,
  { name, quick, linesBelow }: QuickRoute,
  { req, res, carries }: Call,
): ReturnType<Express['send']> {
  const caller = await authenticate(req);
  const answered = caller && (await quick(req, caller));
  if (caller === undefined || answered === undefined) return undefined;
  if (!isOwnCall(req)) count(deprecation, name, { req, caller });
  if (res.destroyed) return caller;
  const { status, headers, body } = answered;
  const lines = linesBelow(addresses.prefixOf(req));
  res.writeHead(status, [...carries, ...lines, ...Object.entries(headers).flat()]);
  res.end(body);
  await new Promise<void>((resolve) => void res.once('close', resolve));
  return caller;
}

function count(
  { count: note }: Leaving,
  route: V1RouteName,
  { req, caller: { user } }: Pick<Call, 'req'> & { readonly caller: Caller },
): void {
  note({ user, agent: agentOf(req), clientId: '', route });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}
