import { type DistributedEngineOptions, openSharedServices } from './shared-services.ts';
import type { Engine } from '../job-engine.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import { createEngine } from '../jobs/create-engine.ts';
import { EventMirrors } from './event-mirrors.ts';
import { Janitor } from './janitor.ts';
import { createRedisRuns } from './redis-runs.ts';

const CLOSE_WITHIN_MS = 10_000;

/**
 * The embedded engine in several processes: this one accepts jobs, and runs them when `concurrency`
 * is not 0.
 */
export async function createDistributedEngine(deps: DistributedEngineOptions): Promise<Engine> {
  const shared = openSharedServices(deps);
  const { log, limits, ledger } = deps;
  const eventMirrors = new EventMirrors({ ...shared, log });
  const engine = await createEngine({
    ...deps,
    ...shared,
    runs: createRedisRuns({ ...shared, ledger, eventMirrors, log }),
    cleanUp: new Janitor({ ...limits, ...shared, ledger, log }),
  });
  return {
    ...engine,
    async close() {
      eventMirrors.close();
      // Commands wait for an unavailable Redis; closing does not.
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
