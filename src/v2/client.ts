import { steadyNow } from '../lib/steady-clock.ts';
import { rm } from 'node:fs/promises';
import type { Logger } from '../telemetry.ts';
import {
  type Caller,
  type JobApi,
  type Result,
  type SubmitRequest,
  isGone,
  ok,
} from '../wire/jobs.ts';
import { isJsonObject } from '../wire/json.ts';
import type { Graph, Job } from '../wire/v2.ts';
import { type Account, type Accounts, type Credential, createAccounts } from './accounts.ts';
import { type Admission, createAdmission } from './admission.ts';
import { type RemoteAssets, createAssets } from './assets.ts';
import { type Calls, createCalls } from './call.ts';
import { openContent } from './content.ts';
import { type Elsewhere, type RedirectHost, createElsewhere } from './elsewhere.ts';
import { badAnswer, toError, unreachable } from './errors.ts';
import { type Facts, noFacts } from './facts.ts';
import { DEFAULT_REMOTE_LIMITS, type RemoteLimits } from './limits.ts';
import { type UpstreamLinks, createLinks } from './links.ts';
import { type Places, createPlaces } from './places.ts';
import { type Connections, createConnections } from './pool.ts';
import { type Recovery, createRecovery } from './recover.ts';
import { redactError } from './redact.ts';
import { type Renewals, createRenewals } from './renewals.ts';
import { readJob, readWorkflow } from './schemas.ts';
import { createSeats } from './seats.ts';
import { noteIgnoredCancel } from './ignored-cancel.ts';
import { createAskRate } from './silence.ts';
import { type Snapshots, createSnapshots } from './snapshots.ts';
import type { Spelling } from './submit-body.ts';
import { submitJob } from './submit.ts';
import { type Watches, createWatches } from './watch.ts';
import { namesNoFile } from './workflow.ts';

export type RemoteDeps = {
  /** Of the service; `/api/v2` is appended unless it ends so. */
  readonly baseUrl: string;
  readonly credential: Credential;
  /** Hides uploads of one user from the others, where the upstream does not. */
  readonly placeSecret?: Buffer;
  readonly log: Logger;
  readonly limits?: Partial<RemoteLimits>;
  readonly assetMode?: 'auto' | 'object' | 'string';
  /** How labels are written, when that is known in advance. */
  readonly labels?: 'auto' | 'map' | 'string' | 'none';
  /** Private hosts its redirects may lead to, beside the service itself. */
  readonly redirectHosts?: readonly RedirectHost[];
  /** Whether somebody looks at a job right now: those are streamed first and polled more often. */
  readonly isWatched?: (user: string, jobId: string) => boolean;
  readonly clock?: () => number;
};

/** A remote v2 service behind the port. */
export interface RemoteJobs extends JobApi {
  /** Whether the upstream takes the key of this caller, or the absence of one; if nobody can tell, yes. */
  admits(caller: Caller): Promise<boolean>;
  /** The folder an upload of a user lies in, of its own. */
  uploadFolderOf: Places['folderOf'];
  /** What the upstream turned out to be. */
  facts(): Readonly<Facts> & { readonly openStreams: number };
  close(): Promise<void>;
}

/** The contract allows more somewhere; six is what no known server refuses. */
const MOST_STREAMS = 6;

export function createRemoteJobs(deps: RemoteDeps): RemoteJobs {
  const parts = assemble(deps);
  const { seats, facts, watches, connections } = parts;
  return {
    ...createJobHalf(parts),
    ...createAssetHalf(parts),
    health: () => askHealth(parts),
    uploadFolderOf: (upload) => parts.places.folderOf(upload),
    async admits(caller) {
      // With a key of our own it is ours that counts, and callers are not to blame for it.
      if (deps.credential.mode === 'fixed') return true;
      const account = parts.accounts.of(caller);
      return account.ok && parts.admission.admits(account.value);
    },
    facts: () => ({ ...facts, openStreams: seats.open() }),
    async close() {
      await watches.close();
      await Promise.all([connections.close(), parts.elsewhere.close()]);
    },
  };
}

