import { monotonicNow } from '../../lib/clock.ts';
import { rm } from 'node:fs/promises';
import type { Logger } from '../../observability/log.ts';
import {
  type Caller,
  type JobApi,
  type Result,
  type SubmitRequest,
  isGone,
  ok,
} from '../../protocol/job-api.ts';
import { isJsonObject } from '../../protocol/json.ts';
import type { Graph, Job } from '../../protocol/v2.ts';
import { type Account, type Accounts, type Credential, createAccounts } from './accounts.ts';
import { type CredentialCheck, createCredentialCheck } from './credential-check.ts';
import { type RemoteAssets, createAssets } from '../remote-files/assets.ts';
import { type Calls, createCalls } from './calls.ts';
import { openContent } from '../remote-files/content.ts';
import {
  type ForeignLinks,
  type RedirectHost,
  createForeignLinks,
} from '../remote-files/foreign-links.ts';
import { invalidAnswer, toError, unreachable } from './errors.ts';
import { type UpstreamCapabilities, unknownCapabilities } from './capabilities.ts';
import { DEFAULT_REMOTE_LIMITS, type RemoteLimits } from './limits.ts';
import { type UpstreamLinks, createLinks } from './upstream-links.ts';
import { type UploadPaths, createUploadPaths } from '../remote-files/upload-paths.ts';
import { type Connections, createConnections } from './connections.ts';
import { type Recovery, createRecovery } from './recovery.ts';
import { redactError } from './redact.ts';
import { type OutputIds, createOutputIds } from '../remote-files/output-ids.ts';
import { readJob, readWorkflow } from './schemas.ts';
import { createStreamSlots } from '../remote-events/stream-slots.ts';
import { warnIgnoredCancel } from './ignored-cancel.ts';
import { createCheckRate } from '../remote-events/silence-watch.ts';
import { type Snapshots, createSnapshots } from '../remote-events/snapshots.ts';
import type { SubmitFormat } from './submit-body.ts';
import { submitJob } from './submit.ts';
import { type SharedStreams, createSharedStreams } from '../remote-events/shared-streams.ts';
import { namesNoFile } from '../remote-files/file-references.ts';

export type RemoteOptions = {
  /** Of the service; `/api/v2` is appended unless it ends so. */
  readonly baseUrl: string;
  readonly credential: Credential;
  /** Hides uploads of one user from the others, where the upstream does not. */
  readonly uploadPathSecret?: Buffer;
  readonly log: Logger;
  readonly limits?: Partial<RemoteLimits>;
  readonly assetMode?: 'auto' | 'object' | 'string';
  /** How labels are written; `auto` finds out. */
  readonly labels?: 'auto' | 'map' | 'string' | 'none';
  /** Private hosts its redirects may lead to, beside the service itself. */
  readonly redirectHosts?: readonly RedirectHost[];
  /**
   * True while a client watches the job: watched jobs get streams first and are polled more often.
   */
  readonly isWatched?: (user: string, jobId: string) => boolean;
  readonly clock?: () => number;
};

/** A remote v2 service behind the port. */
export interface RemoteJobs extends JobApi {
  /**
   * True when the upstream accepts the caller's key, or the absence of one. True when it cannot be
   * reached.
   */
  acceptsCaller(caller: Caller): Promise<boolean>;
  /** The folder an upload of a user lies in, of its own. */
  uploadFolderOf: UploadPaths['folderOf'];
  /** The discovered capabilities of the upstream. */
  capabilities(): Readonly<UpstreamCapabilities> & { readonly openStreams: number };
  close(): Promise<void>;
}

/** The contract allows more in places; no known server refuses six. */
const MAX_STREAMS = 6;

export function createRemoteJobs(options: RemoteOptions): RemoteJobs {
  const services = assemble(options);
  const { streamSlots, capabilities, sharedStreams, connections } = services;
  return {
    ...createJobCalls(services),
    ...createAssetCalls(services),
    health: () => checkHealth(services),
    uploadFolderOf: (upload) => services.uploadPaths.folderOf(upload),
    async acceptsCaller(caller) {
      // With a key of our own it is ours that counts, and callers are not to blame for it.
      if (options.credential.mode === 'fixed') return true;
      const account = services.accounts.of(caller);
      return account.ok && services.credentialCheck.isAccepted(account.value);
    },
    capabilities: () => ({ ...capabilities, openStreams: streamSlots.openCount() }),
    async close() {
      await sharedStreams.close();
      await Promise.all([connections.close(), services.foreignLinks.close()]);
    },
  };
}

