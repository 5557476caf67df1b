import type { IncomingMessage } from 'node:http';
import { LONG_HEAD_MESSAGE, MAX_HEADERS, headFault } from '../http/head-limits.ts';
import { type PublicAddresses, readHost } from '../http/public-address.ts';
import { targetHasControlCharacter } from '../protocol/control-characters.ts';
import { parseUrl } from '../config/parse-values.ts';
import { readTarget } from '../protocol/request-target.ts';
import { isSignedContent } from '../protocol/v2-paths.ts';
import { type HostOptions, createHostCheck } from './host-check.ts';
import { type Authenticate, longKeyIn } from './identity.ts';
import type { Dialects } from '../dialects/dialect.ts';
import { SIGNED_VIEW_PATH } from './signed-view.ts';

/** A refusal of the guard, made before routing and authentication. */
export type GuardRefusal = {
  readonly status: GuardStatus;
  /** Stable: clients and operators depend on it. */
  readonly rule: RuleName;
  readonly message: string;
};

/** Each rule with its status, and its message to the caller. */
const RULES = {
  too_many_headers: [431, `There are more than ${MAX_HEADERS} headers.`],
  headers_too_large: [431, LONG_HEAD_MESSAGE],
  credential_too_long: [431, 'The credential is longer than 16 KiB'],
  invalid_host: [400, 'The Host header is missing, repeated, or no host.'],
  foreign_target: [400, 'The address asked for is not the one in the Host header.'],
  control_character: [400, 'There is a control character in the path or in a parameter.'],
  foreign_host: [
    403,
    'Host check: this server is not told of the host that the call names. Start it with --allowed-hosts HOST to allow that host, or call it by localhost or by its IP address.',
  ],
  foreign_origin: [
    403,
    'Origin check: the page that calls is not of this server. Start it with --enable-cors-header ORIGIN to allow another one, or with --public-url URL when a proxy hides the address that pages are opened by.',
  ],
  opaque_origin: [
    403,
    'Origin check: the page that calls hides its origin (Origin: null), so it may only read.',
  ],
  cross_site_request: [
    403,
    'Origin check: the browser says that another site makes this call (Sec-Fetch-Site: cross-site). Pages of other sites may only link to the start page, and link to or show files of /view and of signed links. Start it with --enable-cors-header ORIGIN to allow the calls of a page.',
  ],
} as const satisfies { readonly [rule: string]: readonly [GuardStatus, string] };

type RuleName = keyof typeof RULES;
type GuardStatus = 400 | 403 | 431;

/**
 * Returns the refusal of a rule.
 * @internal
 */
export function refusalOf(rule: RuleName): GuardRefusal {
  const [status, message] = RULES[rule];
  return { status, rule, message };
}

export type Guard = (request: IncomingMessage) => GuardRefusal | undefined;

/** The checks of a call and its caller. */
export type CallChecks = {
  readonly guard: Guard;
  readonly authenticate: Authenticate;
  readonly dialects: Dialects;
  /** The addresses at which callers reach the server. */
  readonly addresses: PublicAddresses;
};

type GuardOptions = Pick<HostOptions, 'ownHosts' | 'allowedHosts'> & {
  /** The origin of CORS mode, which replaces the origin check, as on the v1 server. */
  readonly corsOrigin: string | undefined;
  /** The address of the server as its operator gives it. */
  readonly publicOrigin: string | undefined;
  readonly addresses: PublicAddresses;
};

/** The pages to which other sites may link. */
const PAGES: ReadonlySet<string> = new Set(['/', '/holdover']);
/** Files that other sites may link to and show; the links to signed ones are their authorization. */
const FILES: ReadonlySet<string> = new Set(
  ['/view', SIGNED_VIEW_PATH].flatMap((path) => [path, `/api${path}`]),
);
/** The browser hides the answers from the page that has these made, unless it opens them. */
const MODES_OF_FILES: ReadonlySet<unknown> = new Set(['navigate', 'no-cors']);
const DESTINATIONS_OF_FILES: ReadonlySet<unknown> = new Set([
  'document',
  'image',
  'video',
  'audio',
]);

const WITHOUT_HOST = new URL('http://localhost');

/**
 * v1 compares the hosts of `Origin` and `Host`, and accepts an origin without a scheme. Browsers
 * never send one; some libraries do (an empty one, or `127.0.0.1:8188`).
 */
const WITHOUT_SCHEME = /^[^/]*$/;

/**
 * Apps that load their page from a file send this origin (Electron, Cordova), as Chromium does with
 * `--allow-file-access-from-files`. Without that option a page in a file, which may be a download,
 * sends `null` by `fetch` and by WebSocket.
 */
const APP_ORIGIN = 'file://';

/** The port that an origin leaves out. Apps have origins of other schemes, without ports. */
const PORT_OF_SCHEME: ReadonlyMap<string, string> = new Map([
  ['http:', '80'],
  ['https:', '443'],
]);

/**
 * Checks the host (DNS rebinding), the origin as v1 does (cross-site requests), and fetch metadata.
 * Scripts send neither `Origin` nor `Sec-Fetch-Site` and pass.
 *
 * A local page is a peer on loopback, as a local proxy is, and a page that has rebound its name may
 * send any header. So the host of the connection is checked, and the one that a trusted proxy
 * states.
 */
