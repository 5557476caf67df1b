import {
  type DistributedEngineOptions,
  openSharedServices,
  type SharedServices,
} from './shared-services.ts';
import type { Engine } from '../job-engine.ts';
import { type JobFiles, createAssetApi } from '../assets/job-files.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { ok, refuse } from '../../protocol/job-api.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { SharedBlobs } from '../distributed-state/shared-blobs.ts';
import { createJobApi } from './job-api.ts';
import { createLocalWorker } from './local-worker.ts';
import { EventMirrors } from './event-mirrors.ts';
import { Janitor } from './janitor.ts';

const CLOSE_WITHIN_MS = 10_000;

/** A process that only runs jobs. */
export function openWorkerProcess(deps: DistributedEngineOptions) {
  const shared = openSharedServices(deps);
  const background = openBackgroundWork(deps, shared);
  return {
    start: (): void => background.start(),
    close: (): Promise<void> => background.close(),
  };
}

function openBackgroundWork(deps: DistributedEngineOptions, shared: SharedServices) {
  const { log, limits, ledger } = deps;
  const janitor = new Janitor({ ...limits, ...shared, ledger, log });
  const worker = createLocalWorker(deps, shared);
  const closeAll = async (): Promise<void> => {
    await worker?.close();
    await janitor.close();
    await shared.queue.close();
  };
  return {
    start() {
      worker?.start();
      janitor.start();
    },
    async close() {
      // Commands wait for an unavailable Redis; closing does not.
      if (!(await completesWithin(CLOSE_WITHIN_MS, closeAll()))) {
        log.warn(
          { event: 'worker.close_timed_out' },
          'Redis is unavailable: other processes take over the running jobs',
        );
      }
      shared.pubsub.close();
    },
  };
}

/**
 * The embedded engine in several processes: this one accepts jobs, and runs them when `concurrency`
 * is not 0.
 */
export async function createDistributedEngine(deps: DistributedEngineOptions): Promise<Engine> {
  const shared = openSharedServices(deps);
  const { log, limits, ledger } = deps;
  const { jobFiles, blobs } = shared;
  const eventMirrors = new EventMirrors({ ...shared, log });
  const background = openBackgroundWork(deps, shared);
  return {
    ...createJobApi({
      ...shared,
      ...limits,
      ledger,
      nodes: deps.nodes,
      fileLookupOf: jobFiles.fileLookupOf,
      eventMirrors,
    }),
    ...createSharedAssetApi({ jobFiles, blobs, ledger }),
    health: async () => ok({ status: 'healthy', upstream: 'embedded' }),
    start: () => background.start(),
    async close() {
      eventMirrors.close();
      await background.close();
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