type RemoteServices = {
  readonly options: RemoteOptions;
  readonly limits: RemoteLimits;
  readonly clock: () => number;
  readonly log: Logger;
  readonly links: UpstreamLinks;
  readonly connections: Connections;
  readonly foreignLinks: ForeignLinks;
  readonly accounts: Accounts;
  readonly calls: Calls;
  readonly credentialCheck: CredentialCheck;
  readonly capabilities: UpstreamCapabilities;
  readonly snapshots: Snapshots;
  readonly outputIds: OutputIds;
  readonly recovery: Recovery;
  readonly assets: RemoteAssets;
  readonly uploadPaths: UploadPaths;
  readonly streamSlots: ReturnType<typeof createStreamSlots>;
  readonly sharedStreams: SharedStreams;
};

function assemble(options: RemoteOptions): RemoteServices {
  const { clock = monotonicNow, log, isWatched = () => true } = options;
  const limits = { ...DEFAULT_REMOTE_LIMITS, ...options.limits };
  const links = createLinks(options.baseUrl);
  const connections = createConnections(links.origin, limits);
  const capabilities = unknownCapabilities();
  if (options.assetMode === 'object' || options.assetMode === 'string')
    capabilities.assetMode = options.assetMode;
  if (options.labels && options.labels !== 'auto') capabilities.labels = options.labels;
  const calls = createCalls({ connections, limits, clock, log, capabilities });
  const snapshots = createSnapshots({ calls, links, limits, clock });
  const streamSlots = createStreamSlots({ max: Math.min(limits.maxStreams, MAX_STREAMS), clock });
  const checkRate = createCheckRate({ ...limits.streamChecks, clock: () => performance.now() });
  const outputIds = createOutputIds({ snapshots });
  const common = {
    calls,
    links,
    snapshots,
    capabilities,
    limits,
    clock,
    log,
    streamSlots,
    checkRate,
    outputIds,
  };
  return {
    ...common,
    options,
    connections,
    foreignLinks: createForeignLinks(links.origin, limits, { hosts: options.redirectHosts ?? [] }),
    accounts: createAccounts(options.credential, {
      clock,
      maxConcurrentSubmissions: limits.submitsAtOnce,
    }),
    credentialCheck: createCredentialCheck({ ...common, timeoutMs: limits.discoverTimeoutMs }),
    recovery: createRecovery(common),
    assets: createAssets(common),
    uploadPaths: createUploadPaths(options.uploadPathSecret),
    sharedStreams: createSharedStreams({ ...common, isWatched }),
  };
}

type JobCalls = Pick<
  RemoteJobs,
  'submit' | 'recover' | 'get' | 'workflow' | 'events' | 'cancel' | 'list'
>;

function createJobCalls(services: RemoteServices): JobCalls {
  const { accounts, calls, snapshots, recovery, sharedStreams, uploadPaths } = services;
  const forAccount = withAccount(accounts);
  return {
    submit: (caller, request) =>
      forAccount(caller, async (account) => {
        if (namesNoFile(request)) return submit(services, account, request);
        const workflow = uploadPaths.rewriteWorkflow(request.workflow, caller.user);
        return submit(services, account, withWorkflow(request, workflow));
      }),
    recover: (caller, lost) =>
      forAccount(caller, async (account) => {
        const recovered = await recovery.find(account, {
          ...lost,
          workflow: uploadPaths.rewriteWorkflow(lost.workflow, caller.user),
        });
        if (!recovered.ok) return recovered;
        const secrets = Object.values(lost.extraData ?? {});
        const { job, isListed } = recovered.value;
        const guarded = job && snapshots.storeSecrets(account, job, secrets);
        return ok({ job: guarded, isCertain: false, isListed });
      }),
    get: (caller, jobId) => forAccount(caller, (account) => snapshots.get(account, jobId)),
    list: (caller, query) => forAccount(caller, (account) => recovery.list(account, query)),
    events: (caller, jobId, signal) =>
      forAccount(caller, (account) => sharedStreams.events(account, { caller, jobId, signal })),
    workflow: (caller, jobId) =>
      forAccount(caller, async (account) => {
        const path = `${snapshots.target(account, jobId, 'self')}/workflow`;
        const answer = await calls.callIdempotent(account, { method: 'GET', path });
        if (!answer.ok) return answer;
        const read = readWorkflow(answer.value.json);
        return read ? ok(read) : invalidAnswer();
      }),
    cancel: (caller, jobId) =>
      forAccount(caller, async (account) => {
        // Its links come with it.
        if (!snapshots.latest(account, jobId)) {
          const read = await snapshots.get(account, jobId);
          if (!read.ok) return read;
        }
        const path = snapshots.target(account, jobId, 'cancel');
        const answer = await calls.callIdempotent(account, { method: 'POST', path });
        if (!answer.ok) {
          if (isGone(answer.error)) await snapshots.confirm(account, jobId);
          return answer;
        }
        const job = readJob(answer.value.json);
        if (!job) return snapshots.refresh(account, jobId);
        // Removed from the queue, or between two lists of the server: the next answer decides.
        if (job.status === 'expired') return snapshots.confirm(account, jobId);
        if (job.status === 'queued') warnIgnoredCancel(services);
        return ok(snapshots.store(account, job));
      }),
  };
}

