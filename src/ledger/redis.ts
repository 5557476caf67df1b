import { COMMAND_TIMEOUT_MS, type Redis, type RedisConnections, withTimeouts } from '../redis.ts';
import { completesWithin } from '../within.ts';
import type { Ledger } from './ledger.ts';
import { assetStore } from './redis-assets.ts';
import { callStore } from './redis-calls.ts';
import { fileStore, settingStore } from './redis-files.ts';
import { jobStore } from './redis-jobs.ts';
import { keyStore } from './redis-keys.ts';
import { createLink } from './redis-link.ts';
import { type Lead, NOBODY } from './redis-lead.ts';
import { modelCallStore, replayStore } from './redis-models.ts';
import { promptStore } from './redis-prompts.ts';

type Options = {
  readonly links: RedisConnections;
  /** How long a call waits for a Redis that is away. */
  readonly patienceMs?: number;
  /** Asked anew for each write: who leads is known later than the ledger is read. */
  readonly leadership?: () => Lead;
};

/** What is still to be written when a process stops waits for Redis no longer than this. */
const CLOSE_WITHIN_MS = 5000;

/**
 * Opens the ledger in the Redis of these links, which many processes may share. One Redis or Valkey,
 * no cluster: scripts make their keys from what they read.
 */
export function openRedisLedger(options: Options): Ledger {
  const { links, patienceMs = COMMAND_TIMEOUT_MS, leadership: lead = () => NOBODY } = options;
  const redis = links.connect(withTimeouts(patienceMs));
  const link = createLink(redis, links.prefix);
  return {
    prompts: promptStore(link, lead),
    files: fileStore(link),
    jobs: jobStore(link),
    assets: assetStore(link),
    keys: keyStore(link),
    settings: settingStore(link),
    replays: replayStore(link),
    modelCalls: modelCallStore(link),
    calls: callStore(link),
    close: () => close(redis),
  };
}

async function close(redis: Redis): Promise<void> {
  if (redis.status === 'end') return;
  // It is answered after everything that was sent before it.
  const quit = redis.quit().catch(() => {});
  await completesWithin(CLOSE_WITHIN_MS, quit);
  redis.disconnect();
}
