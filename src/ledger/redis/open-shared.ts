import { randomUUID } from 'node:crypto';
import { type Redis, type RedisConnections, openRedis } from '../../redis/redis.ts';
import type { Logger } from '../../observability/log.ts';
import { withoutRedisLogin } from '../../config/ledger.ts';
import { ProcessLeases } from '../leases.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { Ledger } from '../ledger.ts';
import type { LedgerIdentity } from '../identity.ts';
import { type WriteTokens, NO_LEADER } from './write-tokens.ts';
import { openRedisLedger } from './redis-ledger.ts';
import { RESTORE_KEY, beginRestore, finishRestore } from './stored-keys.ts';

/** A ledger in Redis, and the other data that processes share there. */
export interface SharedRedis {
  readonly ledger: Ledger;
  readonly links: RedisConnections;
  readonly identity: LedgerIdentity;
  /** Runs work of a start that only one process of this ledger may do at a time. */
  readonly withStartLock: <T>(work: () => Promise<T>) => Promise<T>;
  /** Resolves when Redis has lost the data of this ledger: then this process must stop. */
  readonly lost: Promise<Error>;
  /** Makes later writes to prompts use these tokens. */
  readonly useWriteTokens: (tokens: WriteTokens) => void;
  finishRestore(): Promise<void>;
  close(): Promise<void>;
}

/** How long a start waits for the first reply of Redis. */
const REACH_WITHIN_MS = 5000;
/** The lease of a start. It lasts longer than it takes to rename a dozen folders. */
const START = { name: 'start', leaseMs: 30_000 };
/** The version of the stored keys and values. */
const SCHEMA = '3';

/** Settings of Redis with which an acknowledged command survives a crash and is never evicted. */
const DURABLE_SETTINGS = {
  appendonly: 'yes',
  appendfsync: 'always',
  'maxmemory-policy': 'noeviction',
} as const;

type OpenOptions = {
  readonly url: string;
  readonly log: Logger;
  readonly reachWithinMs?: number;
  /** For `holdover restore`, which may follow an interrupted one: the id of the ledger, if it is new. */
  readonly restore?: { readonly newId: string | undefined };
};

/**
 * Opens the ledger. Throws an error with one sentence for the operator when Redis cannot be reached within
 * `reachWithinMs`, refuses access, has an interrupted restore, or was written by another version.
 */
