import { InvalidSetting } from './invalid-setting.ts';
import { splitHosts } from './redis-hosts.ts';

/** Where prompts, jobs and names are recorded. */
export type LedgerSource =
  /** A database in the data directory, for one process. */
  | { readonly kind: 'sqlite' }
  /** One that several processes share; the address may carry a password, and name several nodes. */
  | { readonly kind: 'redis'; readonly url: string };

/** Accepted URL schemes → the scheme the client library knows. */
const SCHEMES: { readonly [scheme: string]: string } = {
  'redis:': 'redis:',
  'rediss:': 'rediss:',
  'valkey:': 'redis:',
  'valkeys:': 'rediss:',
};

/**
 * Reads `sqlite` or the address of a Redis, or of several nodes of a cluster; nothing of a login is
 * ever repeated.
 */
export function ledgerSource(text: string): LedgerSource {
  if (text === 'sqlite') return { kind: 'sqlite' };
  const { login, hosts, rest } = splitHosts(text);
  const first = `${login}${hosts[0] ?? ''}${rest}`;
  const url = URL.canParse(first) && hosts.every(isHost) ? new URL(first) : undefined;
  const scheme = SCHEMES[url?.protocol ?? ''];
  if (url === undefined || scheme === undefined || url.hostname === '') {
    throw new InvalidSetting(
      `option '--ledger' must be "sqlite", redis://HOST:PORT or redis://HOST:PORT,HOST:PORT…, not '${withoutLogin(text, url)}'`,
    );
  }
  if (!/^(\/\d*)?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    throw new InvalidSetting(
      `option '--ledger' takes the number of a database and no more after the host, not '${withoutLogin(text, url)}'`,
    );
  }
  if (hosts.length > 1 && url.pathname.length > 1) {
    throw new InvalidSetting("option '--ledger': a Redis Cluster has no numbered databases");
  }
  const href = splitHosts(url.href);
  const others = hosts.slice(1).map((host) => `,${host}`);
  const address = `${href.login}${href.hosts[0]}${others.join('')}${href.rest}`;
  return { kind: 'redis', url: scheme + address.slice(url.protocol.length) };
}

function isHost(text: string): boolean {
  return text !== '' && URL.canParse(`http://${text}`);
}

/** The parts of the address that are certainly no secret. */
function withoutLogin(text: string, url: URL | undefined): string {
  if (url && url.host !== '') return `${url.protocol}//${url.host}${url.pathname}`;
  return text.replace(/^([a-z]+:\/\/)?.*[:@?].*/is, '$1…');
}

/** When a worker counts as dead: how long it may be silent, and how often that is looked at. */
export type WorkerLimits = { readonly lockMs?: number; readonly checkMs?: number };

/** Without a shared queue no other process could run the jobs. */
export function requireConcurrency(concurrency: number, { kind }: LedgerSource): void {
  if (concurrency > 0 || kind === 'redis') return;
  throw new InvalidSetting(
    "option '--concurrency' may be 0 only with '--ledger redis://…' and workers",
  );
}
