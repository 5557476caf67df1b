import { databasePath, placeSecret } from '../../data-folder/data-dir.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { openSqliteLedger } from '../../ledger/sqlite/sqlite-ledger.ts';
import { silentLogger } from '../../observability/log.ts';
import type { BackupHeader } from './format.ts';

/** The ledger of a restore. */
export type LedgerTarget = {
  readonly ledger: Ledger;
  /** The id of the ledger: that of the backup, when the kind of the ledger is the same. */
  readonly ledgerId: string;
  /** Stores the secret and the id of the files, after the records. */
  complete(): Promise<void>;
  /** Lets servers open the ledger. */
  finish(): Promise<void>;
  close(): Promise<void>;
};

/** Opens a new database in a folder. */
export function openDatabaseTarget(
  folder: string,
  { ledger: kind, ledgerId, folderId, secret }: BackupHeader,
): LedgerTarget {
  const newId = kind === 'sqlite' ? ledgerId : undefined;
  const ledger = openSqliteLedger({ path: databasePath(folder), newId });
  return {
    ledger,
    ledgerId: ledger.identity.id,
    async complete() {
      await ledger.identity.tie(folderId);
      placeSecret(folder, Buffer.from(secret, 'base64'));
    },
    finish: async () => {},
    close: () => ledger.close(),
  };
}

/** Opens a Redis. Throws when it has records that are not those of an interrupted restore. */
export async function openRedisTarget(
  url: string,
  { ledger: kind, ledgerId: formerId, folderId, secret }: BackupHeader,
): Promise<LedgerTarget> {
  const ledgerId = kind === 'redis' ? formerId : undefined;
  const { openSharedRedis } = await import('../../ledger/redis/open-shared.ts');
  const { beginRestore, finishRestore } = await import('../../ledger/redis/stored-keys.ts');
  const redis = await openSharedRedis({ url, log: silentLogger(), restore: { ledgerId } });
  const { ledger, links, identity } = redis;
  try {
    await beginRestore(links);
  } catch (error) {
    await redis.close();
    throw error;
  }
  return {
    ledger,
    ledgerId: identity.id,
    async complete() {
      await identity.tie(folderId);
      await identity.secret?.(Buffer.from(secret, 'base64'));
    },
    finish: () => finishRestore(links),
    close: () => redis.close(),
  };
}
