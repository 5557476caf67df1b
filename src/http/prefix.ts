import type { IncomingMessage, RequestListener } from 'node:http';
import type { PublicAddresses } from './public-address.ts';

type Options = {
  readonly addresses: PublicAddresses;
  /** True when a path that begins with the prefix belongs to the server itself. */
  readonly isOwnPath: (path: string, prefix: string) => boolean;
};

/** Serves calls below the public prefix too, since some proxies do not remove it. */
export class PrefixRemover {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Removes the prefix from the target of a request. True for the prefix alone, which lacks its slash. */
  remove(request: IncomingMessage): boolean {
    const { addresses, isOwnPath } = this.#options;
    const { url = '' } = request;
    const prefix = addresses.prefixOf(request);
    if (prefix === '' || !url.startsWith(prefix)) return false;
    const path = url.split('?', 1)[0] ?? '';
    if (isOwnPath(path, prefix)) return false;
    if (path === prefix) return true;
    if (url[prefix.length] === '/') request.url = url.slice(prefix.length);
    return false;
  }

  /** Does this for all requests of a listener. A missing slash is answered with a redirect. */
  before(listener: RequestListener): RequestListener {
    return (request, response) => {
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      if (!this.remove(request) || !isRead) return listener(request, response);
      // Without the slash, a browser would look for the files of the page beside the prefix, not
      // below it.
      const [prefix = '', query] = (request.url ?? '').split('?', 2);
      const Location = query === undefined ? `${prefix}/` : `${prefix}/?${query}`;
      response.writeHead(302, { Location }).end();
    };
  }
}
