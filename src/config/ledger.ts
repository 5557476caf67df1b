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
      `option '--ledger' must be "sqlite" or redis://HOST:PORT, not '${withoutLogin(text, url)}'`,
    );
  }
  if (!/^(\/\d*)?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    throw new InvalidSetting(
      `option '--ledger' takes the number of a database and no more after the host, not '${withoutLogin(text, url)}'`,
    );
  }
  return { kind: 'redis', url: scheme + url.href.slice(url.protocol.length) };
}

/** The address of a Redis without credentials. */
export function withoutRedisLogin(address: string): string {
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname}`;
}

/** The parts of the address that are certainly no secret. */
function withoutLogin(text: string, url: URL | undefined): string {
  if (url && url.host !== '') return `${url.protocol}//${url.host}${url.pathname}`;
  return text.replace(/^([a-z]+:\/\/)?.*[:@?].*/is, '$1…');
}

/** When a worker counts as dead: how long it may be silent, and how often that is looked at. */
export type WorkerLimits = { readonly lockMs?: number; readonly checkMs?: number };
