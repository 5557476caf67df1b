/** Builds the request targets of one upstream. */
export type UpstreamLinks = ReturnType<typeof createLinks>;

const API_PATH = '/api/v2';

/** Throws on an address that is no plain http(s) URL. */
export function createLinks(baseUrl: string) {
  const base = new URL(baseUrl);
  if (!isPlainHttp(base))
    throw new Error('an upstream must be an http or https URL without a login');
  const mount = base.pathname.replace(/\/+$/, '');
  const prefix = mount.endsWith(API_PATH) ? mount : mount + API_PATH;
  return {
    origin: base.origin,
    /** The request target of an operation no link leads to; segments are encoded. */
    target: (...segments: readonly string[]): string =>
      [prefix, ...segments.map(encodeURIComponent)].join('/'),
    /** The request target of a link; `undefined` when it leads to another origin. */
    targetOf(link: string | undefined): string | undefined {
      // `//host/…` is another host, and what starts otherwise is in no contract.
      if (link === undefined || !/^(https?:\/\/|\/(?!\/))/i.test(link)) return undefined;
      const url = resolveUrl(link, base.origin);
      if (!url || !isPlainHttp(url) || url.origin !== base.origin) return undefined;
      return url.pathname + url.search;
    },
  };
}

/** The absolute form of a `Location`, which may lead anywhere on the web but nowhere else. */
export function redirectTarget(location: string | undefined, origin: string): string | undefined {
  if (location === undefined) return undefined;
  const url = resolveUrl(location, origin);
  return url && isPlainHttp(url) ? url.href : undefined;
}

function resolveUrl(link: string, origin: string): URL | undefined {
  return URL.canParse(link, origin) ? new URL(link, origin) : undefined;
}

function isPlainHttp({ protocol, username, password }: URL): boolean {
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}
