import { readFileSync } from 'node:fs';
import type { ASSET_MODES, Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';
import type { Limits } from './limits.ts';
import { parseHost, splitList, addressWithoutLogin, parseUrl } from './parse-values.ts';

/** The upstream that runs the jobs. */
export type Upstream =
  | { readonly kind: 'embedded' }
  | {
      readonly kind: 'remote';
      readonly url: string;
      /** One key for all callers; `undefined`: each caller's own is passed through. */
      readonly key: string | undefined;
      readonly assetMode: (typeof ASSET_MODES)[number];
      /** Private hosts it may redirect to, beside itself. */
      readonly redirectHosts: readonly RedirectHost[];
      /** Changes of single times and bounds, for tests. */
      readonly limits: Limits['upstream'];
    };

export type ObjectInfoSource =
  | { readonly kind: 'auto' | 'embedded' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'url'; readonly url: string };

/** The upstream's name for logs and pages: its origin, without a path or a login. */
export function upstreamName(upstream: Upstream): string {
  return upstream.kind === 'embedded' ? 'embedded' : new URL(upstream.url).origin;
}

type UpstreamFlags = Pick<Flags, 'upstream' | 'upstreamKey' | 'upstreamAssets'> &
  Partial<Pick<Flags, 'upstreamRedirects'>>;

/** The key comes from a file or from the environment: arguments of a process are seen by all. */
export function upstreamOf(
  flags: UpstreamFlags,
  { upstream: limits }: Limits,
  env: NodeJS.ProcessEnv,
): Upstream {
  const { upstream } = flags;
  const key = upstreamKey(flags.upstreamKey, env);
  const hosts = splitList(flags.upstreamRedirects).map(redirectHost);
  if (upstream === 'embedded') {
    if (key !== undefined)
      throw new InvalidSetting("option '--upstream-key' needs an --upstream URL");
    if (hosts.length > 0) {
      throw new InvalidSetting("option '--upstream-redirects' needs an --upstream URL");
    }
    return { kind: 'embedded' };
  }
  return {
    kind: 'remote',
    url: upstreamUrl(upstream),
    key,
    assetMode: flags.upstreamAssets,
    redirectHosts: hosts,
    limits,
  };
}

export function objectInfoSource(text: string): ObjectInfoSource {
  if (text === 'auto' || text === 'embedded') return { kind: text };
  if (text === '') throw new InvalidSetting("option '--object-info' needs a file or a URL");
  if (!/^https?:/i.test(text)) return { kind: 'file', path: text };
  return { kind: 'url', url: plainUrl(text, '--object-info') };
}

function upstreamUrl(text: string): string {
  if (!/^https?:/i.test(text)) {
    throw new InvalidSetting(
      `option '--upstream' must be "embedded" or a URL, not '${addressWithoutLogin(text)}'`,
    );
  }
  const url = plainUrl(text, '--upstream');
  if (!/[?#]/.test(url)) return url;
  throw new InvalidSetting("option '--upstream' must be an address without a query");
}

function plainUrl(text: string, option: string): string {
  const url = parseUrl(text);
  if (!url)
    throw new InvalidSetting(`option '${option}' is no URL: '${addressWithoutLogin(text)}'`);
  if (url.username !== '' || url.password !== '') {
    throw new InvalidSetting(
      `option '${option}' must not carry a login; keys are given separately`,
    );
  }
  return url.href;
}

function upstreamKey(file: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  if (file === undefined) return parseKey(env['HOLDOVER_UPSTREAM_KEY'], 'HOLDOVER_UPSTREAM_KEY');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    // It may be the key itself: nothing of it is repeated.
    throw new InvalidSetting(
      "option '--upstream-key' needs a readable file that holds the key; " +
        'the key itself goes into HOLDOVER_UPSTREAM_KEY',
    );
  }
  const key = parseKey(text, '--upstream-key');
  if (key === undefined) throw new InvalidSetting("the file of '--upstream-key' is empty");
  return key;
}

function parseKey(text: string | undefined, source: string): string | undefined {
  const key = text?.trim() ?? '';
  if (key === '') return undefined;
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new InvalidSetting(`the key in ${source} has characters that no key has`);
}

/** A host that an upstream may redirect to; without a port: all of its ports. */
export type RedirectHost = { readonly hostname: string; readonly port: string | undefined };

function redirectHost(text: string): RedirectHost {
  const host = parseHost(text);
  if (host) return host;
  throw new InvalidSetting(
    `option '--upstream-redirects' takes hosts such as minio.internal or 10.0.0.5:9000, not '${text}'`,
  );
}
