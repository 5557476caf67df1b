import { rmSync, statSync } from 'node:fs';
import type { LedgerSource } from '../../config/ledger.ts';
import { databasePath, placeSecret } from '../../data-folder/data-dir.ts';
import { readSqliteRecords, openKeyWriter } from '../../ledger/sqlite/records.ts';
import { openSqliteLedger } from '../../ledger/sqlite/sqlite-ledger.ts';
import { silentLogger } from '../../observability/log.ts';
import type { BackupHeader } from './format.ts';
import type { RecordsTarget } from './load-records.ts';

/** The ledger of a restore. */
export type LedgerTarget = RecordsTarget & {
  /** The id of the ledger: that of the backup, when the kind of the ledger is the same. */
  readonly ledgerId: string;
  /** Stores the secret and the id of the files, after the records. */
  complete(): Promise<void>;
  /** Servers can open the ledger after this. */
  finish(): Promise<void>;
  close(): Promise<void>;
};

/**
 * Opens an empty ledger: a new database in `folder`, or a Redis without records. Throws when the Redis has records
 * that are not those of an interrupted restore.
 */
export async function openLedgerTarget(
  to: LedgerSource,
  folder: string,
  header: BackupHeader,
): Promise<LedgerTarget> {
  const ledgerId = header.ledger === to.kind ? header.ledgerId : undefined;
  return to.kind === 'sqlite'
    ? openDatabase(folder, header, ledgerId)
    : await openRedis(to.url, header, ledgerId);
}

function openDatabase(
  folder: string,
  header: BackupHeader,
  ledgerId: string | undefined,
): LedgerTarget {
  const path = databasePath(folder);
  const ledger = openSqliteLedger({ path });
  const keys = openKeyWriter(path);
  if (ledgerId !== undefined) keys.setLedgerId(ledgerId);
  const close = async (): Promise<void> => {
    keys.close();
    await ledger.close();
  };
  return {
    ledger,
    writeKey: keys.writeKey,
    ledgerId: ledgerId ?? ledger.identity.id,
    records: () => readSqliteRecords(path),
    async complete() {
      await ledger.identity.tie(header.folderId);
      placeSecret(folder, Buffer.from(header.secret, 'base64'));
      await close();
      const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
      if (logBytes > 0) throw new Error(`${path} could not be written completely`);
      for (const end of ['-wal', '-shm', '.lock', '.lock-journal'])
        rmSync(`${path}${end}`, { force: true });
    },
    finish: async () => {},
    close,
  };
}

async function openRedis(
  url: string,
  { folderId, secret }: BackupHeader,
  ledgerId: string | undefined,
): Promise<LedgerTarget> {
  const { openSharedRedis } = await import('../../ledger/redis/open-shared.ts');
  const { readRedisRecords, redisKeyWriter } = await import('../../ledger/redis/records.ts');
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
    writeKey: redisKeyWriter(links),
    ledgerId: identity.id,
    records: () => readRedisRecords(links),
    async complete() {
      await identity.tie(folderId);
      await identity.secret?.(Buffer.from(secret, 'base64'));
    },
    finish: () => finishRestore(links),
    close: () => redis.close(),
  };
}
