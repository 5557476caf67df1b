import { InvalidSetting } from './invalid-setting.ts';
import { parseUrl } from './parse-values.ts';

/** Where prompts, jobs and names are recorded. */
export type LedgerSource =
  /** A database in the data directory, for one process. */
  | { readonly kind: 'sqlite' }
  /** One that several processes share; the address may carry a password. */
  | { readonly kind: 'redis'; readonly url: string };

/** Accepted URL schemes → the scheme the client library knows. */
const SCHEMES: { readonly [scheme: string]: string } = {
  'redis:': 'redis:',
  'rediss:': 'rediss:',
  'valkey:': 'redis:',
  'valkeys:': 'rediss:',
};

/** Reads `sqlite` or the address of a Redis; nothing of a login is ever repeated. */
export function ledgerSource(text: string): LedgerSource {
  if (text === 'sqlite') return { kind: 'sqlite' };
  const url = parseUrl(text);
  const scheme = SCHEMES[url?.protocol ?? ''];
  if (url === undefined || scheme === undefined || !/^[^,]+$/.test(url.hostname)) {
    throw new InvalidSetting(
      `option '--ledger' must be "sqlite" or redis://HOST:PORT, not '${withoutRedisLogin(text)}'`,
    );
  }
  if (!/^(\/\d*)?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    throw new InvalidSetting(
      `option '--ledger' takes the number of a database and no more after the host, not '${withoutRedisLogin(text)}'`,
    );
  }
  return { kind: 'redis', url: scheme + url.href.slice(url.protocol.length) };
}

/** The parts of the address of a Redis that are certainly no secret. */
export function withoutRedisLogin(text: string): string {
  const url = parseUrl(text);
  if (url && url.host !== '') return `${url.protocol}//${url.host}${url.pathname}`;
  return text.replace(/^([a-z]+:\/\/)?.*[:@?].*/is, '$1…');
}

/** When a worker counts as dead: how long it may be silent, and how often that is looked at. */
export type WorkerLimits = { readonly lockMs?: number; readonly checkMs?: number };
