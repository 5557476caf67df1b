import type { IncomingMessage } from 'node:http';
import { targetHasControlCharacter } from '../wire/control-characters.ts';

/** Why a request is refused before anybody looks at what it asks. */
export type Refusal = {
  readonly status: Status;
  /** Stable: clients and operators go by it. */
  readonly rule: RuleName;
  readonly message: string;
};

/** Each rule, with the status it refuses with and what it tells the caller. */
const RULES = {
  too_many_headers: [431, 'There are too many headers.'],
  invalid_host: [400, 'The Host header is missing, repeated, or no host.'],
  foreign_target: [400, 'The address asked for is not the one in the Host header.'],
  control_character: [400, 'There is a control character in the path or in a parameter.'],
  foreign_host: [
    403,
    'Host check: this server listens on loopback and answers to localhost and 127.0.0.1 only. Call it by one of these names, or start it with --listen.',
  ],
  foreign_origin: [
    403,
    'Origin check: the page that calls is not of this server. Start it with --enable-cors-header ORIGIN to allow another one.',
  ],
  opaque_origin: [
    403,
    'Origin check: the page that calls hides its origin (Origin: null), so it may only read.',
  ],
  cross_site_request: [
    403,
    'Origin check: the browser says that another site makes this call (Sec-Fetch-Site: cross-site).',
  ],
} as const satisfies { readonly [rule: string]: readonly [Status, string] };

type RuleName = keyof typeof RULES;
type Status = 400 | 403 | 431;

/** The refusal of a rule. */
export function refused(rule: RuleName): Refusal {
  const [status, message] = RULES[rule];
  return { status, rule, message };
}

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
    if (request.rawHeaders.length / 2 > MAX_HEADERS) return refused('too_many_headers');
    const host = soleHost(request);
    if (host === undefined) return refused('invalid_host');
    if (!request.url?.startsWith('/') && request.url !== '*') {
      if (!targetsHost(request.url ?? '', host)) return refused('foreign_target');
    }
    if (targetHasControlCharacter(request.url ?? '')) return refused('control_character');
    if (loopbackOnly && !isLoopbackName(host.hostname)) return refused('foreign_host');
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
  return refused('foreign_origin');
}

function originRefusal(request: IncomingMessage, host: URL): Refusal | undefined {
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  if (origin === 'null') {
    const reads = request.method === 'GET' || request.method === 'HEAD';
    const harmless = reads && request.headers.upgrade === undefined;
    return harmless ? undefined : refused('opaque_origin');
  }
  const parsed = URL.canParse(origin) ? new URL(origin) : undefined;
  const same = parsed !== undefined && isSameHost(parsed, host);
  return same ? undefined : refused('foreign_origin');
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
  return navigation ? undefined : refused('cross_site_request');
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
