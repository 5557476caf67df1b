import type { Clock } from '../../lib/clock.ts';
import { LRUCache } from 'lru-cache';
import type { Result, V2Error } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import type { Account, CredentialRefusal } from '../remote-calls/accounts.ts';
import { type Secrets, redactJob } from '../remote-calls/redact.ts';

/** All that is known of one job. */
export type CachedJob = {
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

type OnEnd = (account: Account, jobId: string) => void;

/** The jobs of one upstream that were read last, by account. */
export class SnapshotStore {
  readonly #clock: Clock;
  readonly #maxAgeMs: number;
  readonly #entries = new LRUCache<string, CachedJob>({ max: MAX_JOBS });
  #onEnd: OnEnd = () => {};

  constructor(options: { readonly clock: Clock; readonly maxAgeMs: number }) {
    this.#clock = options.clock;
    this.#maxAgeMs = options.maxAgeMs;
  }

  onEnd(listener: OnEnd): void {
    this.#onEnd = listener;
  }

  /** The entry of a job; a new one when there is none. */
  entryOf(account: Account, jobId: string): CachedJob {
    const entry = this.find(account, jobId) ?? {};
    this.#entries.set(`${account.id} ${jobId}`, entry);
    return entry;
  }

  find({ id }: Account, jobId: string): CachedJob | undefined {
    return this.#entries.get(`${id} ${jobId}`);
  }

  secretsOf(account: Account, jobId: string): Secrets {
    const { secrets = [] } = this.find(account, jobId) ?? {};
    return account.key === undefined ? secrets : [account.key, ...secrets];
  }

  store(account: Account, job: Job): Job {
    const entry = this.entryOf(account, job.id);
    const value = isOutdated(entry.job?.value, job)
      ? entry.job!.value
      : redactJob(job, this.secretsOf(account, job.id));
    entry.job = { value, readAtMs: this.#clock.now() };
    delete entry.gone;
    if (IS_TERMINAL[value.status]) this.#onEnd(account, job.id);
    return value;
  }

  storeSecrets(account: Account, job: Job, secrets: Secrets): Job {
    const entry = this.entryOf(account, job.id);
    if (secrets.length > 0) entry.secrets = secrets;
    const value = redactJob(job, this.secretsOf(account, job.id));
    if (entry.job) entry.job = { ...entry.job, value };
    return value;
  }

  storeGone(account: Account, jobId: string, error: V2Error): void {
    this.entryOf(account, jobId).gone = { error, readAtMs: this.#clock.now() };
    this.#onEnd(account, jobId);
  }

  isFresh({ readAtMs }: { readonly readAtMs: number }): boolean {
    return this.#clock.now() - readAtMs < this.#maxAgeMs;
  }

  fresh(account: Account, jobId: string): Job | undefined {
    const job = this.find(account, jobId)?.job;
    return job && this.isFresh(job) ? job.value : undefined;
  }

  invalidate(account: Account, jobId: string): void {
    const { job } = this.entryOf(account, jobId);
    if (job) job.readAtMs = Number.NEGATIVE_INFINITY;
  }

  noteListedEnd(account: Account, jobId: string): void {
    const { job } = this.find(account, jobId) ?? {};
    if (!job || IS_TERMINAL[job.value.status]) return;
    job.readAtMs = Number.NEGATIVE_INFINITY;
    this.#onEnd(account, jobId);
  }
}
