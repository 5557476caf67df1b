import { lookup, type LookupAddress } from 'node:dns';
import { isIP, BlockList, type LookupFunction } from 'node:net';
import { Agent } from 'undici';
import type { RemoteLimits } from '../limits.ts';
import type { RedirectHost } from '../../config/upstream.ts';
import { redirectTarget } from '../calls/upstream-links.ts';
import { type HttpAnswer, type RequestHeaders, openAnswer } from '../calls/exchange.ts';

/**
 * Where an address is: `public` on the internet, `private` in some network or on this machine.
 * `forbidden`: no link may lead there, even when the operator names it.
 */
type AddressScope = 'public' | 'private' | 'forbidden';

/**
 * The single addresses are metadata services of cloud providers, which return secrets of the
 * machine.
 */
const SUBNETS: readonly (readonly [AddressScope, string, number])[] = [
  ['forbidden', '169.254.0.0', 16],
  ['forbidden', 'fe80::', 10],
  ['forbidden', 'fd00:ec2::254', 128],
  ['forbidden', '100.100.100.200', 32],
  ['forbidden', '168.63.129.16', 32],
  ['forbidden', '0.0.0.0', 8],
  ['forbidden', '192.0.0.0', 24],
  ['forbidden', '198.18.0.0', 15],
  ['forbidden', '224.0.0.0', 3],
  ['forbidden', '::', 128],
  ['forbidden', 'ff00::', 8],
  // IPv6 forms that carry an IPv4 address for a gateway.
  ['forbidden', '64:ff9b::', 96],
  ['forbidden', '64:ff9b:1::', 48],
  ['forbidden', '2001::', 32],
  ['forbidden', '2002::', 16],
  ['forbidden', '::ffff:0:0:0', 96],
  ['private', '127.0.0.0', 8],
  ['private', '::1', 128],
  ['forbidden', '::', 96],
  ['private', '10.0.0.0', 8],
  ['private', '172.16.0.0', 12],
  ['private', '192.168.0.0', 16],
  ['private', '100.64.0.0', 10],
  ['private', 'fc00::', 7],
  ['private', 'fec0::', 10],
  // Ranges for documentation and ranges that are discarded.
  ['forbidden', '192.0.2.0', 24],
  ['forbidden', '198.51.100.0', 24],
  ['forbidden', '203.0.113.0', 24],
  ['forbidden', '192.88.99.0', 24],
  ['forbidden', '2001:db8::', 32],
  ['forbidden', '100::', 64],
];

const BLOCK_LISTS = SUBNETS.map(([scope, address, bits]) => {
  const list = new BlockList();
  list.addSubnet(address, bits, familyOf(address));
  return { scope, list };
});

/**
 * Returns the scope of an address. IPv4 addresses written as IPv6 (`::ffff:10.0.0.1`) count as
 * IPv4.
 * @internal
 */
export function addressScope(address: string): AddressScope {
  const family = familyOf(address);
  return BLOCK_LISTS.find(({ list }) => list.check(address, family))?.scope ?? 'public';
}

/** Thrown for a name or an address that is refused for where it leads. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

/**
 * Resolves names to addresses of allowed scopes only. The connection itself uses this lookup, so
 * that a name cannot lead elsewhere between a check and the connection (DNS rebinding).
 */
function guardedLookup(allowed: ReadonlySet<AddressScope>, resolve: typeof lookup): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error) return done(error, '', 0);
      const usable = addresses.filter(({ address }) => allowed.has(addressScope(address)));
      const [first] = usable;
      if (!first) return done(new AddressRefused(`${hostname} is in a private network`), '', 0);
      if (options.all === true) return done(null, usable);
      done(null, first.address, first.family);
    });
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

/**
 * Where a link leads. `own`: the upstream's origin. `named`: a host of the operator's list.
 * `other`: any other host, which must be public.
 */
type LinkKind = 'own' | 'named' | 'other';

const ALLOWED_SCOPES: { readonly [kind in LinkKind]: ReadonlySet<AddressScope> } = {
  // The operator has given the address of the upstream, so any scope is allowed.
  own: new Set<AddressScope>(['public', 'private', 'forbidden']),
  named: new Set<AddressScope>(['public', 'private']),
  other: new Set<AddressScope>(['public']),
};

