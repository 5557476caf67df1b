import type { RequestHead } from '../http/file-headers.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { textStart } from '../observability/text-start.ts';
import { withoutCredentialsIn } from '../protocol/url-credentials.ts';

/** A longer user agent is cut off. */
const MAX_AGENT_CHARS = 200;

/** Returns the name of the calling program, as it states itself. */
export function agentOf({ headers }: RequestHead): string {
  const text = (headers['user-agent'] ?? '').replace(/[\p{Cc}\p{Cf}]/gu, ' ').trim();
  // The result is stored and shown in the report.
  return textStart(withoutCredentialsIn(text), MAX_AGENT_CHARS) || '(none)';
}

/** True when a browser calls: browsers send `Mozilla/`; other programs rarely do. */
export function isBrowser({ headers }: RequestHead): boolean {
  return headers['user-agent']?.startsWith('Mozilla/') ?? false;
}

/**
 * True when a page calls, by the headers that browsers send. Node's `fetch` sends `Sec-Fetch-Mode`
 * alone and is a script.
 */
export function isPageCall({ headers }: RequestHead): boolean {
  return 'sec-fetch-site' in headers || 'sec-fetch-dest' in headers || 'comfy-user' in headers;
}

/**
 * True when Python's websocket-client opens a socket, as most scripts do: it sends an origin and no
 * user agent. It reads, and so answers pings, only while its program waits for a message.
 */
export function mayBeSilent({ headers }: RequestHead): boolean {
  return headers.origin !== undefined && headers['user-agent'] === undefined;
}

const MAX_CLIENT_ID_CHARS = 128;

/** True when a client id is allowed. */
export function isUsableClientId(clientId: string): boolean {
  return clientId.length <= MAX_CLIENT_ID_CHARS && !hasControlCharacter(clientId);
}

/** Returns the client id in a query; empty when it is absent or not allowed. */
export function clientIdIn(query: string): string {
  if (!query.includes('clientId')) return '';
  const clientId = new URLSearchParams(query).get('clientId') ?? '';
  return isUsableClientId(clientId) ? clientId : '';
}

/** The agents of Holdover's own programs: `holdover-demo`, `holdover-health`, a server in front of this one. */
const OWN_USER_AGENT = /^holdover(-[a-z]+)?$/;

/**
 * True for Holdover's own page, its sample and its commands: they are not clients that must move to
 * v2.
 */
export function isOwnCall({ headers, url = '' }: RequestHead): boolean {
  if (headers['holdover-page'] !== undefined || OWN_USER_AGENT.test(headers['user-agent'] ?? ''))
    return true;
  if (headers.upgrade !== undefined) return /[?&](watch|sample)=1(&|$)/.test(url);
  return isOfPlayer(url);
}

/**
 * True for a video or audio player of Holdover's own page, which cannot send the header of the
 * page.
 */
export function isOfPlayer(url: string): boolean {
  return /[?&]holdover-page=1(&|$)/.test(url);
}
