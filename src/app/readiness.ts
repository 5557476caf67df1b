import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { monotonicClock } from '../lib/clock.ts';
import { isStorageFull } from '../lib/storage-errors.ts';
import type { RedisConnections } from '../redis/redis.ts';
import type { JobQueueReason } from '../prompts/pending-reason.ts';
import type { NeededParts, PartProblem } from '../v1/health.ts';
import { cachedBriefly } from './process-counts.ts';
import type { Services } from './services.ts';
import type { Store } from './store.ts';

/** A key that no prompt has. Reading it shows that the ledger can be read. */
const NO_PROMPT = 'readyz';
/**
 * The time limit for checking a bucket. It is longer than for other parts, because the client of a bucket retries for
 * some seconds.
 */
const BUCKET_TIMEOUT_MS = 3000;

/** The parts of this server that `/readyz` reports, beside the upstream. */
export function neededParts({ config, storage: { ledger, store } }: Services): NeededParts {
  const { links, files } = store;
  const isEmbedded = config.upstream.kind === 'embedded';
  return {
    ledger: {
      kind: config.ledger.kind,
      check: async () => void (await ledger.prompts.get(NO_PROMPT)),
    },
    ...(isEmbedded && {
      queue: links
        ? { kind: 'redis', ...sharedQueueChecks(links) }
        : { kind: 'process', check: async () => undefined },
    }),
    files: files.bucket
      ? {
          kind: 'bucket',
          check: () => checkBucket(store),
          timeoutMs: BUCKET_TIMEOUT_MS,
        }
      : { kind: 'folder', check: () => checkFolder(store) },
  };
}

/**
 * Returns why a job in the queue of the upstream waits: the reason of `/readyz`, else the delay of
 * this job, busy workers, or a service that has not started it.
 */
export function createJobQueueReason(
  { queue }: NeededParts,
  { upstream }: Services,
): (jobId?: string | null) => Promise<JobQueueReason> {
  const { jobs } = upstream.runner;
  const ofService = async () => ((await jobs.health()).ok ? 'not_started' : 'upstream_unhealthy');
  const ofQueue = async () => (await queue?.check())?.reason ?? 'workers_busy';
  const ask = (): Promise<JobQueueReason> =>
    queue
      ? ofQueue().catch(() => 'queue_unreachable' as const)
      : ofService().catch(() => 'upstream_unhealthy' as const);
  const ofAll = cachedBriefly(ask, Date.now);
  return async (jobId = null) => {
    const reason = await ofAll();
    if (reason !== 'workers_busy' || jobId === null) return reason;
    const isDelayed = (await queue?.isDelayed?.(jobId).catch(() => false)) ?? false;
    return isDelayed ? 'retry_delayed' : reason;
  };
}

/** Checks the shared queue. A queue without workers still takes jobs. */
function sharedQueueChecks(
  links: RedisConnections,
): Pick<NonNullable<NeededParts['queue']>, 'check' | 'isDelayed'> {
  const opened = import('../engine/bullmq/queue-condition.ts').then(
    ({ QueueCondition }) => new QueueCondition(links, monotonicClock),
  );
  return {
    async check() {
      const reason = await (await opened).obstacle();
      return reason && { status: 'degraded', reason };
    },
    isDelayed: async (jobId) => (await opened).isDelayed(jobId),
  };
}

/**
 * Checks the bucket and the folder: files pass through the folder before they are in the bucket.
 */
async function checkBucket(store: Store): Promise<PartProblem | undefined> {
  const [problem, folderId] = await Promise.all([
    checkFolder(store),
    store.files.bucket?.identity.readId('folder.id'),
  ]);
  if (folderId !== store.dir.bucketId) return { status: 'failed', reason: 'lost' };
  return problem;
}

/**
 * Checks the folder. A full disk is reported as degraded: other servers may have the same disk, and
 * all of them can still read.
 */
async function checkFolder({ checkDataDir, dir }: Store): Promise<PartProblem | undefined> {
  try {
    checkDataDir();
  } catch {
    return { status: 'failed', reason: 'lost' };
  }
  const path = join(dir.spool, `readyz-${randomUUID()}`);
  try {
    await writeFile(path, 'readyz');
  } catch (error) {
    if (isStorageFull(error)) return { status: 'degraded', reason: 'full' };
    return { status: 'failed', reason: 'not_writable' };
  } finally {
    await rm(path, { force: true });
  }
  return undefined;
}
