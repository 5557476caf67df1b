import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import parseForwarded from 'forwarded-parse';
import proxyAddr from 'proxy-addr';
import { parseUrl } from '../config/parse-values.ts';

/** Reads a `Host` header as the root address of a server. `undefined`: it is not a host. */
export function readHost(text: string, scheme = 'http'): URL | undefined {
  return /[@/\\?#\s]/.test(text) ? undefined : parseUrl(`${scheme}://${text}`);
}

/** The address at which the caller of one call reaches the server. */
export type PublicAddress = {
  /** Scheme, host and port. */
  readonly origin: string;
  /**
   * The path in front of all paths of the server, without a slash at its end; '' if there is none.
   */
  readonly prefix: string;
  /** `origin` and `prefix` together: links begin with it. */
  readonly base: string;
  /** True when the operator or a trusted proxy stated it, not the request itself. */
  readonly isStated: boolean;
};

type Call = Pick<IncomingMessage, 'headers' | 'socket'>;

/** The only source of public addresses: all code that writes a link uses it. */
export interface PublicAddresses {
  /** `undefined`: the call names no host. */
  of(call: Call): PublicAddress | undefined;
  readonly prefixOf: (call: Call) => string;
  /** The host by which trusted proxies were called; not checked. `undefined`: they state none. */
  readonly forwardedHostOf: (call: Call) => string | undefined;
  /** The client's address, if trusted proxies state it. */
  readonly clientOf: (call: Call) => string | undefined;
}

/** `publicUrl` has priority over every header. */
export function createPublicAddresses({
  publicUrl,
  trustedProxies = [],
}: {
  readonly publicUrl?: Pick<PublicAddress, 'origin' | 'prefix'> | undefined;
  readonly trustedProxies?: readonly string[];
} = {}): PublicAddresses {
  const forwardedOf = createForwardedReader(trustedProxies);
  const fixed = publicUrl && addressOf({ ...publicUrl, isStated: true });
  return {
    of(call) {
      if (fixed) return fixed;
      const forwarded = forwardedOf(call);
      const scheme = forwarded?.scheme ?? ('encrypted' in call.socket ? 'https' : 'http');
      const origin = readHost(forwarded?.host ?? call.headers.host ?? '', scheme)?.origin;
      if (origin === undefined) return undefined;
      const isStated = [forwarded?.scheme, forwarded?.host, forwarded?.prefix].some(
        (fact) => fact !== undefined,
      );
      return addressOf({ origin, prefix: forwarded?.prefix ?? '', isStated });
    },
    prefixOf: (call) => fixed?.prefix ?? forwardedOf(call)?.prefix ?? '',
    forwardedHostOf: (call) => forwardedOf(call)?.host,
    clientOf: (call) => forwardedOf(call)?.client,
  };
}

function addressOf({ origin, prefix, isStated }: Omit<PublicAddress, 'base'>): PublicAddress {
  return { origin, prefix, base: origin + prefix, isStated };
}

/**
 * The facts that the proxies in front state about a call. `undefined`: none of them states the
 * fact.
 */
type Forwarded = {
  readonly scheme: 'http' | 'https' | undefined;
  /** The host, with a port if it has one. It is not checked. */
  readonly host: string | undefined;
  /** The path that was removed, without a slash at its end. */
  readonly prefix: string | undefined;
  /** The address of the client. */
  readonly client: string | undefined;
};

/**
 * Reads the facts that trusted proxies state about a call. `undefined`: the peer is not trusted, so
 * none of its headers counts. `trusted` are addresses, CIDR blocks, or `loopback`, `linklocal`,
 * `uniquelocal`.
 */
function createForwardedReader(trusted: readonly string[]): (call: Call) => Forwarded | undefined {
  if (trusted.length === 0) return () => undefined;
  const isTrusted = proxyAddr.compile([...trusted]);
  const trusts = (address: string | undefined): boolean =>
    address !== undefined && isTrusted(address, 0);
  return ({ headers, socket }) => {
    if (!trusts(socket.remoteAddress)) return undefined;
    // Common proxies set these headers, and pass on the client's own `Forwarded` unchanged.
    const isXForwarded = X_FORWARDED.some((name) => headers[name] !== undefined);
    return isXForwarded ? readXForwarded(headers, trusts) : readForwarded(headers, trusts);
  };
}

type Trusts = (address: string | undefined) => boolean;

const X_FORWARDED = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-prefix',
] as const;