type Parts = {
  readonly deps: RemoteDeps;
  readonly limits: RemoteLimits;
  readonly clock: () => number;
  readonly log: Logger;
  readonly links: UpstreamLinks;
  readonly connections: Connections;
  readonly elsewhere: Elsewhere;
  readonly accounts: Accounts;
  readonly calls: Calls;
  readonly admission: Admission;
  readonly facts: Facts;
  readonly snapshots: Snapshots;
  readonly renewals: Renewals;
  readonly recovery: Recovery;
  readonly assets: RemoteAssets;
  readonly places: Places;
  readonly seats: ReturnType<typeof createSeats>;
  readonly watches: Watches;
};

function assemble(deps: RemoteDeps): Parts {
  const { clock = steadyNow, log, isWatched = () => true } = deps;
  const limits = { ...DEFAULT_REMOTE_LIMITS, ...deps.limits };
  const links = createLinks(deps.baseUrl);
  const connections = createConnections(links.origin, limits);
  const facts = noFacts();
  if (deps.assetMode === 'object' || deps.assetMode === 'string') facts.assetMode = deps.assetMode;
  if (deps.labels && deps.labels !== 'auto') facts.labels = deps.labels;
  const calls = createCalls({ connections, limits, clock, log, facts });
  const snapshots = createSnapshots({ calls, links, limits, clock });
  const seats = createSeats({ max: Math.min(limits.maxStreams, MOST_STREAMS), clock });
  const askRate = createAskRate({ ...limits.streamChecks, clock: () => performance.now() });
  const renewals = createRenewals({ snapshots });
  const common = { calls, links, snapshots, facts, limits, clock, log, seats, askRate, renewals };
  return {
    ...common,
    deps,
    connections,
    elsewhere: createElsewhere(links.origin, limits, { hosts: deps.redirectHosts ?? [] }),
    accounts: createAccounts(deps.credential, { clock, submitsAtOnce: limits.submitsAtOnce }),
    admission: createAdmission({ ...common, timeoutMs: limits.discoverTimeoutMs }),
    recovery: createRecovery(common),
    assets: createAssets(common),
    places: createPlaces(deps.placeSecret),
    watches: createWatches({ ...common, isWatched }),
  };
}

type JobHalf = Pick<
  RemoteJobs,
  'submit' | 'recover' | 'get' | 'workflow' | 'events' | 'cancel' | 'list'
>;

function createJobHalf(parts: Parts): JobHalf {
  const { accounts, calls, snapshots, recovery, watches, places } = parts;
  const as = withAccount(accounts);
  return {
    submit: (caller, asked) =>
      as(caller, async (account) => {
        if (namesNoFile(asked)) return submit(parts, account, asked);
        const workflow = places.inWorkflow(asked.workflow, caller.user);
        return submit(parts, account, rewritten(asked, workflow));
      }),
    recover: (caller, lost) =>
      as(caller, async (account) => {
        const found = await recovery.find(account, {
          ...lost,
          workflow: places.inWorkflow(lost.workflow, caller.user),
        });
        if (!found.ok) return found;
        const own = Object.values(lost.extraData ?? {});
        const { job, isListed } = found.value;
        const guarded = job && snapshots.guard(account, job, own);
        return ok({ job: guarded, isCertain: false, isListed });
      }),
    get: (caller, jobId) => as(caller, (account) => snapshots.get(account, jobId)),
    list: (caller, query) => as(caller, (account) => recovery.list(account, query)),
    events: (caller, jobId, signal) =>
      as(caller, (account) => watches.events(account, { caller, jobId, signal })),
    workflow: (caller, jobId) =>
      as(caller, async (account) => {
        const path = `${snapshots.target(account, jobId, 'self')}/workflow`;
        const answer = await calls.read(account, { method: 'GET', path });
        if (!answer.ok) return answer;
        const read = readWorkflow(answer.value.json);
        return read ? ok(read) : badAnswer();
      }),
    cancel: (caller, jobId) =>
      as(caller, async (account) => {
        // Its links come with it.
        if (!snapshots.known(account, jobId)) {
          const read = await snapshots.get(account, jobId);
          if (!read.ok) return read;
        }
        const path = snapshots.target(account, jobId, 'cancel');
        const answer = await calls.read(account, { method: 'POST', path });
        if (!answer.ok) {
          if (isGone(answer.error)) await snapshots.confirm(account, jobId);
          return answer;
        }
        const job = readJob(answer.value.json);
        if (!job) return snapshots.look(account, jobId);
        // Taken out of the queue, or just moving between two lists: the next answer tells.
        if (job.status === 'expired') return snapshots.confirm(account, jobId);
        if (job.status === 'queued') noteIgnoredCancel(parts);
        return ok(snapshots.learn(account, job));
      }),
  };
}

