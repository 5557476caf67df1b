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

/** Checks if the upstream accepts an account. The answer is cached, so that not every call asks. */
export function createCredentialCheck({ calls, links, clock, limits }: RemoteClient) {
  const accepted = new LRUCache<string, true>({
    ...atMost(MAX_ACCOUNTS),
    // Without this, each look-up starts a timer, to read the clock less often.
    ttlResolution: 0,
  });
  const pendingChecks = new Map<string, Promise<boolean>>();

  async function check(account: Account): Promise<boolean> {
    const path = links.target('jobs', UNKNOWN_JOB_ID);
    const exchange = await calls.once(account, {
      method: 'GET',
      path,
      timeoutMs: limits.discoverTimeoutMs,
    });
    if (exchange.kind === 'lost') {
      accepted.set(account.id, true, { ttl: UNREACHABLE_TTL_MS });
      return true;
    }
    if (exchange.reply.status === 401) {
      calls.recordRefusal(account, exchange.reply);
      return false;
    }
    accepted.set(account.id, true, { ttl: ACCEPTED_TTL_MS });
    return true;
  }

  return {
    async isAccepted(account: Account): Promise<boolean> {
      if (account.credentialRefusal?.error.status === 401) {
        if (clock.now() < account.credentialRefusal.untilMs) return false;
        accepted.delete(account.id);
      }
      if (accepted.has(account.id)) return true;
      const pendingCheck = pendingChecks.get(account.id) ?? check(account);
      pendingChecks.set(account.id, pendingCheck);
      try {
        return await pendingCheck;
      } finally {
        pendingChecks.delete(account.id);
      }
    },
  };
}
