import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { monotonicClock } from '../lib/clock.ts';
import { isStorageFull } from '../lib/storage-errors.ts';
import type { RedisConnections } from '../redis/redis.ts';
import type { JobQueueReason } from '../prompts/pending-reason.ts';
import type { NeededParts, PartProblem } from '../v1/health.ts';
import { remembered } from './process-counts.ts';
import type { Services } from './services.ts';
import type { Store } from './store.ts';

/** No prompt has it: reading it shows that the ledger can be read. */
const NO_PROMPT = 'readyz';
/** A bucket is farther away than the other parts, and its client tries again for some seconds. */
const BUCKET_TIMEOUT_MS = 3000;

/** The parts of this server that `/readyz` tells of, beside the upstream. */
export function neededParts({ config, ledger, store }: Services): NeededParts {
  const { links, files } = store;
  const isEmbedded = config.upstream.kind === 'embedded';
  return {
    ledger: {
      kind: config.ledger.kind,
      check: async () => void (await ledger.prompts.get(NO_PROMPT)),
    },
    ...(isEmbedded && {
      queue: links
        ? { kind: 'redis', check: sharedQueueCheck(links) }
        : { kind: 'process', check: async () => undefined },
    }),
    files: files.bucket
      ? {
          kind: 'bucket',
          check: () => checkBucket(store, files.bucket),
          timeoutMs: BUCKET_TIMEOUT_MS,
        }
      : { kind: 'folder', check: () => checkFolder(store) },
  };
}

/** Why the jobs in the queue of the upstream wait: as `/readyz` sees it, else for a worker or the service. */
export function createJobQueueReason(
  { queue }: NeededParts,
  { upstream, now }: Pick<Services, 'upstream' | 'now'>,
): () => Promise<JobQueueReason> {
  const { jobs } = upstream.runner;
  const ofService = async () => ((await jobs.health()).ok ? 'not_started' : 'upstream_unhealthy');
  const ofQueue = async () => (await queue?.check())?.reason ?? 'workers_busy';
  const ask = (): Promise<JobQueueReason> =>
    queue
      ? ofQueue().catch(() => 'queue_unreachable' as const)
      : ofService().catch(() => 'upstream_unhealthy' as const);
  return remembered(ask, now);
}

/** A queue that no worker serves takes jobs all the same. */
function sharedQueueCheck(
  links: RedisConnections,
): () => Promise<PartProblem<JobQueueReason> | undefined> {
  const condition = import('../upstreams/distributed-state/queue-condition.ts').then(
    ({ createQueueCondition }) => createQueueCondition(links, monotonicClock),
  );
  return async () => {
    const reason = await (await condition)();
    return reason && { status: 'degraded', reason };
  };
}

/** Files on their way to a bucket pass through the folder. */
async function checkBucket(
  store: Store,
  bucket: Store['files']['bucket'],
): Promise<PartProblem | undefined> {
  const [problem, folderId] = await Promise.all([
    checkFolder(store),
    bucket?.identity.readId('folder.id'),
  ]);
  if (folderId !== store.dir.bucketId) return { status: 'failed', reason: 'lost' };
  return problem;
}

/** Other replicas may have the same disk, and all of them still read: a full one is not away. */
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
