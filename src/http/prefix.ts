import type { IncomingMessage, RequestListener } from 'node:http';
import type { PublicAddresses } from './public-address.ts';

type Options = {
  readonly addresses: PublicAddresses;
  /** True when a path that begins with the prefix belongs to the server itself. */
  readonly isOwnPath: (path: string, prefix: string) => boolean;
};

/** Serves calls below the public prefix too, since some proxies do not remove it. */
export function createPrefixRemover({ addresses, isOwnPath }: Options) {
  /**
   * Removes the prefix from the target of a request. The prefix alone is a page without its slash.
   */
  function remove(request: IncomingMessage): 'removed' | 'slash_missing' | 'none' {
    const { url = '' } = request;
    const prefix = addresses.prefixOf(request);
    if (prefix === '' || !url.startsWith(prefix)) return 'none';
    const path = url.split('?', 1)[0] ?? '';
    if (isOwnPath(path, prefix)) return 'none';
    if (path === prefix) return 'slash_missing';
    if (url[prefix.length] !== '/') return 'none';
    request.url = url.slice(prefix.length);
    return 'removed';
  }
  return {
    remove,
    /** Does this for all requests of a listener. A missing slash is answered with a redirect. */
    before:
      (listener: RequestListener): RequestListener =>
      (request, response) => {
        const isRead = request.method === 'GET' || request.method === 'HEAD';
        if (remove(request) !== 'slash_missing' || !isRead) return listener(request, response);
        // Without the slash, a browser would look for the files of the page beside the prefix, not
        // below it.
        const [prefix = '', query] = (request.url ?? '').split('?', 2);
        const Location = query === undefined ? `${prefix}/` : `${prefix}/?${query}`;
        response.writeHead(302, { Location }).end();
      },
  };
}
