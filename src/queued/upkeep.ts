import { randomUUID } from 'node:crypto';
import { type Keeper, createKeeper } from '../engine/keeper.ts';
import { sweep } from '../engine/retention.ts';
import type { Stores } from '../engine/stores.ts';
import type { JobRow, Ledger } from '../ledger/ledger.ts';
import type { Redis } from '../redis.ts';
import type { Logger } from '../telemetry.ts';
import { isJsonObject, parseJson } from '../wire/json.ts';
import type { SharedBlobs } from './files.ts';
import type { Keys } from './keys.ts';
import { type JobStatus, IS_TERMINAL } from '../wire/v2.ts';
import type { Runs } from './runs.ts';
import { UNLOCK, runScript } from './scripts.ts';
import type { Tickets } from './tickets.ts';

const LOCK_MS = 5 * 60_000;
const UNRECORDED_EVERY_MS = 60 * 60_000;
/** Whoever uses a job's files that are about to go has that long to extend their life. */
const MERCY_MS = 60_000;

export type UpkeepDeps = {
  readonly redis: Redis;
  readonly keys: Keys;
  readonly ledger: Ledger;
  readonly stores: Stores;
  readonly blobs: SharedBlobs;
  readonly tickets: Tickets;
  readonly runs: Pick<Runs, 'enter' | 'waiting' | 'held' | 'drop'>;
  readonly assetBudgetBytes: number;
  readonly sweepIntervalMs: number;
  readonly clock: () => number;
  readonly log: Logger;
};

/** Clears up for all processes, in one of them at a time. */
export function createUpkeep(deps: UpkeepDeps): Keeper {
  const { redis, keys, ledger, tickets, runs, blobs, stores, clock } = deps;

  /** A process that died between the ledger and the queue left a job without a place or a ticket. */
  async function reissue(rows: readonly JobRow[]): Promise<void> {
    for (const row of rows) await runs.enter(row);
    if (rows.length === 0) return;
    await tickets.add(rows);
    await tickets.fill(await runs.waiting());
  }

  /** A worker that died behind the end of a job has it no more: it would count for its user. */
  async function dropEnded(live: ReadonlySet<string>): Promise<void> {
    for (const id of await runs.held()) {
      const row = live.has(id) ? undefined : await ledger.jobs.get(id);
      const isOver = row === undefined || IS_TERMINAL[row.status as JobStatus];
      if (!live.has(id) && isOver) await runs.drop(id);
    }
  }

  async function clearUp(): Promise<void> {
    const rows = await ledger.jobs.unfinished();
    await reissue(rows);
    const ids = new Set(rows.map(({ id }) => id));
    await dropEnded(ids);
    const read = new Set(rows.flatMap(readsOf));
    await sweep({
      ...stores,
      ledger,
      assetBudgetBytes: deps.assetBudgetBytes,
      clock: () => clock() - MERCY_MS,
      isRead: (id) => read.has(id),
      isLive: (id) => ids.has(id),
    });
    await blobs.settle();
    const isTime = await redis.set(keys.orphans, '1', 'PX', UNRECORDED_EVERY_MS, 'NX');
    if (isTime === 'OK') await blobs.removeUnrecorded();
  }

  async function chore(): Promise<void> {
    // In a Redis that was emptied no file has a record: all would be removed.
    if ((await redis.exists(keys.ledger)) === 0) return;
    const holder = randomUUID();
    if ((await redis.set(keys.upkeep, holder, 'PX', LOCK_MS, 'NX')) !== 'OK') return;
    try {
      await clearUp();
    } finally {
      await runScript(redis, UNLOCK, { keys: [keys.upkeep], args: [holder] });
    }
  }

  const keeper = createKeeper(chore, { log: deps.log, everyMs: deps.sweepIntervalMs });
  return {
    // The process that starts may be the one that died; the lock of one that died in a sweep holds for long.
    start: (first) =>
      keeper.start(async () => {
        await first();
        await reissue(await ledger.jobs.unfinished());
      }),
    close: () => keeper.close(),
  };
}

/** Files the jobs that are not over are still to read. */
export function readsOf(row: JobRow): readonly string[] {
  const extras = row.extrasJson === null ? undefined : parseJson(row.extrasJson);
  const reads = isJsonObject(extras) ? extras['reads'] : [];
  return Array.isArray(reads) ? (reads as readonly string[]) : [];
}
