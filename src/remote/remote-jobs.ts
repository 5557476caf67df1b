import { rm } from 'node:fs/promises';
import {
  type AssetCalls,
  type Caller,
  type Health,
  type JobApi,
  type Result,
  type StartUpload,
  ok,
} from '../protocol/job-api.ts';
import type { JsonObject } from '../protocol/json.ts';
import { toError, unreachable } from './calls/errors.ts';
import type { UpstreamCapabilities } from './capabilities.ts';
import {
  type RemoteServices,
  type RemoteOptions,
  createRemoteServices,
} from './remote-services.ts';
import { createJobCalls } from './job-calls.ts';
import { readJob } from './schemas.ts';
import { openRemoteContent } from './files/content.ts';
import type { RemoteClient } from './calls/calls.ts';

/** The port for a remote v2 service. */
export interface RemoteJobs extends JobApi {
  /**
   * True when the upstream accepts the caller's key, or its absence. Also true when it cannot be
   * reached.
   */
  acceptsCaller(caller: Caller): Promise<boolean>;
  /**
   * Reads the answer to a submission that was passed through, so that following the job begins with
   * its stream: a read first would miss the events of a short job.
   */
  noteSubmitted(caller: Caller, answer: JsonObject): void;
  /** Sends a file while it still arrives from its client. */
  startUpload: StartUpload;
  /** Returns the discovered capabilities of the upstream. */
  capabilities(): Readonly<UpstreamCapabilities> & { readonly openStreams: number };
  close(): Promise<void>;
}

export function createRemoteJobs(options: RemoteOptions): RemoteJobs {
  const services = createRemoteServices(options);
  const { accounts, client, connections, events, files } = services;
  return {
    ...createJobCalls(services),
    ...createAssetCalls(services),
    noteSubmitted(caller, answer) {
      const account = accounts.of(caller);
      const job = readJob(answer);
      if (!account.ok || !job) return;
      // The answer to a repeated submission is the job as it was at the first one.
      if (events.snapshots.latest(account.value, job.id)) return;
      events.snapshots.store(account.value, job);
    },
    startUpload(caller, upload) {
      const account = accounts.of(caller);
      return account.ok ? files.assets.start(account.value, upload) : undefined;
    },
    health: () => checkHealth(client),
    async acceptsCaller(caller) {
      // The upstream would check the key of this server, which is not the caller's.
      if (options.service.key !== undefined) return true;
      const account = accounts.of(caller);
      return account.ok && services.isAccepted(account.value);
    },
    capabilities: () => ({ ...client.capabilities, openStreams: events.streamSlots.openCount() }),
    async close() {
      await events.sharedStreams.close();
      await Promise.all([connections.close(), files.foreignLinks.close()]);
    },
  };
}

/** A probe of `/readyz` and the page of a job wait for the answer. */
const HEALTH_TIMEOUT_MS = 2000;

/**
 * Checks the health, without a key. A service without this route counts as healthy when it answers
 * at all.
 */
async function checkHealth({ calls, links }: RemoteClient): Promise<Result<Health>> {
  const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
  const outcome = await calls.once(undefined, {
    method: 'GET',
    path: links.target('health'),
    signal,
  });
  if (!outcome.ok) return { ok: false, error: unreachable() };
  const { reply } = outcome;
  if (reply.status >= 500) return { ok: false, error: { ...toError(reply), status: 503 } };
  return ok({ status: 'healthy', upstream: 'remote' });
}

function createAssetCalls(services: RemoteServices): AssetCalls {
  const { accounts, client, files } = services;
  const { assets, uploadPaths } = files;
  return {
    async createAsset(caller, upload) {
      try {
        const { filePath, file } = upload;
        const uploadPath = uploadPaths.pathOf({ user: caller.user, filePath, hash: file.hash });
        return await accounts.with(caller, (account) =>
          assets.create(account, { ...upload, filePath: uploadPath }),
        );
      } finally {
        // The file is not needed any more when the upload was sent or refused.
        await rm(upload.file.path, { force: true });
      }
    },
    assetFromHash(caller, request) {
      const { filePath, hash } = request;
      const uploadPath = filePath && {
        filePath: uploadPaths.pathOf({ user: caller.user, filePath, hash }),
      };
      return accounts.with(caller, (account) =>
        assets.fromHash(account, { ...request, ...uploadPath }),
      );
    },
    hasBlob: (caller, hash) => accounts.with(caller, (account) => assets.hasBlob(account, hash)),
    asset: (caller, assetId) => accounts.with(caller, (account) => assets.get(account, assetId)),
    deleteAsset: (caller, assetId) =>
      accounts.with(caller, (account) => assets.remove(account, assetId)),
    content: (caller, assetId, range) =>
      accounts.with(caller, (account) =>
        openRemoteContent({ ...client, ...files }, { account, assetId, range }),
      ),
  };
}
