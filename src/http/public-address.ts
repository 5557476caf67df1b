import type { IncomingMessage } from 'node:http';
import { createForwardedReader } from './forwarded.ts';
import { readHost } from './host-header.ts';

/** Where the caller of one call reaches the server. */
export type PublicAddress = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Path in front of all of the server's own, without a slash at its end; none is ''. */
  readonly prefix: string;
  /** `origin` and `prefix`: links begin with it. */
  readonly base: string;
  /** Stated by the operator or a trusted proxy; otherwise taken from the request itself. */
  readonly isStated: boolean;
};

type Call = Pick<IncomingMessage, 'headers' | 'socket'>;

/** The one source of public addresses: everything that writes a link asks here. */
export type PublicAddresses = ReturnType<typeof createPublicAddresses>;

/** `publicUrl` counts before every header. */
export function createPublicAddresses({
  publicUrl,
  trustedProxies = [],
}: {
  readonly publicUrl?: Pick<PublicAddress, 'origin' | 'prefix'> | undefined;
  readonly trustedProxies?: readonly string[];
} = {}) {
  const forwardedOf = createForwardedReader(trustedProxies);
  const fixed = publicUrl && addressOf(publicUrl, true);
  return {
    /** `undefined`: the call names no host. */
    of(call: Call): PublicAddress | undefined {
      if (fixed) return fixed;
      const forwarded = forwardedOf(call);
      const scheme = forwarded?.scheme ?? ('encrypted' in call.socket ? 'https' : 'http');
      const origin = readHost(forwarded?.host ?? call.headers.host ?? '', scheme)?.origin;
      if (origin === undefined) return undefined;
      const isStated = [forwarded?.scheme, forwarded?.host, forwarded?.prefix].some(
        (fact) => fact !== undefined,
      );
      return addressOf({ origin, prefix: forwarded?.prefix ?? '' }, isStated);
    },
    prefixOf: (call: Call) => fixed?.prefix ?? forwardedOf(call)?.prefix ?? '',
    /** The host that trusted proxies were called by; `undefined`: they state none. Not checked. */
    forwardedHostOf: (call: Call) => forwardedOf(call)?.host,
    /** The client's address, if trusted proxies state it. */
    clientOf: (call: Call) => forwardedOf(call)?.client,
  };
}

function addressOf(
  { origin, prefix }: Pick<PublicAddress, 'origin' | 'prefix'>,
  isStated: boolean,
): PublicAddress {
  return { origin, prefix, base: origin + prefix, isStated };
}
