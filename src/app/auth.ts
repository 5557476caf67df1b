import { type Identify, createAuthenticate } from '../auth/identity.ts';
import { createKeyring } from '../auth/keyring.ts';
import { type Config, isLoopback } from '../config/config.ts';
import { createDialects } from '../dialects/dialect.ts';
import type { SecretRedactor } from '../observability/secret-redactor.ts';
import type { OpenedUpstream } from './upstream.ts';
import { OWN_SEGMENTS } from '../config/proxy.ts';
import { createPrefixRemover } from '../http/prefix.ts';
import { createPublicAddresses } from '../http/public-address.ts';
import { createGuard } from '../auth/guard.ts';
import { CONSOLE_PATHS } from '../console/console-routes.ts';
import { pagePaths } from '../pages/home-page.ts';

export type Auth = ReturnType<typeof createAuth>;

type AuthParts = {
  readonly config: Config;
  readonly access: HttpAccess;
  readonly identify: Identify;
  /** Gets each key that is sent, so that no log line shows it. */
  readonly secrets: Pick<SecretRedactor, 'add'>;
  readonly runner: OpenedUpstream;
};

/** Identifies callers, and checks the host and origin of their calls. */
export function createAuth({ config, access, identify, secrets, runner }: AuthParts) {
  const keyring = createKeyring();
  const identifyCaller: Identify = (request) => {
    const caller = identify(request);
    secrets.add(caller?.credential);
    return caller;
  };
  return {
    ...access,
    identify: identifyCaller,
    authenticate: createAuthenticate({
      identify: identifyCaller,
      acceptsCaller: runner.acceptsCaller,
      onCaller: (caller) => keyring.remember(caller),
    }),
    keyring,
    dialects: createDialects(config.dialect),
  };
}

type HttpAccess = ReturnType<typeof createHttpAccess>;

/** The public address of each call, and the guard that refuses calls. */
export function createHttpAccess({ listen, corsOrigin, proxy }: Config) {
  const addresses = createPublicAddresses(proxy);
  const ownPaths = new Set([...pagePaths(), ...CONSOLE_PATHS]);
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
