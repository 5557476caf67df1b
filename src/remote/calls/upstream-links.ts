import { parseUrl } from '../../config/parse-values.ts';
import { V2_PREFIX, mountOf } from '../../protocol/v2-paths.ts';

/** Builds the request targets of one upstream. */
export interface UpstreamLinks {
  readonly origin: string;
  /** Returns the request target of an operation without a link. Segments are encoded. */
  readonly target: (...segments: readonly string[]) => string;
  /** Returns the request target of a link; `undefined` when it leads to another origin. */
  targetOf(link: string | undefined): string | undefined;
}

/** Creates the targets. Throws on an address that is not a plain http(s) URL. */
export function createLinks(baseUrl: string): UpstreamLinks {
  const base = new URL(baseUrl);
  if (!isPlainHttp(base))
    throw new Error('an upstream must be an http or https URL without a login');
  const prefix = mountOf(baseUrl) + V2_PREFIX;
  return {
    origin: base.origin,
    target: (...segments) => [prefix, ...segments.map(encodeURIComponent)].join('/'),
    targetOf(link) {
      // `//host/…` names another host, and the contract has no other forms.
      if (link === undefined || !/^(https?:\/\/|\/(?!\/))/i.test(link)) return undefined;
      const url = parseUrl(link, base.origin);
      if (!url || !isPlainHttp(url) || url.origin !== base.origin) return undefined;
      return url.pathname + url.search;
    },
  };
}

/**
 * Returns the absolute form of a `Location`, if it is an http(s) address. It may lead to any host.
 */
export function redirectTarget(location: string | undefined, origin: string): string | undefined {
  if (location === undefined) return undefined;
  const url = parseUrl(location, origin);
  return url && isPlainHttp(url) ? url.href : undefined;
}

function isPlainHttp({ protocol, username, password }: URL): boolean {
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}
