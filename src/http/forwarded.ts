import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import parseForwarded from 'forwarded-parse';
import proxyAddr from 'proxy-addr';

/** Facts about a call as the proxies in front state them; a fact none of them states is `undefined`. */
export type Forwarded = {
  readonly scheme: 'http' | 'https' | undefined;
  /** Host, with a port if it has one; not checked. */
  readonly host: string | undefined;
  /** Path that was taken off, without a slash at its end. */
  readonly prefix: string | undefined;
  /** Address of the client. */
  readonly client: string | undefined;
};

type Call = Pick<IncomingMessage, 'headers' | 'socket'>;

/**
 * Reads what trusted proxies state about a call; `undefined`: the peer is not trusted, and none of its
 * headers counts. `trusted` are addresses, CIDR blocks, or `loopback`, `linklocal`, `uniquelocal`.
 */
export function createForwardedReader(
  trusted: readonly string[],
): (call: Call) => Forwarded | undefined {
  if (trusted.length === 0) return () => undefined;
  const isTrusted = proxyAddr.compile([...trusted]);
  const trusts = (address: string | undefined): boolean =>
    address !== undefined && isTrusted(address, 0);
  return ({ headers, socket }) => {
    if (!trusts(socket.remoteAddress)) return undefined;
    // Common proxies set these, and pass on the client's own `Forwarded` unchanged.
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

/** Each proxy appends its value; values before the first trusted one come from the client. */
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

/** RFC 7239: one element for each proxy, the nearest one's last. */
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

/** The trusted peer, and before it every proxy that is itself a trusted address. */
function countProxies(addresses: readonly string[], trusts: Trusts): number {
  const client = addresses.findLastIndex((address) => !trusts(address));
  return Math.max(1, client === -1 ? addresses.length : addresses.length - client);
}

/** A header that cannot be read counts as none. */
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

/** `192.0.2.1:4711`, `"[2001:db8::1]:4711"`: the address without its port. */
function addressIn(node: string): string {
  return /^\[(.*)\](?::\d+)?$/.exec(node)?.[1] ?? node.replace(/^([\d.]+):\d+$/, '$1');
}

function clientOf(text: string | undefined): string | undefined {
  const address = addressIn(text ?? '');
  return isIP(address) === 0 ? undefined : address;
}

/** Some proxies name the scheme of a WebSocket. */
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
