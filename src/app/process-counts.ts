import type { ProcessCounts } from '../console/server-routes.ts';
import { monotonicClock } from '../lib/clock.ts';
import { lazily } from '../lib/concurrency.ts';
import type { RedisConnections } from '../redis/redis.ts';

const ALONE: ProcessCounts = { countServers: async () => 1, countWorkers: async () => undefined };
/** How long a count stays valid: the page asks several times a second. */
const VALID_MS = 5000;

/** Counts processes by their connections to Redis. Without Redis, a server is alone. */
export function createProcessCounts(
  links: RedisConnections | undefined,
  { now }: { readonly now: () => number },
): ProcessCounts {
  if (links === undefined) return ALONE;
  // Imported on demand: a server without Redis starts sooner without the client library.
  const countServers = async (): Promise<number> => {
    const { countSubscribers } = await import('../redis/redis.ts');
    const { logChannel } = await import('../replication/shared-log-lines.ts');
    return Math.max(1, await countSubscribers(links, logChannel(links.channels)));
  };
  const condition = lazily(async () => {
    const { QueueCondition } = await import('../engine/bullmq/queue-condition.ts');
    return new QueueCondition(links, monotonicClock);
  });
  const countWorkers = async () => (await condition.get()).countWorkers();
  return {
    countServers: cachedBriefly(() => countServers().catch(() => 1), now),
    countWorkers: cachedBriefly(() => countWorkers().catch(() => undefined), now),
  };
}

/**
 * Returns a function that asks at most once in five seconds, and gives the last answer in between.
 */
export function cachedBriefly<T>(ask: () => Promise<T>, now: () => number): () => Promise<T> {
  let known: { readonly atMs: number; readonly value: Promise<T> } | undefined;
  return () => {
    if (known === undefined || now() - known.atMs > VALID_MS) known = { atMs: now(), value: ask() };
    return known.value;
  };
}
