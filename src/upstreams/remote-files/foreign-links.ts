import type { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { Agent } from 'undici';
import { AddressRefused, type AddressScope, guardedLookup, addressScope } from './address-scope.ts';
import type { RemoteLimits } from '../remote/limits.ts';
import { redirectTarget } from '../remote-calls/upstream-links.ts';
import type { HttpAnswer } from '../remote-calls/connections.ts';

/** A host the operator lets an upstream redirect to; without a port: all of its ports. */
export type RedirectHost = { readonly hostname: string; readonly port?: string | undefined };

/** Reads what the links of an upstream lead to, as a stranger: no credential, no header of a caller's. */
export type ForeignLinks = ReturnType<typeof createForeignLinks>;

type Limits = Pick<RemoteLimits, 'connectTimeoutMs' | 'readTimeoutMs' | 'bodyIdleTimeoutMs'>;

/**
 * Where a link leads: `own` is the upstream's origin, `named` a host of the operator's list, `other`
 * anything else, which has to be public.
 */
type LinkKind = 'own' | 'named' | 'other';

const ALLOWED_SCOPES: { readonly [kind in LinkKind]: ReadonlySet<AddressScope> } = {
  // The operator has given its address: it may be anywhere.
  own: new Set<AddressScope>(['public', 'private', 'forbidden']),
  named: new Set<AddressScope>(['public', 'private']),
  other: new Set<AddressScope>(['public']),
};

const MAX_HOPS = 3;

/** `origin` is the upstream's; `hosts` are those it may redirect to beside itself and the internet. */
export function createForeignLinks(
  origin: string,
  limits: Limits,
  {
    hosts = [],
    resolve,
  }: { readonly hosts?: readonly RedirectHost[]; readonly resolve?: typeof lookup } = {},
) {
  const upstream = new URL(origin);
  const agentFor = (kind: LinkKind): Agent => {
    const guarded = { lookup: guardedLookup(ALLOWED_SCOPES[kind], resolve) };
    const connect = { timeout: limits.connectTimeoutMs, ...(kind !== 'own' && guarded) };
    return new Agent({ connect, pipelining: 1 });
  };
  const agents = { own: agentFor('own'), named: agentFor('named'), other: agentFor('other') };

  function kindOf(url: URL): LinkKind {
    if (url.origin === upstream.origin) return 'own';
    return hosts.some((host) => matchesHost(host, url)) ? 'named' : 'other';
  }

  /** Names are judged when they are resolved. */
  function refusalReasonOf(url: URL): string | undefined {
    const kind = kindOf(url);
    const isDowngrade = upstream.protocol === 'https:' && url.protocol !== 'https:';
    if (kind === 'other' && isDowngrade) return `${url.host} is not encrypted`;
    const host = url.hostname.replaceAll(/[[\]]/g, '');
    if (isIP(host) === 0 || ALLOWED_SCOPES[kind].has(addressScope(host))) return undefined;
    return `${url.host} is in a private network`;
  }

  async function send(
    url: URL,
    headers: Readonly<Record<string, string>>,
  ): Promise<HttpAnswer & { ok: true }> {
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
  ): Promise<HttpAnswer> {
    let url = new URL(link);
    for (let hop = 1; hop <= MAX_HOPS; hop++) {
      const reason = refusalReasonOf(url);
      if (reason !== undefined) return failedAnswer(new AddressRefused(reason));
      const answer = await send(url, headers);
      if (answer.status < 300 || answer.status >= 400) return answer;
      answer.body.destroy();
      const next = redirectTarget(answer.headers.location, url.href);
      if (next === undefined) return failedAnswer(new Error('a link leads to no address'));
      url = new URL(next);
    }
    return failedAnswer(new Error('a link leads on and on'));
  }

  return {
    /** Why the text of a link shows that it may not be followed; `undefined` when it may. */
    refusalReason: (link: string): string | undefined => refusalReasonOf(new URL(link)),
    /**
     * The head of the answer at the end of the link. A link that leads where it must not is a lost call
     * with the cause `AddressRefused`.
     */
    open: (link: string, headers: Readonly<Record<string, string>>): Promise<HttpAnswer> =>
      follow(link, headers).catch((cause: Error) => failedAnswer(cause)),
    async close(): Promise<void> {
      await Promise.all(Object.values(agents).map((agent) => agent.destroy()));
    },
  };
}

function matchesHost({ hostname, port }: RedirectHost, url: URL): boolean {
  return url.hostname === hostname && (port === undefined || port === portOf(url));
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80');
}

function failedAnswer(cause: Error): HttpAnswer {
  return { ok: false, wasSent: true, cause };
}
