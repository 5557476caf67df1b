import type { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { Agent } from 'undici';
import { PlaceRefused, type Reach, guardedLookup, reachOf } from './addresses.ts';
import type { RemoteLimits } from './limits.ts';
import { redirectTarget } from './links.ts';
import type { WireAnswer } from './pool.ts';

/** A host the operator lets an upstream redirect to; without a port: all of its ports. */
export type RedirectHost = { readonly hostname: string; readonly port?: string | undefined };

/** Reads what the links of an upstream lead to, as a stranger: no credential, no header of a caller's. */
export type Elsewhere = {
  /** Why a link may not be followed, as far as its text tells; `undefined`: it may. */
  objection(link: string): string | undefined;
  /**
   * The head of the answer at the end of the link. A link that leads where it must not is a lost call
   * with the cause `PlaceRefused`.
   */
  open(link: string, headers: Readonly<Record<string, string>>): Promise<WireAnswer>;
  close(): Promise<void>;
};

type Limits = Pick<RemoteLimits, 'connectTimeoutMs' | 'readTimeoutMs' | 'bodyIdleTimeoutMs'>;

/**
 * Where a link leads: `own` is the upstream's origin, `named` a host of the operator's list, `other`
 * anything else, which has to be public.
 */
type Kind = 'own' | 'named' | 'other';

const REACH: { readonly [kind in Kind]: ReadonlySet<Reach> } = {
  // The operator has given its address: it may be anywhere.
  own: new Set<Reach>(['public', 'private', 'forbidden']),
  named: new Set<Reach>(['public', 'private']),
  other: new Set<Reach>(['public']),
};

const MAX_HOPS = 3;

/** `origin` is the upstream's; `hosts` are those it may redirect to beside itself and the internet. */
export function createElsewhere(
  origin: string,
  limits: Limits,
  {
    hosts = [],
    resolve,
  }: { readonly hosts?: readonly RedirectHost[]; readonly resolve?: typeof lookup } = {},
): Elsewhere {
  const upstream = new URL(origin);
  const agentFor = (kind: Kind): Agent => {
    const guarded = { lookup: guardedLookup(REACH[kind], resolve) };
    const connect = { timeout: limits.connectTimeoutMs, ...(kind !== 'own' && guarded) };
    return new Agent({ connect, pipelining: 1 });
  };
  const agents = { own: agentFor('own'), named: agentFor('named'), other: agentFor('other') };

  function kindOf(url: URL): Kind {
    if (url.origin === upstream.origin) return 'own';
    return hosts.some((host) => isAt(host, url)) ? 'named' : 'other';
  }

  /** Names are judged when they are resolved. */
  function objectionTo(url: URL): string | undefined {
    const kind = kindOf(url);
    const isDowngrade = upstream.protocol === 'https:' && url.protocol !== 'https:';
    if (kind === 'other' && isDowngrade) return `${url.host} is not encrypted`;
    const host = url.hostname.replaceAll(/[[\]]/g, '');
    if (isIP(host) === 0 || REACH[kind].has(reachOf(host))) return undefined;
    return `${url.host} is in a private network`;
  }

  async function send(
    url: URL,
    headers: Readonly<Record<string, string>>,
  ): Promise<WireAnswer & { ok: true }> {
    const answer = await agents[kindOf(url)].request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'GET',
      headers: { 'user-agent': 'holdover', 'accept-encoding': 'identity', ...headers },
      headersTimeout: limits.readTimeoutMs,
      bodyTimeout: limits.bodyIdleTimeoutMs,
    });
    const { statusCode, headers: answered, body } = answer;
    body.on('error', () => {});
    return { ok: true, status: statusCode, headers: answered, body };
  }

  async function follow(
    link: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<WireAnswer> {
    let url = new URL(link);
    for (let hop = 1; hop <= MAX_HOPS; hop++) {
      const reason = objectionTo(url);
      if (reason !== undefined) return lost(new PlaceRefused(reason));
      const answer = await send(url, headers);
      if (answer.status < 300 || answer.status >= 400) return answer;
      answer.body.destroy();
      const next = redirectTarget(answer.headers.location, url.href);
      if (next === undefined) return lost(new Error('a link leads to no address'));
      url = new URL(next);
    }
    return lost(new Error('a link leads on and on'));
  }

  return {
    objection: (link) => objectionTo(new URL(link)),
    open: (link, headers) => follow(link, headers).catch((cause: Error) => lost(cause)),
    async close() {
      await Promise.all(Object.values(agents).map((agent) => agent.destroy()));
    },
  };
}

function isAt({ hostname, port }: RedirectHost, url: URL): boolean {
  return url.hostname === hostname && (port === undefined || port === portOf(url));
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80');
}

function lost(cause: Error): WireAnswer {
  return { ok: false, wasSent: true, cause };
}