export async function openSharedRedis({
  url,
  log,
  reachWithinMs = REACH_WITHIN_MS,
  restore,
}: OpenOptions): Promise<SharedRedis> {
  let links: RedisConnections | undefined;
  try {
    // Throws for a login that cannot be decoded.
    links = openRedis(url, { log });
    await connectWithin(links, reachWithinMs);
    await refuseUnfit(links);
    await refuseOtherVersion(links);
    await (restore ? beginRestore(links) : refuseUnfinishedRestore(links));
    await warnOfLoss(links.commands, log);
    const newId = Buffer.from(restore?.newId ?? randomUUID());
    const id = (await setOnce(links, 'id', newId)).toString();
    return createSharedRedis(links, id);
  } catch (error) {
    await links?.close();
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the ledger ${withoutRedisLogin(url)} ${reason}`, { cause: error });
  }
}

function createSharedRedis(links: RedisConnections, id: string): SharedRedis {
  let writeTokens = NO_LEADER;
  const watch = watchIdentity(links, id);
  const ledger = openRedisLedger({ links, leadership: () => writeTokens });
  const leases = new ProcessLeases(links.commands, links.prefix);
  return {
    ledger,
    links,
    identity: redisIdentity(links, id),
    withStartLock: (work) => leases.with(START, work),
    lost: watch.lost,
    useWriteTokens: (tokens) => void (writeTokens = tokens),
    finishRestore: () => finishRestore(links),
    async close() {
      watch.close();
      await ledger.close();
      await links.close();
    },
  };
}

function redisIdentity(links: RedisConnections, id: string): LedgerIdentity {
  return {
    id,
    storedIn: 'service',
    folder: async () => (await links.commands.get(`${links.prefix}folder`)) ?? undefined,
    tie: async (folderId) => String(await setOnce(links, 'folder', Buffer.from(folderId))),
    secret: (proposal) => setOnce(links, 'secret', proposal),
  };
}

/** Sets a value unless it is set, and returns the stored one, which is the same for all processes. */
async function setOnce({ commands, prefix }: RedisConnections, name: string, proposal: Buffer) {
  await commands.set(`${prefix}${name}`, proposal, 'NX');
  const value = await commands.getBuffer(`${prefix}${name}`);
  if (value === null) throw new Error('does not have a value that was just written to it');
  return value;
}

async function connectWithin({ commands }: RedisConnections, withinMs: number): Promise<void> {
  let reason = 'it does not answer';
  commands.on('error', (error: NodeJS.ErrnoException) => {
    reason = error.message || (error.code ?? reason);
  });
  // When access is refused, ioredis emits an error event and tries again, so the error of the ping is not enough.
  const isReachable = await completesWithin(withinMs, commands.ping()).catch((error: Error) => {
    reason = error.message;
    return false;
  });
  if (!isReachable) throw new Error(`cannot be used: ${reason}`);
}

async function refuseOtherVersion(links: RedisConnections): Promise<void> {
  const version = (await setOnce(links, 'schema', Buffer.from(SCHEMA))).toString();
  if (version === SCHEMA) return;
  throw new Error(
    `was written by another version of Holdover (schema ${version}, this one has ${SCHEMA}): use that version, or ` +
      'another Redis',
  );
}

/**
 * The scripts and transactions name keys of several slots, which a node of a Redis Cluster refuses. An evicted key is
 * a lost record.
 */
async function refuseUnfit({ commands }: RedisConnections): Promise<void> {
  // A hosted Redis may refuse INFO.
  const info = await commands.info().catch(() => '');
  if (info.includes('cluster_enabled:1')) throw new Error(CLUSTER);
  const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
  if (policy === 'noeviction') return;
  throw new Error(
    `may evict records (maxmemory-policy ${policy}): set maxmemory-policy noeviction`,
  );
}

const CLUSTER = 'is a node of a Redis Cluster: use a Redis that is in none';

async function refuseUnfinishedRestore({ commands, prefix }: RedisConnections): Promise<void> {
  if ((await commands.exists(`${prefix}${RESTORE_KEY}`)) === 0) return;
  throw new Error('has a restore that was interrupted: run "holdover restore" again');
}

/** Warns of settings with which Redis may lose acknowledged data. A hosted Redis may refuse CONFIG: that is logged only. */
async function warnOfLoss(node: Redis, log: Logger): Promise<void> {
  try {
    for (const [setting, should] of Object.entries(DURABLE_SETTINGS)) {
      const [, is] = (await node.config('GET', setting)) as string[];
      if (is === should) continue;
      const facts = { event: 'redis.not_durable', setting, is, should };
      log.warn(facts, 'Redis may lose data that was acknowledged to clients');
    }
  } catch (error) {
    const { message: reason } = error as Error;
    const facts = { event: 'redis.durability_unknown', needed: DURABLE_SETTINGS, reason };
    log.info(facts, 'Redis does not report its durability settings');
  }
}

/** The interval of the check for lost data. Until the check finds the loss, clients may get answers without that data. */
const POLL_MS = 5000;

/**
 * Reads the id of the ledger in Redis at an interval. This is needed because a Redis that has lost its data answers
 * as if it had always been empty. `lost` resolves when the id is missing or is that of another ledger; it never
 * rejects.
 */
function watchIdentity({ commands, prefix }: RedisConnections, id: string) {
  let reportLoss = (_loss: Error): void => {};
  const lost = new Promise<Error>((resolve) => (reportLoss = resolve));
  const check = (found: string | null): void => {
    if (found !== id) reportLoss(new Error(found === null ? EMPTIED : REPLACED));
  };
  const poll = (): void => {
    // `openRedis` logs errors of the connection.
    commands.get(`${prefix}id`).then(check, () => {});
  };
  const timer = setInterval(poll, POLL_MS).unref();
  commands.on('ready', poll);
  const close = (): void => {
    clearInterval(timer);
    commands.off('ready', poll);
  };
  return { lost, close };
}

const EMPTIED = 'redis has lost the data of this ledger';
const REPLACED = 'redis has the data of another ledger now';
