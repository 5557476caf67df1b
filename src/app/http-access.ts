import { type Config, isLoopback } from '../config/config.ts';
import { OWN_SEGMENTS } from '../config/proxy.ts';
import { type PrefixRemover, createPrefixRemover } from '../http/prefix.ts';
import { type PublicAddresses, createPublicAddresses } from '../http/public-address.ts';
import { type Guard, createGuard } from '../auth/guard.ts';
import { pagePaths } from '../pages/home-page.ts';

/** The public address of each call, and the guard that refuses calls. */
export type HttpAccess = {
  readonly addresses: PublicAddresses;
  readonly guard: Guard;
  readonly prefix: PrefixRemover;
};

export function createHttpAccess({ listen, corsOrigin, proxy }: Config): HttpAccess {
  const addresses = createPublicAddresses(proxy);
  const ownPaths = pagePaths();
  return {
    addresses,
    guard: createGuard({
      loopbackOnly: isLoopback(listen),
      corsOrigin,
      allowedHosts: proxy.allowedHosts,
      publicOrigin: proxy.publicUrl?.origin,
      addresses,
    }),
    prefix: createPrefixRemover({
      addresses,
      isOwnPath: (path, prefix) => ownPaths.has(path) || OWN_SEGMENTS.has(prefix.slice(1)),
    }),
  };
}
