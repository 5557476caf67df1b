import { type DistributedEngineOptions, openSharedServices } from './shared-services.ts';
import type { Engine } from '../job-engine.ts';
import { type JobFiles, createAssetApi } from '../assets/job-files.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { refuse } from '../../protocol/job-api.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { SharedBlobs } from '../distributed-state/shared-blobs.ts';
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
  const { jobFiles, blobs } = shared;
  const eventMirrors = new EventMirrors({ ...shared, log });
  const engine = await createEngine({
    ...deps,
    ...shared,
    runs: createRedisRuns({ ...shared, ledger, eventMirrors, log }),
    cleanUp: new Janitor({ ...limits, ...shared, ledger, log }),
  });
  return {
    ...engine,
    ...createSharedAssetApi({ jobFiles, blobs, ledger }),
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

/** Another process may be removing the bytes of a known hash. */
function createSharedAssetApi({
  jobFiles: { assets },
  blobs,
  ledger,
}: {
  readonly jobFiles: JobFiles;
  readonly blobs: SharedBlobs;
  readonly ledger: Ledger;
}): ReturnType<typeof createAssetApi> {
  const api = createAssetApi(assets);
  const hasBytes = async (hash: string): Promise<boolean> =>
    (await blobs.sizeOf(hash)) !== undefined;
  return {
    ...api,
    async assetFromHash(caller, request) {
      const created = await api.assetFromHash(caller, request);
      if (!created.ok || (await hasBytes(request.hash))) return created;
      await ledger.assets.remove(created.value.id);
      return refuse(404, 'blob_not_found', 'no bytes with this hash');
    },
  };
}
