import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import { type Semaphore, createSemaphore } from '../../lib/concurrency.ts';
import { withJitter } from '../../lib/retry.ts';
import { type Caller, type Result, type V2Error, refuse } from '../../protocol/job-api.ts';

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
  readonly submissions: { readonly gate: RateGate; readonly semaphore: Semaphore };
  /** The upstream's refusal of this account, which is believed until `untilMs`. */
  credentialRefusal: CredentialRefusal | undefined;
};

export type CredentialRefusal = {
  readonly error: V2Error;
  readonly untilMs: number;
  /** True while a read of a job checks if the refusal is over. Other reads wait for it. */
  isBeingChecked: boolean;
};

const MAX_BYTES = 32 * 1024 * 1024;
/** The assumed memory of an account beside its key. */
const ACCOUNT_BYTES = 2000;

/** The characters that a header value may contain. */
const HEADER_VALUE = /^[\x21-\x7e]+$/;

/** The accounts of the upstream, by the keys of the callers. */
export class Accounts {
  readonly #options: AccountOptions;
  readonly #secret = randomBytes(32);
  readonly #accounts = new LRUCache<string, Account>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ key = '' }) => ACCOUNT_BYTES + 2 * key.length,
  });

  constructor(options: AccountOptions) {
    this.#options = options;
  }

  /** Runs work with the account of a caller. A caller without a usable key is refused. */
  async with<T>(
    caller: Caller,
    work: (account: Account) => Promise<Result<T>>,
  ): Promise<Result<T>> {
    const account = this.of(caller);
    return account.ok ? work(account.value) : account;
  }

  of(caller: Caller): Result<Account> {
    const key = this.#options.key ?? caller.credential;
    if (key !== undefined && !HEADER_VALUE.test(key)) {
      return refuse(401, 'unauthorized', 'This key has characters that a header cannot carry.');
    }
    const digest = (text: string) => createHmac('sha256', this.#secret).update(text).digest('hex');
    const id = key === undefined ? 'no-key' : digest(key);
    const account = this.#accounts.get(id) ?? this.#create(id, key);
    this.#accounts.set(id, account);
    return { ok: true, value: account };
  }

  #create(id: string, key: string | undefined): Account {
    const { clock, maxConcurrentSubmissions } = this.#options;
    const semaphore = createSemaphore(maxConcurrentSubmissions);
    const submissions = { gate: new RateGate(clock), semaphore };
    return { id, key, gate: new RateGate(clock), submissions, credentialRefusal: undefined };
  }
}

type AccountOptions = {
  readonly clock: Clock;
  readonly maxConcurrentSubmissions: number;
  /** The one key for all callers. Absent: each caller's own key is sent. */
  readonly key: string | undefined;
};

/** Stops the calls of an account until the upstream accepts them again. */
class RateGate {
  readonly #clock: Clock;
  #opensAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  waitMs(): number {
    return Math.max(0, this.#opensAtMs - this.#clock.now());
  }

  closeFor(forMs: number): void {
    this.#opensAtMs = Math.max(this.#opensAtMs, this.#clock.now() + forMs);
  }

  /** Waits until the gate is open, with a little jitter. False when that would take too long. */
  async waitUntilOpen({ budgetMs }: { readonly budgetMs: number }): Promise<boolean> {
    const deadlineMs = this.#clock.now() + budgetMs;
    for (let ms = this.waitMs(); ms > 0; ms = this.waitMs()) {
      if (this.#clock.now() + ms > deadlineMs) return false;
      await this.#clock.sleep(withJitter(ms));
    }
    return true;
  }
}
