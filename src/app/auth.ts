import { type Authenticate, type Identify, createAuthenticate } from '../auth/identity.ts';
import { type Keyring, createKeyring } from '../auth/keyring.ts';
import type { Config } from '../config/config.ts';
import { type Dialects, createDialects } from '../dialects/dialect.ts';
import type { SecretRedactor } from '../observability/secret-redactor.ts';
import type { HttpAccess } from './http-access.ts';
import type { OpenedUpstream } from './upstream.ts';

/** Identifies callers, and checks the host and origin of their calls. */
export type Auth = HttpAccess & {
  readonly identify: Identify;
  readonly authenticate: Authenticate;
  readonly keyring: Keyring;
  readonly dialects: Dialects;
};

type AuthParts = {
  readonly config: Config;
  readonly access: HttpAccess;
  readonly identify: Identify;
  /** Gets each presented key, so that no log line shows it. */
  readonly secrets: Pick<SecretRedactor, 'add'>;
  readonly runner: OpenedUpstream;
};

export function createAuth({ config, access, identify, secrets, runner }: AuthParts): Auth {
  const { addresses, guard, prefix } = access;
  const keyring = createKeyring();
  const { acceptsCaller } = runner;
  return {
    addresses,
    guard,
    prefix,
    identify,
    authenticate: createAuthenticate({
      identify,
      acceptsCaller,
      onCaller(caller) {
        keyring.remember(caller);
        secrets.add(caller.credential);
      },
    }),
    keyring,
    dialects: createDialects(config.dialect),
  };
}
