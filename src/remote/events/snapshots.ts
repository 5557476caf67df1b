import { LRUCache } from 'lru-cache';
import { type Result, type V2Error, isGone, ok } from '../../protocol/job-api.ts';
import { jsonWeight } from '../../protocol/json-steps.ts';
import { type Job, IS_TERMINAL } from '../../protocol/v2.ts';
import type { Account, CredentialRefusal } from '../calls/accounts.ts';
import type { RemoteClient } from '../calls/calls.ts';
import { invalidAnswer } from '../calls/errors.ts';
import { type Secrets, redactJob } from '../calls/redact.ts';
import { readJob } from '../schemas.ts';

type JobSnapshot = { readonly value: Job; readAtMs: number };

/** The known facts about one job, beside its snapshot. */
type CachedJob = {
  pendingRead?: Promise<Result<Job>>;
  /** The keys that the prompt of the job was sent with. */
  secrets?: Secrets;
  refused?: Omit<CredentialRefusal, 'isBeingChecked'>;
};

/**
 * True for an answer that is older than the end of the job: an answer may arrive after the event of
 * the end. Servers report `expired` too early, so that status may change.
 */
function isOutdated(latest: Job, answer: Job): boolean {
  const isOver = latest.status !== 'expired' && IS_TERMINAL[latest.status];
  return isOver && !IS_TERMINAL[answer.status];
}

/** Drops the workflow with which another Holdover answers a submission: nothing reads it later. */
function withoutWorkflow(job: Job): Job {
  const { x_workflow: _, ...rest } = job;
  return rest;
}

/** Returns the key of a job: jobs of two accounts may have the same id. */
export function keyOf({ id }: Account, jobId: string): string {
  return `${id} ${jobId}`;
}

const MAX_JOBS = 5_000;
/** A longer key counts as several jobs. */
const KEY_CHARS = 200;
/** The limit for all snapshots: 16 MiB of text, or less with many short values. */
const MAX_WEIGHT = 262_144;
/**
 * Each job counts at most this, so that it is kept: answers above 5 MiB are not read, however many
 * values they have.
 */
const MAX_JOB_WEIGHT = MAX_WEIGHT / 3;

function sizeOf({ value }: JobSnapshot): number {
  const weight = jsonWeight(value, MAX_JOB_WEIGHT);
  return Math.ceil(Math.min(weight, MAX_JOB_WEIGHT));
}

type OnEnd = (account: Account, jobId: string) => void;

/**
 * The jobs of one upstream that were read last, by account. One request serves all callers that ask
 * at about the same time.
 */
