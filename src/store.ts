import { randomUUID } from 'node:crypto';
import type { Config } from './config.ts';
import { type DataDir, openDataDir, shareDataDir } from './data-dir.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { SharedRedis } from './ledger/redis-open.ts';
import { openSqliteLedger } from './ledger/sqlite.ts';
import type { RedisLinks } from './redis.ts';
import { openSpool, shareSpool } from './spool-dir.ts';
import type { Logger } from './telemetry.ts';

/** All that is kept: the ledger and the data directory, of this process alone or shared. */
export type Store = {
  readonly ledger: Ledger;
  /** Its `spool` is this process's own, and was empty when it was opened. */
  readonly dir: DataDir;
  /** To the Redis that other processes share with this one; `undefined`: it is alone. */
  readonly links: RedisLinks | undefined;
  /** Prompts are written under the tokens of this process, where there are others. */
  readonly writeUnder: SharedRedis['writeUnder'];
  /** Tells this process from others, and from itself after a restart. */
  readonly instance: string;
  /** The ledger has lost what clients were told; never, where nobody else can take it away. */
  readonly lost: SharedRedis['lost'];
  close(): Promise<void>;
};

/** Opens it as configured; throws with a sentence a person can act on. */
export async function openStore(
  { ledger: source, dataDir }: Pick<Config, 'ledger' | 'dataDir'>,
  log: Logger,
): Promise<Store> {
  const instance = randomUUID();
  if (source.kind === 'redis') return openShared(source.url, { instance, dataDir, log });
  const dir = openDataDir(dataDir);
  const ledger = openSqliteLedger({ path: dir.database });
  // Only now: the ledger may have been refused because another process has the folder.
  openSpool(dir.spool);
  const lost = new Promise<never>(() => {});
  const alone = { links: undefined, writeUnder: () => {}, lost, instance };
  return { ledger, dir, ...alone, close: () => ledger.close() };
}

async function openShared(
  url: string,
  { instance, dataDir, log }: { instance: string; dataDir: string; log: Logger },
): Promise<Store> {
  // Whoever has the ledger to itself starts sooner without a client of Redis.
  const { openSharedRedis } = await import('./ledger/redis-open.ts');
  const redis = await openSharedRedis({ url, log });
  try {
    const places = await shareDataDir(dataDir, redis);
    const spool = shareSpool(places.spool, instance);
    const close = async (): Promise<void> => {
      spool.close();
      await redis.close();
    };
    const { ledger, links, writeUnder, lost } = redis;
    const dir = { ...places, spool: spool.path };
    return { ledger, dir, links, writeUnder, lost, instance, close };
  } catch (error) {
    await redis.close();
    throw error;
  }
}