/** The keys a prompt was sent with are removed from everything the service returns. */
async function submit(
  services: RemoteServices,
  account: Account,
  request: SubmitRequest,
): Promise<Result<Job>> {
  const format = await submitFormatFor(services, request);
  const submitted = await submitJob(services, { account, request, format });
  const secrets = Object.values(request.extraData);
  if (!submitted.ok) return { ok: false, error: redactError(submitted.error, secrets) };
  return ok(services.snapshots.storeSecrets(account, submitted.value, secrets));
}

/** The prepared JSON text is of the old workflow, so it is left out. */
function withWorkflow(request: SubmitRequest, workflow: Graph): SubmitRequest {
  const { extraData, idempotencyKey, metadata, order, provenance } = request;
  return {
    workflow,
    extraData,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(metadata && { metadata }),
    ...(order !== undefined && { order }),
    ...(provenance && { provenance }),
  };
}

type AssetCalls = Pick<
  RemoteJobs,
  'createAsset' | 'assetFromHash' | 'hasBlob' | 'asset' | 'deleteAsset' | 'content'
>;

function createAssetCalls(services: RemoteServices): AssetCalls {
  const { accounts, assets, uploadPaths } = services;
  const forAccount = withAccount(accounts);
  return {
    async createAsset(caller, upload) {
      try {
        const { filePath, file } = upload;
        const uploadPath = uploadPaths.pathOf({ user: caller.user, filePath, hash: file.hash });
        return await forAccount(caller, (account) =>
          assets.create(account, { ...upload, filePath: uploadPath }),
        );
      } finally {
        // Neither a sent nor a refused upload needs its file any more.
        await rm(upload.file.path, { force: true });
      }
    },
    assetFromHash(caller, request) {
      const { filePath, hash } = request;
      const uploadPath = filePath && {
        filePath: uploadPaths.pathOf({ user: caller.user, filePath, hash }),
      };
      return forAccount(caller, (account) =>
        assets.fromHash(account, { ...request, ...uploadPath }),
      );
    },
    hasBlob: (caller, hash) => forAccount(caller, (account) => assets.hasBlob(account, hash)),
    asset: (caller, assetId) => forAccount(caller, (account) => assets.get(account, assetId)),
    deleteAsset: (caller, assetId) =>
      forAccount(caller, (account) => assets.remove(account, assetId)),
    content: (caller, assetId, range) =>
      forAccount(caller, (account) =>
        openContent(services, { account, assetId, ...(range && { range }) }),
      ),
  };
}

function withAccount(accounts: Accounts) {
  return async <T>(
    caller: Caller,
    work: (account: Account) => Promise<Result<T>>,
  ): Promise<Result<T>> => {
    const account = accounts.of(caller);
    return account.ok ? work(account.value) : account;
  };
}

async function submitFormatFor(
  services: RemoteServices,
  request: SubmitRequest,
): Promise<SubmitFormat> {
  const { assetMode, labels, authToken } = services.capabilities;
  const wantsVendor = request.order !== undefined || request.provenance !== undefined;
  return {
    assetMode,
    labels,
    authToken,
    vendorFields: wantsVendor && (await isHoldover(services)),
  };
}

/** Only a Holdover with its own engine reports `embedded` as its upstream. */
async function isHoldover({
  calls,
  links,
  capabilities,
  limits,
  clock,
}: RemoteServices): Promise<boolean> {
  if (capabilities.holdover && clock() < capabilities.holdover.untilMs)
    return capabilities.holdover.isOne;
  const path = links.target('health');
  const timeoutMs = limits.discoverTimeoutMs;
  const outcome = await calls.once(undefined, { method: 'GET', path, timeoutMs });
  const json = outcome.kind === 'reply' ? outcome.reply.json : undefined;
  const isOne = isJsonObject(json) && json['upstream'] === 'embedded';
  capabilities.holdover = { isOne, untilMs: clock() + limits.discoverAgainMs };
  return isOne;
}

/** Sent without a key. A service without this route counts as healthy when it answers at all. */
async function checkHealth({ calls, links }: RemoteServices): ReturnType<JobApi['health']> {
  const outcome = await calls.once(undefined, { method: 'GET', path: links.target('health') });
  if (outcome.kind === 'lost') return { ok: false, error: unreachable() };
  const { reply } = outcome;
  if (reply.status >= 500) return { ok: false, error: { ...toError(reply), status: 503 } };
  return ok({ status: 'healthy', upstream: 'remote' });
}
