import type { IncomingMessage } from 'node:http';

/** Why a request is refused before anybody looks at what it asks. */
export type Refusal = { readonly status: 400 | 403 | 431; readonly reason: string };

export type Guard = (request: IncomingMessage) => Refusal | undefined;

type Options = {
  /** Bound to loopback: then only loopback names are ours, whatever DNS says. */
  readonly loopbackOnly: boolean;
  /** CORS mode replaces the origin check, as on the v1 server. */
  readonly corsOrigin: string | undefined;
};

const LOOPBACK_NAMES = new Set(['localhost', '[::1]']);

/** What people follow links to. */
const PAGES: ReadonlySet<string> = new Set(['/', '/holdover']);

/** Node reads no further, and says nothing: an `Origin` behind these would go unseen. */
const MAX_HEADERS = 100;

/**
 * Host allow-list (DNS rebinding), v1's origin check (cross-site requests), and fetch metadata.
 * Scripts send neither `Origin` nor `Sec-Fetch-Site` and pass.
 */
export function createGuard({ loopbackOnly, corsOrigin }: Options): Guard {
  const soleHost = createHostReader();
  return (request) => {
    if (request.rawHeaders.length / 2 > MAX_HEADERS) {
      return { status: 431, reason: 'too many headers' };
    }
    const host = soleHost(request);
    if (host === undefined) return { status: 400, reason: 'bad host' };
    if (!request.url?.startsWith('/') && request.url !== '*') {
      if (!targetsHost(request.url ?? '', host)) return { status: 400, reason: 'foreign target' };
    }
    if (loopbackOnly && !isLoopbackName(host.hostname)) {
      return { status: 403, reason: 'foreign host' };
    }
    if (corsOrigin !== undefined) return corsRefusal(request, host, corsOrigin);
    return originRefusal(request, host) ?? fetchMetadataRefusal(request);
  };
}

/** v1 names an origin in CORS mode and serves everybody; here that one and our own pages are served. */
function corsRefusal(request: IncomingMessage, host: URL, corsOrigin: string): Refusal | undefined {
  const { origin } = request.headers;
  if (corsOrigin === '*' || origin === undefined) return undefined;
  const given = URL.canParse(origin) ? new URL(origin) : undefined;
  const named = given?.origin === new URL(corsOrigin).origin;
  if (given && (named || isSameHost(given, host))) return undefined;
  return { status: 403, reason: 'foreign origin' };
}

function originRefusal(request: IncomingMessage, host: URL): Refusal | undefined {
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  if (origin === 'null') {
    const reads = request.method === 'GET' || request.method === 'HEAD';
    const harmless = reads && request.headers.upgrade === undefined;
    return harmless ? undefined : { status: 403, reason: 'opaque origin' };
  }
  const parsed = URL.canParse(origin) ? new URL(origin) : undefined;
  const same = parsed !== undefined && isSameHost(parsed, host);
  return same ? undefined : { status: 403, reason: 'foreign origin' };
}

/** v1 compares names, and ports when both have one; `localhost` and `127.0.0.1` differ. */
function isSameHost(origin: URL, host: URL): boolean {
  const samePort = origin.port === '' || host.port === '' || origin.port === host.port;
  return origin.hostname === host.hostname && samePort;
}

/** A browser says when another site makes it call us; following a link to the page is fine. */
function fetchMetadataRefusal({ method, url, headers }: IncomingMessage): Refusal | undefined {
  if (String(headers['sec-fetch-site']).toLowerCase() !== 'cross-site') return undefined;
  const navigation =
    (method === 'GET' || method === 'HEAD') &&
    headers['sec-fetch-mode'] === 'navigate' &&
    headers['sec-fetch-dest'] === 'document' &&
    PAGES.has(url?.split('?', 1)[0] ?? '');
  return navigation ? undefined : { status: 403, reason: 'cross-site request' };
}

function createHostReader(): (request: IncomingMessage) => URL | undefined {
  // One call after the other names the same.
  let last: { readonly text: string; readonly url: URL | undefined } | undefined;
  return ({ headers, rawHeaders }) => {
    const { host } = headers;
    if (host === undefined || !isSole(rawHeaders)) return undefined;
    if (last?.text !== host) last = { text: host, url: hostOf(host) };
    return last.url;
  };
}

/** Node shows the first of several. */
function isSole(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count === 1;
}

function hostOf(host: string): URL | undefined {
  if (/[@/\\?#\s]/.test(host)) return undefined;
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
}

function targetsHost(target: string, host: URL): boolean {
  return URL.canParse(target) && new URL(target).origin === host.origin;
}

function isLoopbackName(hostname: string): boolean {
  const name = hostname.replace(/\.$/, '');
  return LOOPBACK_NAMES.has(name) || /^127\.\d+\.\d+\.\d+$/.test(name);
}
