import { LRUCache } from 'lru-cache';
import type { Account } from './accounts.ts';
import type { RemoteClient } from './calls.ts';
import { atMost } from '../../lib/lru-size.ts';

/** An id that no service has: with an accepted credential the answer is 404, at no cost. */
const UNKNOWN_JOB_ID = '00000000-0000-4000-8000-000000000000';
const ACCEPTED_TTL_MS = 5 * 60_000;
/**
 * When no answer arrives, the credential counts as accepted and is checked again after this time.
 */
const UNREACHABLE_TTL_MS = 5_000;
const MAX_ACCOUNTS = 10_000;

/**
 * Returns a check if the upstream accepts an account. The answer is cached, so that not every call
 * asks.
 */
export function createCredentialCheck({
  calls,
  links,
  clock,
  limits,
}: RemoteClient): (account: Account) => Promise<boolean> {
  const path = links.target('jobs', UNKNOWN_JOB_ID);
  const call = { method: 'GET', path, timeoutMs: limits.discoverTimeoutMs } as const;
  const accepted = new LRUCache<string, true, Account>({
    ...atMost(MAX_ACCOUNTS),
    // Without this, each look-up starts a timer, to read the clock less often.
    ttlResolution: 0,
    async fetchMethod(_id, _stale, { options, context: account }) {
      const exchange = await calls.once(account, call);
      options.ttl = exchange.ok ? ACCEPTED_TTL_MS : UNREACHABLE_TTL_MS;
      if (!exchange.ok || exchange.reply.status !== 401) return true;
      calls.recordRefusal(account, exchange.reply);
      return undefined;
    },
  });
  return async (account) => {
    const refusal = account.credentialRefusal;
    const wasRefused = refusal?.error.status === 401;
    if (wasRefused && clock.now() < refusal.untilMs) return false;
    const options = { context: account, forceRefresh: wasRefused };
    return (await accepted.fetch(account.id, options)) === true;
  };
}