/** The keys a prompt was sent with are told to nobody, whatever becomes of it. */
async function submit(
  parts: Parts,
  account: Account,
  request: SubmitRequest,
): Promise<Result<Job>> {
  const spelling = await spellingFor(parts, request);
  const submitted = await submitJob(parts, { account, request, spelling });
  const own = Object.values(request.extraData);
  if (!submitted.ok) return { ok: false, error: redactError(submitted.error, own) };
  return ok(parts.snapshots.guard(account, submitted.value, own));
}

/** What was written of the workflow before is not its text any more. */
function rewritten(asked: SubmitRequest, workflow: Graph): SubmitRequest {
  const { extraData, idempotencyKey, metadata, order, provenance } = asked;
  return {
    workflow,
    extraData,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(metadata && { metadata }),
    ...(order !== undefined && { order }),
    ...(provenance && { provenance }),
  };
}

type AssetHalf = Pick<
  RemoteJobs,
  'createAsset' | 'assetFromHash' | 'hasBlob' | 'asset' | 'deleteAsset' | 'content'
>;

function createAssetHalf(parts: Parts): AssetHalf {
  const { accounts, assets, places } = parts;
  const as = withAccount(accounts);
  return {
    async createAsset(caller, upload) {
      try {
        const { filePath, file } = upload;
        const placed = places.pathOf({ user: caller.user, filePath, hash: file.hash });
        return await as(caller, (account) =>
          assets.create(account, { ...upload, filePath: placed }),
        );
      } finally {
        // Sent or refused, nobody needs it any more.
        await rm(upload.file.path, { force: true });
      }
    },
    assetFromHash(caller, request) {
      const { filePath, hash } = request;
      const placed = filePath && { filePath: places.pathOf({ user: caller.user, filePath, hash }) };
      return as(caller, (account) => assets.fromHash(account, { ...request, ...placed }));
    },
    hasBlob: (caller, hash) => as(caller, (account) => assets.hasBlob(account, hash)),
    asset: (caller, assetId) => as(caller, (account) => assets.get(account, assetId)),
    deleteAsset: (caller, assetId) => as(caller, (account) => assets.remove(account, assetId)),
    content: (caller, assetId, range) =>
      as(caller, (account) => openContent(parts, { account, assetId, ...(range && { range }) })),
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

async function spellingFor(parts: Parts, request: SubmitRequest): Promise<Spelling> {
  const { assetMode, labels, authToken } = parts.facts;
  const wantsVendor = request.order !== undefined || request.provenance !== undefined;
  return { assetMode, labels, authToken, vendorFields: wantsVendor && (await isHoldover(parts)) };
}

/** Only a Holdover that runs jobs itself says `embedded` of its upstream. */
async function isHoldover({ calls, links, facts, limits, clock }: Parts): Promise<boolean> {
  if (facts.holdover && clock() < facts.holdover.untilMs) return facts.holdover.isOne;
  const path = links.target('health');
  const timeoutMs = limits.discoverTimeoutMs;
  const exchange = await calls.once(undefined, { method: 'GET', path, timeoutMs });
  const json = exchange.kind === 'reply' ? exchange.reply.json : undefined;
  const isOne = isJsonObject(json) && json['upstream'] === 'embedded';
  facts.holdover = { isOne, untilMs: clock() + limits.discoverAgainMs };
  return isOne;
}

/** Nobody's key goes along; a service without this route that answers at all is well. */
async function askHealth({ calls, links }: Parts): ReturnType<JobApi['health']> {
  const exchange = await calls.once(undefined, { method: 'GET', path: links.target('health') });
  if (exchange.kind === 'lost') return { ok: false, error: unreachable() };
  const { reply } = exchange;
  if (reply.status >= 500) return { ok: false, error: { ...toError(reply), status: 503 } };
  return ok({ status: 'healthy', upstream: 'remote' });
}