const MAX_HOPS = 3;

/**
 * Reads the targets of the links of an upstream, without a credential and without headers of the
 * caller.
 */
export class ForeignLinks {
  readonly #upstream: URL;
  readonly #limits: RemoteLimits;
  readonly #hosts: readonly RedirectHost[];
  readonly #agents: { readonly [kind in LinkKind]: Agent };

  /**
   * `origin` is that of the upstream. `hosts` are those to which it may redirect, beside itself and
   * the internet.
   */
  constructor(
    origin: string,
    limits: RemoteLimits,
    hosts: readonly RedirectHost[] = [],
    resolve = lookup,
  ) {
    this.#upstream = new URL(origin);
    this.#limits = limits;
    this.#hosts = hosts;
    const agentFor = (kind: LinkKind): Agent => {
      const guarded = { lookup: guardedLookup(ALLOWED_SCOPES[kind], resolve) };
      const connect = { timeout: limits.connectTimeoutMs, ...(kind !== 'own' && guarded) };
      return new Agent({ connect, pipelining: 1 });
    };
    this.#agents = { own: agentFor('own'), named: agentFor('named'), other: agentFor('other') };
  }

  /**
   * Returns why a link may not be followed, as far as its text shows; `undefined` when it may.
   */
  refusalReason(link: string): string | undefined {
    return this.#refusalReasonOf(new URL(link));
  }

  /**
   * Returns the head of the answer at the end of the link. A link to a forbidden address is a
   * lost call with the cause `AddressRefused`.
   */
  open(link: string, headers: RequestHeaders): Promise<HttpAnswer> {
    return this.#follow(link, headers).catch((cause: Error) => failedAnswer(cause));
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#agents).map((agent) => agent.destroy()));
  }

  async #follow(link: string, headers: RequestHeaders): Promise<HttpAnswer> {
    let url = new URL(link);
    for (let hop = 1; hop <= MAX_HOPS; hop++) {
      const reason = this.#refusalReasonOf(url);
      if (reason !== undefined) return failedAnswer(new AddressRefused(reason));
      const answer = await this.#send(url, headers);
      if (!answer.ok || answer.status < 300 || answer.status >= 400) return answer;
      answer.body.destroy();
      const next = redirectTarget(answer.headers.location, url.href);
      if (next === undefined) return failedAnswer(new Error('a link leads to no address'));
      url = new URL(next);
    }
    return failedAnswer(new Error('a link leads on and on'));
  }

  /** Returns why a URL is refused. Names are checked when they are resolved. */
  #refusalReasonOf(url: URL): string | undefined {
    const kind = this.#kindOf(url);
    const isDowngrade = this.#upstream.protocol === 'https:' && url.protocol !== 'https:';
    if (kind === 'other' && isDowngrade) return `${url.host} is not encrypted`;
    const host = url.hostname.replaceAll(/[[\]]/g, '');
    if (isIP(host) === 0 || ALLOWED_SCOPES[kind].has(addressScope(host))) return undefined;
    return `${url.host} is in a private network`;
  }

  #send(url: URL, headers: RequestHeaders): Promise<HttpAnswer> {
    return openAnswer(this.#agents[this.#kindOf(url)], {
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'GET',
      headers: { 'user-agent': 'holdover', 'accept-encoding': 'identity', ...headers },
      headersTimeout: this.#limits.readTimeoutMs,
      bodyTimeout: this.#limits.bodyIdleTimeoutMs,
    });
  }

  #kindOf(url: URL): LinkKind {
    if (url.origin === this.#upstream.origin) return 'own';
    return this.#hosts.some((host) => matchesHost(host, url)) ? 'named' : 'other';
  }
}

function matchesHost({ hostname, port }: RedirectHost, url: URL): boolean {
  return url.hostname === hostname && (port === undefined || port === portOf(url));
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80');
}

function failedAnswer(cause: Error): HttpAnswer {
  return { ok: false, cause };
}