export function createGuard(options: GuardOptions): Guard {
  const { ownHosts, allowedHosts, corsOrigin, addresses } = options;
  const publicUrl = options.publicOrigin === undefined ? undefined : new URL(options.publicOrigin);
  const isAcceptedHost = createHostCheck({
    ownHosts,
    allowedHosts,
    publicHostname: publicUrl?.hostname,
  });
  return (request) => {
    const fault = headFault(request);
    if (fault) return refusalOf(fault);
    const longKey = longKeyIn(request);
    if (longKey !== undefined) {
      const refusal = refusalOf('credential_too_long');
      return { ...refusal, message: `${refusal.message}: ${longKey}.` };
    }
    const host = readSingleHost(request);
    const forwardedHost = addresses.forwardedHostOf(request);
    const calledHost = forwardedHost === undefined ? host : readHost(forwardedHost);
    if (host === undefined || calledHost === undefined) return refusalOf('invalid_host');
    const { url = '' } = request;
    const isPath = url.startsWith('/') || url === '*';
    if (!isPath && parseUrl(url)?.origin !== host.origin) return refusalOf('foreign_target');
    if (targetHasControlCharacter(url)) return refusalOf('control_character');
    if (![host, calledHost].every((name) => isAcceptedHost(name, request)))
      return refusalOf('foreign_host');
    const isOwn = (origin: URL): boolean =>
      isSameHost(origin, calledHost) || origin.origin === publicUrl?.origin;
    if (corsOrigin !== undefined) return corsRefusal(request, isOwn, corsOrigin);
    if (request.headers.origin === APP_ORIGIN) return undefined;
    return originRefusal(request, isOwn) ?? fetchMetadataRefusal(request);
  };
}

/** True when an origin is the server's own. */
type IsOwn = (origin: URL) => boolean;

/**
 * Refuses other origins in CORS mode. v1 names an origin in this mode and serves all of them; here
 * only that origin and the server's own pages are served.
 */
function corsRefusal(
  request: IncomingMessage,
  isOwn: IsOwn,
  corsOrigin: string,
): GuardRefusal | undefined {
  const { origin } = request.headers;
  if (corsOrigin === '*' || origin === undefined) return undefined;
  const callerOrigin = parseUrl(origin);
  const isConfiguredOrigin = callerOrigin?.origin === new URL(corsOrigin).origin;
  if (callerOrigin && (isConfiguredOrigin || isOwn(callerOrigin))) return undefined;
  return refusalOf('foreign_origin');
}

function originRefusal(request: IncomingMessage, isOwn: IsOwn): GuardRefusal | undefined {
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  if (origin === 'null') {
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    const isHarmless = isRead && request.headers.upgrade === undefined;
    return isHarmless ? undefined : refusalOf('opaque_origin');
  }
  if (WITHOUT_SCHEME.test(origin)) return undefined;
  const parsed = parseUrl(origin);
  const isSameOrigin = parsed !== undefined && isOwn(parsed);
  return isSameOrigin ? undefined : refusalOf('foreign_origin');
}

/**
 * Compares names, and ports unless `Host` has none, as some proxies send it. `localhost` and
 * `127.0.0.1` differ.
 */
function isSameHost(origin: URL, host: URL): boolean {
  const port = origin.port || PORT_OF_SCHEME.get(origin.protocol);
  const isSamePort = port === undefined || host.port === '' || port === host.port;
  return origin.hostname === host.hostname && isSamePort;
}

/** Refuses a call that another site made the browser send. */
function fetchMetadataRefusal({ method, url, headers }: IncomingMessage): GuardRefusal | undefined {
  if (String(headers['sec-fetch-site']).toLowerCase() !== 'cross-site') return undefined;
  const isRead = method === 'GET' || method === 'HEAD';
  const isLink = isRead && (opensPage(url ?? '', headers) || showsFile(url ?? '', headers));
  return isLink ? undefined : refusalOf('cross_site_request');
}

function opensPage(url: string, headers: IncomingMessage['headers']): boolean {
  const isNavigation = headers['sec-fetch-mode'] === 'navigate';
  return (
    isNavigation && headers['sec-fetch-dest'] === 'document' && PAGES.has(readTarget(url).path)
  );
}

function showsFile(url: string, headers: IncomingMessage['headers']): boolean {
  const isShown =
    MODES_OF_FILES.has(headers['sec-fetch-mode']) &&
    DESTINATIONS_OF_FILES.has(headers['sec-fetch-dest']);
  return isShown && (FILES.has(readTarget(url).path) || isSignedContent(url));
}

function readSingleHost({ headers, rawHeaders, httpVersion }: IncomingMessage): URL | undefined {
  const { host } = headers;
  // Health checks of proxies send no host in HTTP/1.0; a browser always sends it.
  if (host === undefined && httpVersion === '1.0') return WITHOUT_HOST;
  return host !== undefined && hasSingleHost(rawHeaders) ? readHost(host) : undefined;
}

/** True when there is one `Host`: of several, Node shows the first. */
function hasSingleHost(rawHeaders: readonly string[]): boolean {
  return rawHeaders.filter((text, at) => at % 2 === 0 && /^host$/i.test(text)).length === 1;
}
