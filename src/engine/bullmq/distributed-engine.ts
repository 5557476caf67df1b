import { type SharedQueue, openSharedServices } from './shared-services.ts';
import type { Engine, EngineOptions } from '../job-engine.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import { createEngine } from '../jobs/create-engine.ts';
import { EventMirrors } from './event-mirrors.ts';
import { Janitor } from './janitor.ts';
import { createRedisJobs, createRedisRuns } from './redis-runs.ts';

const CLOSE_WITHIN_MS = 10_000;

/**
 * Creates the embedded engine over Redis, which several processes share. This process accepts jobs, and runs jobs
 * when `concurrency` is not 0.
 */
export async function createDistributedEngine(
  options: EngineOptions,
  queue: SharedQueue,
): Promise<Engine> {
  const shared = openSharedServices(options, queue);
  const { log, limits, ledger } = options;
  const eventMirrors = new EventMirrors({ ...shared, log });
  const engine = await createEngine(options, {
    ...shared,
    live: createRedisJobs({ ...shared, eventMirrors }),
    runs: createRedisRuns({ ...shared, ledger, log }),
    cleanUp: new Janitor({ shared, limits, ledger, log }),
  });
  return {
    ...engine,
    async close() {
      eventMirrors.close();
      // Closing has a time limit, because commands wait while Redis is unreachable.
      if (!(await completesWithin(CLOSE_WITHIN_MS, engine.close()))) {
        log.warn(
          { event: 'worker.close_timed_out' },
          'Redis is unavailable: other processes take over the running jobs',
        );
      }
      shared.pubsub.close();
    },
  };
}