export class Snapshots {
  readonly #client: RemoteClient;
  readonly #entries = new LRUCache<string, CachedJob>({
    maxSize: MAX_JOBS,
    // The id may be a long text of a caller, which the service does not know.
    sizeCalculation: (_job, key) => Math.ceil(key.length / KEY_CHARS),
  });
  readonly #jobs = new LRUCache<string, JobSnapshot>({
    maxSize: MAX_WEIGHT,
    sizeCalculation: sizeOf,
  });
  #onEnd: OnEnd = () => {};

  constructor(client: RemoteClient) {
    this.#client = client;
  }

  /** Registers a listener, which is called when any answer says that a job is over or gone. */
  onEnd(listener: OnEnd): void {
    this.#onEnd = listener;
  }

  /** Returns the entry of a job, or a new one. */
  #entryOf(account: Account, jobId: string): CachedJob {
    const entry = this.#find(account, jobId) ?? {};
    this.#entries.set(keyOf(account, jobId), entry);
    return entry;
  }

  #find(account: Account, jobId: string): CachedJob | undefined {
    return this.#entries.get(keyOf(account, jobId));
  }

  #snapshotOf(account: Account, jobId: string): JobSnapshot | undefined {
    return this.#jobs.get(keyOf(account, jobId));
  }

  /** Returns the texts that must be removed from everything that the service says about a job. */
  secretsOf(account: Account, jobId: string): Secrets {
    const { secrets = [] } = this.#find(account, jobId) ?? {};
    return account.key === undefined ? secrets : [account.key, ...secrets];
  }

  /** Stores a job from the answer to another call. Returns the job as it may be shown. */
  store(account: Account, job: Job): Job {
    const latest = this.latest(account, job.id);
    const isOlder = latest !== undefined && isOutdated(latest, job);
    const value = isOlder ? latest : redactJob(job, this.secretsOf(account, job.id));
    const snapshot = { value: withoutWorkflow(value), readAtMs: this.#client.clock.now() };
    this.#jobs.set(keyOf(account, job.id), snapshot);
    if (IS_TERMINAL[value.status]) this.#onEnd(account, job.id);
    return value;
  }

  /** Notes the keys that the prompt of a job was sent with, before the job is stored. */
  noteSecrets(account: Account, jobId: string, secrets: Secrets): void {
    if (secrets.length > 0) this.#entryOf(account, jobId).secrets = secrets;
  }

  #isFresh({ readAtMs }: { readonly readAtMs: number }): boolean {
    return this.#client.clock.now() - readAtMs < this.#client.limits.snapshotMs;
  }

  /** Returns a recent snapshot, if there is one. */
  fresh(account: Account, jobId: string): Job | undefined {
    const job = this.#snapshotOf(account, jobId);
    return job && this.#isFresh(job) ? job.value : undefined;
  }

  /** Makes the next caller read the job again, since something has happened. */
  invalidate(account: Account, jobId: string): void {
    const job = this.#snapshotOf(account, jobId);
    if (job) job.readAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Notes that a list has reported the end of the job. Its final state is still to be read. */
  noteListedEnd(account: Account, jobId: string): void {
    const job = this.#snapshotOf(account, jobId);
    if (!job || IS_TERMINAL[job.value.status]) return;
    this.invalidate(account, jobId);
    this.#onEnd(account, jobId);
  }

  /** Returns the last snapshot, however old. */
  latest(account: Account, jobId: string): Job | undefined {
    return this.#snapshotOf(account, jobId)?.value;
  }

  /** Returns the time before which a job that the account may not read is not read again. */
  refusedUntilMs(account: Account, jobId: string): number | undefined {
    return this.#find(account, jobId)?.refused?.untilMs;
  }

  /** Returns the request target for an operation of a job: the job's own link, if it has one. */
  target(account: Account, jobId: string, link: keyof Job['urls']): string {
    const { links } = this.#client;
    const { urls } = this.latest(account, jobId) ?? {};
    const operation = link === 'self' ? [] : [link];
    return links.targetOf(urls?.[link]) ?? links.target('jobs', jobId, ...operation);
  }

  /** Returns the request target of a job's workflow, which is below the job's link. */
  workflowTarget(account: Account, jobId: string): string {
    return this.target(account, jobId, 'self').replace(/(?=\?|$)/, '/workflow');
  }

  /** Returns a recent snapshot, or reads the job. */
  async get(account: Account, jobId: string): Promise<Result<Job>> {
    const { pendingRead } = this.#entryOf(account, jobId);
    const job = this.#snapshotOf(account, jobId);
    if (job && this.#isFresh(job)) return ok(job.value);
    const { credentialRefusal: refused } = account;
    if (refused && this.#client.clock.now() < refused.untilMs)
      return { ok: false, error: refused.error };
    // An old snapshot is better than none while the account is paused.
    if (job && account.gate.waitMs() > 0) return ok(job.value);
    return pendingRead ?? this.refresh(account, jobId);
  }

  /** Makes a new request, whatever is cached. */
  refresh(account: Account, jobId: string): Promise<Result<Job>> {
    const entry = this.#entryOf(account, jobId);
    const pendingRead = this.#readConfirmed(account, jobId).finally(() => {
      if (entry.pendingRead === pendingRead) delete entry.pendingRead;
    });
    entry.pendingRead = pendingRead;
    return pendingRead;
  }

  /**
   * Reads the job after an answer that said it is over or gone: that is not confirmed a second
   * time.
   */
  async confirm(account: Account, jobId: string): Promise<Result<Job>> {
    return this.#accept(account, jobId, await this.#readOnce(account, jobId));
  }

  /**
   * Reads the job, and confirms some answers: one server says `expired`, or 404, about a job that
   * it moves between two lists.
   */
  async #readConfirmed(account: Account, jobId: string): Promise<Result<Job>> {
    const first = await this.#readOnce(account, jobId);
    const needsConfirmation = first.ok ? first.value.status === 'expired' : isGone(first.error);
    if (!needsConfirmation) return this.#accept(account, jobId, first);
    await this.#client.clock.sleep(this.#client.limits.confirmAfterMs);
    return this.confirm(account, jobId);
  }

  async #readOnce(account: Account, jobId: string): Promise<Result<Job>> {
    const { calls, clock } = this.#client;
    const entry = this.#entryOf(account, jobId);
    if (entry.refused && clock.now() < entry.refused.untilMs) {
      return { ok: false, error: entry.refused.error };
    }
    const path = this.target(account, jobId, 'self');
    const answer = await calls.callIdempotent(account, { method: 'GET', path });
    if (!answer.ok) return this.#recordJobRefusal(entry, answer.error);
    delete entry.refused;
    const job = readJob(answer.value.json);
    return job === undefined ? invalidAnswer() : ok(job);
  }

  /** Records a refusal for this job: a valid key may still not be valid for this job. */
  #recordJobRefusal(entry: CachedJob, error: V2Error): Result<never> {
    const { clock, limits } = this.#client;
    const isAboutJob = error.status === 403 && error.code !== 'sso_required';
    if (isAboutJob) entry.refused = { error, untilMs: clock.now() + limits.refusedPauseMs };
    return { ok: false, error };
  }

  #accept(account: Account, jobId: string, read: Result<Job>): Result<Job> {
    if (read.ok) return ok(this.store(account, read.value));
    if (isGone(read.error)) this.#onEnd(account, jobId);
    return read;
  }
}
