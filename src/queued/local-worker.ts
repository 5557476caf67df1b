import path from 'node:path';
import { createAnswer } from '../engine/answers.ts';
import type { EngineLimits } from '../engine/limits.ts';
import type { LiveJob } from '../engine/live.ts';
import { resolveFiles } from '../engine/resolve.ts';
import { libraryUrl } from '../engine/stores.ts';
import { createWorkerSlot } from '../engine/worker-slot.ts';
import type { QueuedDeps, Shared } from './engine.ts';
import { type Errands, createErrands } from './errand.ts';
import { TAKEN_OVER, fenced } from './fence.ts';
import { type QueueWorker, TAKEOVER, createQueueWorker } from './worker.ts';

/** Runs jobs of the queue in threads of this process, as many as `concurrency` says. */
export function createLocalWorker(deps: QueuedDeps, shared: Shared): QueueWorker | undefined {
  const { ledger, limits, log, nodesModule = libraryUrl() } = deps;
  const { stores, runs, clock } = shared;
  if (limits.concurrency === 0) return undefined;
  const spoolDir = path.resolve(deps.spoolDir);
  const setup = { nodesModule, spoolDir, cacheBytes: limits.cacheBytes };
  const slots = Array.from({ length: limits.concurrency }, () => createWorkerSlot(setup));
  const fence = { ledger, runs, assets: stores.assets, held: (job: LiveJob) => errands.held(job) };
  const begin = async (job: LiveJob): Promise<void> => {
    const held = errands.held(job);
    if (held === undefined || (await runs.begin(held)) === 'stale') throw new Error(TAKEN_OVER);
  };
  const errands: Errands = createErrands({
    ...stores,
    ledger,
    runs,
    slots,
    clock,
    log,
    retentionMs: limits.retentionMs,
    runner: {
      ...runnerLimits(limits),
      nodes: deps.nodes,
      clock,
      log,
      resolve: (job) => resolveFiles(job, stores.filesOf(job.user)),
      answer: fenced(createAnswer({ ...stores, begin }), fence),
    },
  });
  const { concurrency } = limits;
  const takeover = { ...TAKEOVER, ...deps.takeover };
  const worker = createQueueWorker({ ...shared, errands, concurrency, takeover, log });
  return {
    start() {
      for (const slot of slots) slot.warm();
      worker.start();
    },
    async close() {
      await worker.close();
      await Promise.all(slots.map((slot) => slot.kill()));
    },
  };
}

function runnerLimits({ jobTimeMs, jobMemoryBytes, stopGraceMs }: EngineLimits) {
  return { timeLimitMs: jobTimeMs, memoryLimitBytes: jobMemoryBytes, stopGraceMs };
}
