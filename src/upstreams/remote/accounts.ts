import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Caller, type Result, type V2Error, refuse } from '../../protocol/job-api.ts';
import {
  type RateGate,
  type AdaptiveSemaphore,
  createRateGate,
  createAdaptiveSemaphore,
} from './rate-gate.ts';

/** Whose key calls carry: each caller's own, or one for all. */
export type Credential =
  | { readonly mode: 'pass-through' }
  | { readonly mode: 'fixed'; readonly key: string };

/** What is known of one upstream account; limits of the upstream are the account's, not the caller's. */
export type Account = {
  /** Tells accounts apart and is no secret. */
  readonly id: string;
  /** Sent as it is to the upstream's own origin, written nowhere. */
  readonly key: string | undefined;
  readonly gate: RateGate;
  /** Where submissions wait when there is no room. */
  readonly submissions: { readonly gate: RateGate; readonly semaphore: AdaptiveSemaphore };
  /** Why the upstream will not have this account, until when that is believed. */
  credentialRefusal: CredentialRefusal | undefined;
};

export type CredentialRefusal = {
  readonly error: V2Error;
  readonly untilMs: number;
  /** Somebody asks, for all, whether it is over. */
  isBeingChecked: boolean;
};

export type Accounts = { of(caller: Caller): Result<Account> };

const MAX_ACCOUNTS = 10_000;

/** What a header may carry. */
const HEADER_VALUE = /^[\x21-\x7e]+$/;

export function createAccounts(
  credential: Credential,
  options: { readonly clock: () => number; readonly maxConcurrentSubmissions: number },
): Accounts {
  const secret = randomBytes(32);
  const accounts = new LRUCache<string, Account>({ max: MAX_ACCOUNTS });
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
        return refuse(401, 'unauthorized', 'This key cannot be one.', { outcome: 'refused' });
      }
      const id =
        key === undefined ? 'nobody' : createHmac('sha256', secret).update(key).digest('hex');
      const account = accounts.get(id) ?? createAccount(id, key);
      accounts.set(id, account);
      return { ok: true, value: account };
    },
  };
}