/**
 * Reads the `X-Forwarded` headers. Each proxy appends its value; values before the first trusted
 * one come from the client.
 */
function readXForwarded(headers: IncomingMessage['headers'], trusts: Trusts): Forwarded {
  const addresses = listOf(headers['x-forwarded-for']);
  const proxies = countProxies(addresses, trusts);
  const statedValue = (name: (typeof X_FORWARDED)[number]): string | undefined => {
    const values = listOf(headers[name]);
    return values[Math.max(0, values.length - proxies)];
  };
  const prefixes = listOf(headers['x-forwarded-prefix']).slice(-proxies);
  return {
    scheme: schemeOf(statedValue('x-forwarded-proto')),
    host: statedValue('x-forwarded-host'),
    // Each proxy names the prefix that it removed.
    prefix: prefixOf(prefixes.map((prefix) => prefix.replace(/\/$/, '')).join('')),
    client: clientOf(addresses.at(-proxies)),
  };
}

/** Reads RFC 7239: one element for each proxy; that of the nearest proxy is last. */
function readForwarded({ forwarded = '' }: IncomingMessage['headers'], trusts: Trusts): Forwarded {
  const elements = elementsOf(forwarded);
  const addresses = elements.map((element) => addressIn(element['for'] ?? ''));
  const trustedElements = elements.slice(-countProxies(addresses, trusts));
  const statedValue = (name: string): string | undefined =>
    trustedElements.find((element) => element[name] !== undefined)?.[name];
  return {
    scheme: schemeOf(statedValue('proto')),
    host: statedValue('host'),
    prefix: undefined,
    client: clientOf(addressIn(trustedElements[0]?.['for'] ?? '')),
  };
}

/** Counts the trusted peer, and before it every proxy whose address is trusted. */
function countProxies(addresses: readonly string[], trusts: Trusts): number {
  const client = addresses.findLastIndex((address) => !trusts(address));
  return Math.max(1, client === -1 ? addresses.length : addresses.length - client);
}

/** Returns the elements. An unreadable header counts as an absent one. */
function elementsOf(header: string): Record<string, string>[] {
  try {
    return header === '' ? [] : parseForwarded(header);
  } catch {
    return [];
  }
}

function listOf(header: string | string[] | undefined): readonly string[] {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '');
}

/** Returns the address without its port: `192.0.2.1:4711`, `"[2001:db8::1]:4711"`. */
function addressIn(node: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? node.replace(/^([\d.]+):\d+$/, '$1');
}

function clientOf(text: string | undefined): string | undefined {
  const address = addressIn(text ?? '');
  return isIP(address) === 0 ? undefined : address;
}

/** The schemes that proxies name. Some name that of a WebSocket. */
const SCHEMES: ReadonlyMap<string, Forwarded['scheme']> = new Map([
  ['http', 'http'],
  ['ws', 'http'],
  ['https', 'https'],
  ['wss', 'https'],
]);

function schemeOf(text = ''): Forwarded['scheme'] {
  return SCHEMES.get(text.toLowerCase());
}

const PREFIX = /^(\/[\w.~!$&'()*+;=:@%-]+)+$/;
const MAX_PREFIX_CHARS = 256;

function prefixOf(text: string): string | undefined {
  const isUsable = PREFIX.test(text) && text.length <= MAX_PREFIX_CHARS;
  return isUsable && !/\/\.{1,2}(\/|$)/.test(text) ? text : undefined;
}
