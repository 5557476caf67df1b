import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import { type AdaptiveSemaphore, createAdaptiveSemaphore } from '../../lib/concurrency.ts';
import { type Caller, type Result, type V2Error, refuse } from '../../protocol/job-api.ts';

/** The key of calls: the caller's own, or one key for all callers. */
export type Credential =
  | { readonly mode: 'pass-through' }
  | { readonly mode: 'fixed'; readonly key: string };

/**
 * The state of one upstream account. The limits of the upstream apply to the account, not to the
 * caller.
 */
export type Account = {
  /** Identifies the account; not a secret. */
  readonly id: string;
  /** Sent unchanged to the upstream's own origin. It is written nowhere. */
  readonly key: string | undefined;
  readonly gate: RateGate;
  /** Submissions wait here when the upstream has no capacity. */
  readonly submissions: { readonly gate: RateGate; readonly semaphore: AdaptiveSemaphore };
  /** The upstream's refusal of this account, which is believed until `untilMs`. */
  credentialRefusal: CredentialRefusal | undefined;
};

export type CredentialRefusal = {
  readonly error: V2Error;
  readonly untilMs: number;
  /** True while a read of a job checks if the refusal is over. Other reads wait for it. */
  isBeingChecked: boolean;
};

export interface Accounts {
  of(caller: Caller): Result<Account>;
}

const MAX_BYTES = 32 * 1024 * 1024;
/** The assumed memory of an account beside its key. */
const ACCOUNT_BYTES = 2000;

/** The characters that a header value may contain. */
const HEADER_VALUE = /^[\x21-\x7e]+$/;

export function createAccounts(
  credential: Credential,
  options: { readonly clock: Clock; readonly maxConcurrentSubmissions: number },
): Accounts {
  const secret = randomBytes(32);
  const accounts = new LRUCache<string, Account>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ key = '' }) => ACCOUNT_BYTES + 2 * key.length,
  });
  const createAccount = (id: string, key: string | undefined): Account => ({
    id,
    key,
    gate: createRateGate(options.clock),
    submissions: {
      gate: createRateGate(options.clock),
      semaphore: createAdaptiveSemaphore(options.maxConcurrentSubmissions),
    },
    credentialRefusal: undefined,
  });
  return {
    of(caller) {
      const key = credential.mode === 'fixed' ? credential.key : caller.credential;
      if (key !== undefined && !HEADER_VALUE.test(key)) {
        return refuse(401, 'unauthorized', 'This key has characters that a header cannot carry.');
      }
      const id =
        key === undefined ? 'no-key' : createHmac('sha256', secret).update(key).digest('hex');
      const account = accounts.get(id) ?? createAccount(id, key);
      accounts.set(id, account);
      return { ok: true, value: account };
    },
  };
}

/** Runs work with the account of a caller. A caller without a usable key is refused. */
export function withAccount(accounts: Accounts) {
  return async <T>(
    caller: Caller,
    work: (account: Account) => Promise<Result<T>>,
  ): Promise<Result<T>> => {
    const account = accounts.of(caller);
    return account.ok ? work(account.value) : account;
  };
}

/** Stops the calls of an account until the upstream accepts them again. */
interface RateGate {
  readonly waitMs: () => number;
  readonly closeFor: (forMs: number) => void;
  /** Waits until the gate is open, with a little jitter. False when that would take too long. */
  waitUntilOpen(options: {
    readonly budgetMs: number;
    readonly signal?: AbortSignal;
  }): Promise<boolean>;
}

/** Waiting calls continue spread over a fifth of the wait, not all at once. */
const JITTER = 0.2;

/** @internal */
export function createRateGate(clock: Clock): RateGate {
  let opensAtMs = Number.NEGATIVE_INFINITY;
  const waitMs = (): number => Math.max(0, opensAtMs - clock.now());
  return {
    waitMs,
    closeFor: (forMs) => void (opensAtMs = Math.max(opensAtMs, clock.now() + forMs)),
    async waitUntilOpen({ budgetMs, signal }) {
      const deadlineMs = clock.now() + budgetMs;
      for (let ms = waitMs(); ms > 0; ms = waitMs()) {
        if (clock.now() + ms > deadlineMs) return false;
        await clock.sleep(ms * (1 + Math.random() * JITTER), signal);
      }
      return true;
    },
  };
}
