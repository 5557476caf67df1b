import { randomBytes } from 'node:crypto';
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import type { LedgerSource } from '../../config/ledger.ts';
import { SECRET_BYTES, databasePath, placeSecret, secretIn } from '../../data-folder/data-dir.ts';
import type { LedgerIdentity } from '../../ledger/identity.ts';
import { copyDatabase, ledgerIdIn } from '../../ledger/sqlite/inspect.ts';
import { openSqliteRecords } from './sqlite-records.ts';
import { lockDatabase, openSqliteLedger } from '../../ledger/sqlite/sqlite-ledger.ts';
import { syncPathNow } from '../../lib/durability.ts';
import { silentLogger } from '../../observability/log.ts';
import type { LedgerSide } from './copy-records.ts';

/** The source or the target of a migration. No server may have it open. */
export type OpenSide = LedgerSide & {
  readonly identity: LedgerIdentity;
  /** Throws when a server has opened the ledger meanwhile. */
  refuseUse(): Promise<void>;
  close(): Promise<void>;
};

/** The target of a migration. */
export type TargetSide = OpenSide & {
  /** True when it has no records. */
  readonly isUnused: boolean;
  takeSecret(secret: Buffer | undefined): Promise<void>;
  /** Completes the target: servers can then open it. */
  place(): Promise<void>;
};

/** The name of a database until it is complete. */
const PARTIAL = '.migrating';
/** The name of a copy of the source. The copy is opened, so that not even the schema of the source changes. */
const SNAPSHOT = '.migration-source';

/** Opens the source of a migration. Locks a database; for Redis call `refuseUse`. Throws when there is no database. */
export async function openSource(source: LedgerSource, dataDir: string): Promise<OpenSide> {
  if (source.kind === 'redis') return openRedisSide(source.url, { acceptMigration: false });
  const path = databasePath(dataDir);
  if (!existsSync(path)) throw new Error(`there is no ledger ${path}: nothing can be migrated`);
  const unlock = lockDatabase(path);
  if (ledgerIdIn(path) === undefined) {
    throw new Error(`an older version wrote ${path}: start a server of this version on it once`);
  }
  const snapshot = `${path}${SNAPSHOT}`;
  removeDatabase(snapshot);
  copyDatabase(path, snapshot);
  const side = openSqliteSide(snapshot);
  return {
    ...side,
    async close() {
      await side.close();
      removeDatabase(snapshot);
      unlock();
    },
  };
}

/** Opens the target of a migration. Locks a database; for Redis call `refuseUse`. Throws when a database exists. */
export async function openTarget(target: LedgerSource, dataDir: string): Promise<TargetSide> {
  if (target.kind === 'redis') return openRedisTarget(target.url);
  const path = databasePath(dataDir);
  if (existsSync(path)) {
    throw new Error(`--to is not empty: move ${path} away (with its -wal) if it is an old one`);
  }
  // The lock keeps servers from creating a database of this name before the copy has it.
  const unlock = lockDatabase(path);
  const partial = `${path}${PARTIAL}`;
  const side = openSqliteSide(partial);
  return {
    ...side,
    isUnused: true,
    async takeSecret(secret) {
      if (secret) placeSecret(dataDir, secret);
    },
    async place() {
      await side.close();
      requireNoLog(partial);
      renameSync(partial, path);
      removeDatabase(partial);
      syncPathNow(dataDir);
    },
    async close() {
      await side.close();
      unlock();
    },
  };
}

/** Throws when the log of a closed database is not empty: then the file alone is not the whole database. */
function requireNoLog(path: string): void {
  const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes > 0) throw new Error(`${path}-wal is not empty: run "holdover migrate" again`);
}

function openSqliteSide(path: string): OpenSide {
  const ledger = openSqliteLedger({ path });
  const records = openSqliteRecords(path);
  let isOpen = true;
  return {
    ledger,
    records,
    identity: ledger.identity,
    // The lock keeps servers out.
    refuseUse: async () => {},
    async close() {
      if (!isOpen) return;
      isOpen = false;
      records.close();
      await ledger.close();
      // The lock file of the partial database is no longer used.
      rmSync(`${path}.lock`, { force: true });
    },
  };
}

async function openRedisSide(
  url: string,
  options: { readonly acceptMigration: boolean },
): Promise<OpenSide & { readonly isUnused: boolean }> {
  const { openSharedRedis } = await import('../../ledger/redis/open-shared.ts');
  const { isUnusedRedis } = await import('../../ledger/redis/stored-keys.ts');
  const { refuseRedisInUse, redisLedgerRecords } = await import('./redis-records.ts');
  const redis = await openSharedRedis({ url, log: silentLogger(), ...options });
  return {
    ledger: redis.ledger,
    records: redisLedgerRecords(redis.links),
    identity: redis.identity,
    isUnused: await isUnusedRedis(redis.links),
    refuseUse: () => refuseRedisInUse(redis.links),
    close: () => redis.close(),
  };
}

async function openRedisTarget(url: string): Promise<TargetSide> {
  const side = await openRedisSide(url, { acceptMigration: true });
  return {
    ...side,
    async takeSecret(secret) {
      if (secret) await side.identity.secret?.(secret);
    },
    place: () => side.records.release(),
  };
}

/** Returns the secret of a ledger, from which the ids of users and signed links are derived. */
export async function secretOf(
  { identity }: OpenSide,
  dataDir: string,
): Promise<Buffer | undefined> {
  const inFolder = secretIn(dataDir);
  if (identity.secret === undefined) return inFolder;
  // Each ledger in Redis that was opened has a secret, and ignores the proposed one.
  return identity.secret(inFolder ?? randomBytes(SECRET_BYTES));
}

function removeDatabase(path: string): void {
  for (const end of ['', '-wal', '-shm', '.lock']) rmSync(`${path}${end}`, { force: true });
}
