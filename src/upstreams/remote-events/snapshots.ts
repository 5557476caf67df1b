import type { Clock } from '../../lib/clock.ts';
import { LRUCache } from 'lru-cache';
import { type Result, type V2Error, isGone, ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import type { Account, CredentialRefusal } from '../remote-calls/accounts.ts';
import type { Calls } from '../remote-calls/calls.ts';
import { invalidAnswer } from '../remote-calls/errors.ts';
import type { RemoteLimits } from '../remote/limits.ts';
import type { UpstreamLinks } from '../remote-calls/upstream-links.ts';
import { type Secrets, redactJob } from '../remote-calls/redact.ts';
import { readJob } from '../remote/schemas.ts';

/** Reads jobs. One request serves all callers that ask at about the same time. */
export type Snapshots = {
  /** A snapshot no older than a moment. */
  get(account: Account, jobId: string): Promise<Result<Job>>;
  /** Makes a new request, whatever is cached. */
  refresh(account: Account, jobId: string): Promise<Result<Job>>;
  /**
   * The same after an answer that said the job is over or gone: it is not confirmed a second time.
   */
  confirm(account: Account, jobId: string): Promise<Result<Job>>;
  /**
   * Registers a listener that is called whenever an answer of any call says that a job is over or
   * gone.
   */
  onEnd(listener: (account: Account, jobId: string) => void): void;
  /** Takes in a job another call answered with; the job as it may be shown. */
  store(account: Account, job: Job): Job;
  /** The same, of a prompt that was sent with keys of its own. */
  storeSecrets(account: Account, job: Job, secrets: Secrets): Job;
  /** The texts that must be removed from everything the service says about a job. */
  secretsOf(account: Account, jobId: string): Secrets;
  /** A list reported the end of the job; its final state is still to be read. */
  noteListedEnd(account: Account, jobId: string): void;
  /** Something has happened since: the next who asks gets a new snapshot. */
  invalidate(account: Account, jobId: string): void;
  /** The request target of an operation of a job: the job's own link when it has one. */
  target(account: Account, jobId: string, link: 'self' | 'events' | 'cancel'): string;
  /** The time before which a job that the account may not read is not read again. */
  refusedUntilMs(account: Account, jobId: string): number | undefined;
  /** A snapshot no older than a moment, if there is one. */
  fresh(account: Account, jobId: string): Job | undefined;
  /** The last snapshot, however old. */
  latest(account: Account, jobId: string): Job | undefined;
};

type SnapshotsOptions = {
  readonly calls: Calls;
  readonly links: UpstreamLinks;
  readonly limits: RemoteLimits;
  readonly clock: Clock;
};

type CachedJob = {
  job?: { readonly value: Job; readAtMs: number };
  pendingRead?: Promise<Result<Job>>;
  /** The upstream does not have the job, and has said so twice. */
  gone?: { readonly error: V2Error; readonly readAtMs: number };
  /** The keys its prompt was sent with. */
  secrets?: Secrets;
  refused?: Pick<CredentialRefusal, 'error' | 'untilMs'>;
};

/**
 * An answer may arrive after the event that ended the job. Servers report `expired` too early, so
 * that status may change.
 */
function isOutdated(latest: Job | undefined, answer: Job): boolean {
  const isOver = latest !== undefined && latest.status !== 'expired' && IS_TERMINAL[latest.status];
  return isOver && !IS_TERMINAL[answer.status];
}

const MAX_JOBS = 5_000;
const SUFFIX = { self: [], events: ['events'], cancel: ['cancel'] } as const;

export function createSnapshots(options: SnapshotsOptions): Snapshots {
  const { calls, links, limits, clock } = options;
  const entries = new LRUCache<string, CachedJob>({ max: MAX_JOBS });
  let notifyEnd = (_account: Account, _jobId: string): void => {};

  function entryOf(account: Account, jobId: string): CachedJob {
    const key = `${account.id} ${jobId}`;
    const entry = entries.get(key) ?? {};
    entries.set(key, entry);
    return entry;
  }

  function secretsOf({ id, key }: Account, jobId: string): Secrets {
    const { secrets = [] } = entries.get(`${id} ${jobId}`) ?? {};
    return key === undefined ? secrets : [key, ...secrets];
  }

  function store(account: Account, job: Job): Job {
    const entry = entryOf(account, job.id);
    const value = isOutdated(entry.job?.value, job)
      ? entry.job!.value
      : redactJob(job, secretsOf(account, job.id));
    entry.job = { value, readAtMs: clock.now() };
    delete entry.gone;
    if (IS_TERMINAL[value.status]) notifyEnd(account, job.id);
    return value;
  }

  function storeSecrets(account: Account, job: Job, secrets: Secrets): Job {
    const entry = entryOf(account, job.id);
    if (secrets.length > 0) entry.secrets = secrets;
    const value = redactJob(job, secretsOf(account, job.id));
    if (entry.job) entry.job = { ...entry.job, value };
    return value;
  }

  function target(account: Account, jobId: string, link: keyof Job['urls']): string {
    const urls = entries.get(`${account.id} ${jobId}`)?.job?.value.urls;
    return links.targetOf(urls?.[link]) ?? links.target('jobs', jobId, ...SUFFIX[link]);
  }

  function fresh(account: Account, jobId: string): Job | undefined {
    const job = entries.get(`${account.id} ${jobId}`)?.job;
    return job && clock.now() - job.readAtMs < limits.snapshotMs ? job.value : undefined;
  }

  /** A key that is good may still not be good for this job. */
  function recordJobRefusal(entry: CachedJob, error: V2Error): Result<never> {
    const isAboutJob = error.status === 403 && error.code !== 'sso_required';
    if (isAboutJob) entry.refused = { error, untilMs: clock.now() + limits.refusedPauseMs };
    return { ok: false, error };
  }

  async function readJobOnce(account: Account, jobId: string): Promise<Result<Job>> {
    const entry = entryOf(account, jobId);
    if (entry.refused && clock.now() < entry.refused.untilMs) {
      return { ok: false, error: entry.refused.error };
    }
    const answer = await calls.callIdempotent(account, {
      method: 'GET',
      path: target(account, jobId, 'self'),
    });
    if (!answer.ok) return recordJobRefusal(entry, answer.error);
    delete entry.refused;
    const job = readJob(answer.value.json);
    return job === undefined ? invalidAnswer() : ok(job);
  }

  function accept(account: Account, jobId: string, read: Result<Job>): Result<Job> {
    if (read.ok) return ok(store(account, read.value));
    if (isGone(read.error)) {
      entryOf(account, jobId).gone = { error: read.error, readAtMs: clock.now() };
      notifyEnd(account, jobId);
    }
    return read;
  }

  const confirm = async (account: Account, jobId: string): Promise<Result<Job>> =>
    accept(account, jobId, await readJobOnce(account, jobId));

  /** One server says `expired`, or nothing at all, about a job that it moves between two lists. */
  async function readConfirmed(account: Account, jobId: string): Promise<Result<Job>> {
    const first = await readJobOnce(account, jobId);
    const needsConfirmation = first.ok ? first.value.status === 'expired' : isGone(first.error);
    if (!needsConfirmation) return accept(account, jobId, first);
    await clock.sleep(limits.secondLookMs);
    return confirm(account, jobId);
  }

  function refresh(account: Account, jobId: string): Promise<Result<Job>> {
    const entry = entryOf(account, jobId);
    const pendingRead = readConfirmed(account, jobId).finally(() => {
      if (entry.pendingRead === pendingRead) delete entry.pendingRead;
    });
    entry.pendingRead = pendingRead;
    return pendingRead;
  }

  return {
    refresh,
    confirm,
    onEnd: (listener) => void (notifyEnd = listener),
    store,
    storeSecrets,
    secretsOf,
    invalidate(account, jobId) {
      const { job } = entryOf(account, jobId);
      if (job) job.readAtMs = Number.NEGATIVE_INFINITY;
    },
    noteListedEnd(account, jobId) {
      const { job } = entries.get(`${account.id} ${jobId}`) ?? {};
      if (!job || IS_TERMINAL[job.value.status]) return;
      job.readAtMs = Number.NEGATIVE_INFINITY;
      notifyEnd(account, jobId);
    },
    target,
    refusedUntilMs: (account, jobId) => entries.get(`${account.id} ${jobId}`)?.refused?.untilMs,
    fresh,
    latest: (account, jobId) => entries.get(`${account.id} ${jobId}`)?.job?.value,
    async get(account, jobId) {
      const latest = fresh(account, jobId);
      if (latest) return ok(latest);
      const { job, gone, pendingRead } = entryOf(account, jobId);
      if (gone && clock.now() - gone.readAtMs < limits.snapshotMs) {
        return { ok: false, error: gone.error };
      }
      const { credentialRefusal: refused } = account;
      if (refused && clock.now() < refused.untilMs) return { ok: false, error: refused.error };
      // An older snapshot is better than none while the account is paused.
      if (job && account.gate.waitMs() > 0) return ok(job.value);
      return pendingRead ?? refresh(account, jobId);
    },
  };
}
