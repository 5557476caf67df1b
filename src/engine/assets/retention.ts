import type { AssetRow } from '../../ledger/ledger.ts';
import { type AssetOptions, type Assets, removeBlobIfUnused } from './assets.ts';
import { IMPORTED, isImported } from '../imported-asset.ts';
import type { EngineLimits } from '../job-engine.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import type { StoredOutput } from '../jobs/worker-protocol.ts';

const KEY_LIFETIME_MS = 24 * 60 * 60 * 1000;
/** The number of assets that one sweep considers when the disk budget is exceeded. */
const BUDGET_BATCH = 1000;

export type RetentionOptions = AssetOptions & {
  readonly assets: Assets;
  readonly limits: Pick<EngineLimits, 'assetBudgetBytes'>;
  readonly isLive: (jobId: string) => boolean | Promise<boolean>;
};

/**
 * Removes everything past its retention: jobs with their outputs, assets, idempotency keys, and
 * bytes above the budget.
 */
export async function sweep(deps: RetentionOptions): Promise<void> {
  const nowMs = deps.clock.now();
  for (const row of await deps.ledger.jobs.expiredBy(nowMs)) await expireJob(row.id, deps);
  for (const row of await deps.ledger.assets.expiredBy(nowMs)) {
    await deps.assets.removeUnused(row, deps.isInUse);
  }
  await deps.ledger.keys.expire(nowMs - KEY_LIFETIME_MS);
  await enforceBudget(deps);
}

/**
 * Removes bytes with a marker and without a record: a process crashed, or could not write. Other
 * bytes without a record stay, as their ledger may have been lost. So do bytes that got their
 * marker at `beforeMs` or later: another process may be recording them.
 */
export async function removeUnrecorded(
  deps: Pick<RetentionOptions, 'ledger' | 'blobs' | 'withLock'>,
  beforeMs = Infinity,
): Promise<void> {
  await deps.blobs.removeAbandoned();
  for await (const { hash, sinceMs } of deps.blobs.listUnrecorded()) {
    if (sinceMs < beforeMs) await deps.withLock(hash, () => removeBlobIfUnused(hash, deps));
  }
}

/**
 * Removes a job past its retention. A rerun from the cache may have extended the job meanwhile, as
 * it lists this job's outputs as its own. A job stays while an unfinished job reads its outputs.
 */
async function expireJob(
  id: string,
  { ledger, assets, withLock, clock, isInUse }: RetentionOptions,
): Promise<void> {
  await withLock(jobLock(id), async () => {
    const row = await ledger.jobs.get(id);
    if (!row || row.expiresAtMs > clock.now()) return;
    const outputs = await ledger.assets.ofJob(id);
    for (const output of outputs) if (await isInUse(output.id)) return;
    for (const output of outputs) if (!(await assets.removeUnused(output, isInUse))) return;
    await ledger.jobs.remove(id);
  });
}

/** Removes temporary files first, then the oldest ones, but none that an unfinished job needs. */
async function enforceBudget(deps: RetentionOptions): Promise<void> {
  const isOver = async (): Promise<boolean> =>
    (await deps.ledger.assets.totalBytes()) > deps.limits.assetBudgetBytes;
  if (!(await isOver())) return;
  const rows = await oldestRemovable(deps);
  const temporary = rows.filter(isTemporary);
  for (const row of [...temporary, ...rows.filter((other) => !isTemporary(other))]) {
    if (!(await isOver())) return;
    // Jobs were submitted while other assets were removed.
    if (await isRemovable(row, deps)) await deps.assets.removeUnused(row, deps.isInUse);
  }
}

/**
 * Returns a batch of removable assets. Imported files may be the oldest thousands, so it searches
 * past them.
 */
async function oldestRemovable(deps: RetentionOptions): Promise<readonly AssetRow[]> {
  for (let limit = BUDGET_BATCH; ; limit *= 4) {
    const rows = await deps.ledger.assets.oldest(limit);
    const removable: AssetRow[] = [];
    for (const row of rows) if (await isRemovable(row, deps)) removable.push(row);
    if (removable.length >= BUDGET_BATCH || rows.length < limit)
      return removable.slice(0, BUDGET_BATCH);
  }
}

async function isRemovable(row: AssetRow, deps: RetentionOptions): Promise<boolean> {
  if (await deps.isInUse(row.id)) return false;
  if (row.jobId !== null && (await deps.isLive(row.jobId))) return false;
  // An imported file stays as long as its v1 name refers to it.
  if (!isImported(row)) return true;
  return (await deps.ledger.files.byAsset(row.user, row.id)) === undefined;
}

function isTemporary(row: AssetRow): boolean {
  return row.filePath.startsWith('temp/');
}

/** Counts the bytes of imported files, each hash once. No sweep removes them. */
export async function importedBytes({ ledger }: RetentionOptions): Promise<number> {
  const rows = await ledger.assets.ofJob(IMPORTED);
  const sizes = new Map(rows.map(({ hash, sizeBytes }) => [hash, sizeBytes]));
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

/** Returns the name of the lock for the row of one job. */
export function jobLock(jobId: string): string {
  return `job ${jobId}`;
}

/**
 * The retention of outputs that a later job reuses from the cache is stored as the `expires_at` of
 * the job that made them, so it survives a restart.
 */
type ReuseOptions = Pick<RetentionOptions, 'ledger' | 'withLock'>;

/** Returns the ids of the outputs that still exist, and retains these for the full time from now. */
export async function retainOutputs(
  outputs: readonly StoredOutput[],
  user: string,
  { untilMs, ...deps }: ReuseOptions & { readonly untilMs: number },
): Promise<readonly string[]> {
  const retained: string[] = [];
  for (const { id, job_id: producer } of outputs) {
    const isExtended = await extendTo(producer, untilMs, deps);
    const row = isExtended ? await deps.ledger.assets.get(id) : undefined;
    if (row?.user === user) retained.push(id);
  }
  return retained;
}

/** Retains the jobs whose outputs this job lists, at least as long as this job. */
export async function extendProducers(job: LiveJob, deps: ReuseOptions): Promise<void> {
  const producers = new Set(job.outputs.map((output) => output.job_id));
  for (const producer of producers) {
    if (producer !== job.id) await extendTo(producer, job.expiresAtMs, deps);
  }
}

function extendTo(
  jobId: string,
  untilMs: number,
  { ledger, withLock }: ReuseOptions,
): Promise<boolean> {
  return withLock(jobLock(jobId), async () => {
    const row = await ledger.jobs.get(jobId);
    if (row && row.expiresAtMs < untilMs) await ledger.jobs.update(jobId, { expiresAtMs: untilMs });
    return row !== undefined;
  });
}
