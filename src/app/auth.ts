import { type Identify, createAuthenticate } from '../auth/identity.ts';
import { Keyring } from '../auth/keyring.ts';
import { type Config, isLoopback } from '../config/config.ts';
import { createDialects } from '../dialects/dialect.ts';
import type { SecretRedactor } from '../observability/secret-redactor.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { OpenedUpstream } from './upstream.ts';
import { OWN_SEGMENTS } from '../config/proxy.ts';
import { PrefixRemover } from '../http/prefix.ts';
import { createPublicAddresses } from '../http/public-address.ts';
import { type CallChecks, createGuard } from '../auth/guard.ts';
import type { OwnHosts } from '../auth/host-check.ts';
import { CONSOLE_PATHS } from '../console/console-routes.ts';
import { pagePaths } from '../pages/home-page.ts';

export interface Auth extends CallChecks {
  readonly prefix: PrefixRemover;
  readonly identify: Identify;
  /** For APIs that accept every caller who can be identified. */
  readonly identifyAccepted: (request: Parameters<Identify>[0]) => Caller | undefined;
  readonly keyring: Keyring;
}

type AuthParts = {
  readonly config: Config;
  readonly identify: Identify;
  /** Gets the key of each caller that is accepted, so that no log line shows it. */
  readonly secrets: SecretRedactor;
  readonly runner: OpenedUpstream;
};

/** Identifies callers, finds the public address of each call, and refuses calls by their host and origin. */
export function createAuth({ config, identify, secrets, runner }: AuthParts): Auth {
  const { corsOrigin, proxy } = config;
  const keyring = new Keyring();
  const addresses = createPublicAddresses(proxy);
  const ownPaths = new Set([...pagePaths(), ...CONSOLE_PATHS]);
  return {
    addresses,
    guard: createGuard({
      ownHosts: ownHostsOf(config),
      corsOrigin,
      allowedHosts: proxy.allowedHosts,
      publicOrigin: proxy.publicUrl?.origin,
      addresses,
    }),
    prefix: new PrefixRemover({
      addresses,
      isOwnPath: (path, prefix) => ownPaths.has(path) || OWN_SEGMENTS.has(prefix.slice(1)),
    }),
    identify,
    identifyAccepted: (request) => {
      const caller = identify(request);
      secrets.add(caller?.credential);
      return caller;
    },
    authenticate: createAuthenticate({
      identify,
      acceptsCaller: runner.acceptsCaller,
      onCaller(caller) {
        secrets.add(caller.credential);
        keyring.remember(caller);
      },
    }),
    keyring,
    dialects: createDialects(config.dialect),
  };
}

/** A page that has rebound its name has no token: then any host may be named. */
function ownHostsOf({ listen, localToken, proxy }: Config): OwnHosts {
  if (isLoopback(listen)) return 'loopback';
  return localToken === undefined || proxy.allowedHosts.length > 0 ? 'private' : 'any';
}
