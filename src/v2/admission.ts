import { LRUCache } from 'lru-cache';
import type { Account } from './accounts.ts';
import type { Calls } from './call.ts';
import type { UpstreamLinks } from './links.ts';

/** Whether the upstream lets an account in at all; asked once, not with every call of ours. */
export type Admission = { admits(account: Account): Promise<boolean> };

type Deps = {
  readonly calls: Pick<Calls, 'once' | 'refusal'>;
  readonly links: UpstreamLinks;
  readonly clock: () => number;
  readonly timeoutMs: number;
};

/** No service has it: whoever is let in hears 404, at no cost. */
const NOBODYS_JOB = '00000000-0000-4000-8000-000000000000';
const BELIEVED_MS = 5 * 60_000;
/** Nothing was learned: who asks is let in as far as this server goes, and asked about again. */
const UNREACHABLE_MS = 5_000;
const MAX_ACCOUNTS = 10_000;

export function createAdmission({ calls, links, clock, timeoutMs }: Deps): Admission {
  const admitted = new LRUCache<string, true>({ max: MAX_ACCOUNTS });
  const asking = new Map<string, Promise<boolean>>();

  async function ask(account: Account): Promise<boolean> {
    const path = links.target('jobs', NOBODYS_JOB);
    const exchange = await calls.once(account, { method: 'GET', path, timeoutMs });
    if (exchange.kind === 'lost') {
      admitted.set(account.id, true, { ttl: UNREACHABLE_MS });
      return true;
    }
    if (exchange.reply.status === 401) {
      calls.refusal(account, exchange.reply);
      return false;
    }
    admitted.set(account.id, true, { ttl: BELIEVED_MS });
    return true;
  }

  return {
    async admits(account) {
      if (account.refused?.error.status === 401) {
        if (clock() < account.refused.untilMs) return false;
        admitted.delete(account.id);
      }
      if (admitted.has(account.id)) return true;
      const asked = asking.get(account.id) ?? ask(account);
      asking.set(account.id, asked);
      try {
        return await asked;
      } finally {
        asking.delete(account.id);
      }
    },
  };
}
