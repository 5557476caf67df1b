import {
  COMMAND_TIMEOUT_MS,
  type Redis,
  type RedisConnections,
  withTimeouts,
} from '../../redis/redis.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { Ledger } from '../ledger.ts';
import { assetStore, keyStore } from './assets.ts';
import { callCountStore } from './call-counts.ts';
import { fileStore, textStore } from './files.ts';
import { jobStore } from './jobs.ts';
import { LedgerConnection } from './connection.ts';
import { type WriteTokens, NO_LEADER } from './write-tokens.ts';
import { modelCallStore, replayStore } from './models.ts';
import { promptStore } from './prompts.ts';

type RedisLedgerOptions = {
  readonly links: RedisConnections;
  /** How long a call waits while Redis is unreachable. */
  readonly timeoutMs?: number;
  /** Called for each write, because the tokens exist only after the ledger is opened. */
  readonly leadership?: () => WriteTokens;
};

/** How long `close` waits until Redis has confirmed pending writes. */
const CLOSE_WITHIN_MS = 5000;

/** Opens the ledger in Redis, which many processes may share. */
export function openRedisLedger(options: RedisLedgerOptions): Ledger {
  const { links, timeoutMs = COMMAND_TIMEOUT_MS, leadership = () => NO_LEADER } = options;
  const redis = links.connect(withTimeouts(timeoutMs));
  const connection = new LedgerConnection(redis, links.prefix);
  return {
    prompts: promptStore(connection, leadership),
    files: fileStore(connection),
    jobs: jobStore(connection),
    assets: assetStore(connection),
    keys: keyStore(connection),
    settings: textStore(connection, 'settings'),
    assetLabels: textStore(connection, 'asset-labels'),
    replays: replayStore(connection),
    modelCalls: modelCallStore(connection),
    calls: callCountStore(connection),
    // A write resolves when Redis has acknowledged it; its durability depends on the settings of Redis.
    synced: async () => {},
    close: () => close(redis),
  };
}

async function close(redis: Redis): Promise<void> {
  if (redis.status === 'end') return;
  // QUIT is answered after everything that was sent before it.
  const quit = redis.quit().catch(() => {});
  await completesWithin(CLOSE_WITHIN_MS, quit);
  redis.disconnect();
}
