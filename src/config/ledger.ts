import { Refused } from './refused.ts';

/** Where prompts, jobs and names are recorded. */
export type LedgerSource =
  /** A database in the data directory, for one process. */
  | { readonly kind: 'sqlite' }
  /** One that several processes share; the address may carry a password. */
  | { readonly kind: 'redis'; readonly url: string };

/** What the address may begin with → what the client library knows. */
const SCHEMES: { readonly [scheme: string]: string } = {
  'redis:': 'redis:',
  'rediss:': 'rediss:',
  'valkey:': 'redis:',
  'valkeys:': 'rediss:',
};

/** Reads `sqlite` or the address of a Redis; nothing of a login is ever repeated. */
export function ledgerSource(text: string): LedgerSource {
  if (text === 'sqlite') return { kind: 'sqlite' };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const scheme = SCHEMES[url?.protocol ?? ''];
  if (url === undefined || scheme === undefined || url.hostname === '') {
    throw new Refused(
      `option '--ledger' must be "sqlite" or redis://HOST:PORT, not '${withoutLogin(text)}'`,
    );
  }
  if (!/^(\/\d*)?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    throw new Refused(
      `option '--ledger' takes the number of a database and no more after the host, not '${withoutLogin(text)}'`,
    );
  }
  return { kind: 'redis', url: scheme + url.href.slice(url.protocol.length) };
}

/** A password may hold any character: all up to the last @ goes. */
function withoutLogin(text: string): string {
  return text.replace(/^([a-z]+:\/\/)?.*@/is, '$1');
}
