import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RequestHead } from '../http/file-headers.ts';
import type { Caller } from '../protocol/job-api.ts';
import { loginIn } from '../protocol/url-credentials.ts';

/** The user of all callers without a key. */
export const LOCAL_USER = 'local';

/** Authenticates a request. `undefined` becomes a 401, on HTTP and before a WebSocket upgrade. */
export type Authenticate = (request: RequestHead) => Promise<Caller | undefined>;

export type Identify = (request: RequestHead) => Caller | undefined;

/**
 * Tells users apart by an HMAC of the key that they send; the key itself stays in memory. With
 * `localToken`, only holders of that token are served, all of them as the local user; others get
 * `undefined`.
 */
export function createIdentify(options: {
  readonly secret: Buffer;
  readonly localToken: string | undefined;
}): Identify {
  const { secret, localToken } = options;
  return (request) => {
    const keys = keysIn(request);
    if (localToken !== undefined) {
      return keys.some((key) => areEqualSecrets(key, localToken))
        ? { user: LOCAL_USER }
        : undefined;
    }
    const [key] = keys;
    return key === undefined
      ? { user: LOCAL_USER }
      : { user: userIdOf(secret, key), credential: key };
  };
}

/** Authenticates a caller by its key, which the upstream must accept. */
export function createAuthenticate(options: {
  readonly identify: Identify;
  readonly acceptsCaller: (caller: Caller) => Promise<boolean>;
  /** Called for every authenticated caller. */
  readonly onCaller: (caller: Caller) => void;
}): Authenticate {
  return async (request) => {
    const caller = options.identify(request);
    if (caller === undefined || !(await options.acceptsCaller(caller))) return undefined;
    options.onCaller(caller);
    return caller;
  };
}

/**
 * True when a request has a key, valid or not. Without a key its caller is the local user, if that
 * user exists.
 */
export function presentsKey(request: RequestHead): boolean {
  return keysIn(request).length > 0;
}

/**
 * Returns the keys in the order of their priority: `X-API-Key`, Bearer, Basic, `?token=`. An empty
 * Bearer counts as absent, since some clients always send the header.
 */
function keysIn({ headers, url }: RequestHead): string[] {
  const { authorization = '' } = headers;
  const header = headers['x-api-key'];
  const bearer = /^bearer\s+(\S.*)$/i.exec(authorization)?.[1]?.trim();
  const candidates = [
    Array.isArray(header) ? header[0] : header,
    bearer,
    ...basicKeys(authorization),
    loginIn(url ?? ''),
  ];
  return candidates.filter((key): key is string => key !== undefined && key !== '');
}

/**
 * Returns the keys in a Basic header, which holds the key as the password, as the user name, or as
 * both joined.
 */
function basicKeys(authorization: string): (string | undefined)[] {
  const encoded = /^basic\s+(\S+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return [];
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  if (colon < 0) return [pair];
  const [name, password] = [pair.slice(0, colon), pair.slice(colon + 1)];
  if (name === '' && password === '') return [];
  if (name === '' || password === '') return [name || password, pair];
  return [pair, password, name];
}

/** Tokens of an SSO are long; longer keys fill the memory. */
const MAX_KEY_BYTES = 16 * 1024;

/** Returns the name of the header or the parameter whose key is too long to be kept. */
export function longKeyIn({ headers, url = '' }: RequestHead): string | undefined {
  const isLong = (key: string): boolean => key.length > MAX_KEY_BYTES;
  if (isLong(String(headers['x-api-key'] ?? ''))) return 'X-API-Key';
  const { authorization = '' } = headers;
  if (isLong(authorization) && keysIn({ headers: { authorization } }).some(isLong))
    return 'Authorization';
  // Only a long address needs to be read.
  return isLong(url) && isLong(loginIn(url) ?? '') ? '?token=' : undefined;
}

function userIdOf(secret: Buffer, key: string): string {
  return createHmac('sha256', secret).update(`user\0${key}`).digest('hex').slice(0, 32);
}

/** Compares in a time that does not depend on the texts. */
export function areEqualSecrets(given: string, expected: string): boolean {
  const digest = (text: string) => createHmac('sha256', 'compare').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
