import { setTimeout as delay } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { type Result, type V2Error, ok } from '../wire/jobs.ts';
import type { Job } from '../wire/v2.ts';
import type { Account, Refused } from './accounts.ts';
import type { Calls } from './call.ts';
import { badAnswer } from './errors.ts';
import type { RemoteLimits } from './limits.ts';
import type { UpstreamLinks } from './links.ts';
import { type Secrets, redactJob } from './redact.ts';
import { readJob } from './schemas.ts';

/** Reads jobs for all who ask: one request serves everybody who asks about the same time. */
export type Snapshots = {
  /** A snapshot no older than a moment. */
  get(account: Account, jobId: string): Promise<Result<Job>>;
  /** A new request, whatever is known. */
  look(account: Account, jobId: string): Promise<Result<Job>>;
  /** Takes in a job another call answered with; the job as it may be shown. */
  learn(account: Account, job: Job): Job;
  /** The same, of a prompt that was sent with keys of its own. */
  guard(account: Account, job: Job, own: Secrets): Job;
  /** What is to be read nowhere in what the service says of a job. */
  secretsOf(account: Account, jobId: string): Secrets;
  /** Something has happened since: the next who asks gets a new snapshot. */
  outdate(account: Account, jobId: string): void;
  /** Where an operation of a job is: its own link where one is known. */
  target(account: Account, jobId: string, link: 'self' | 'events' | 'cancel'): string;
  /** Until when a job the account may not read is not asked about; it may not until it is read again. */
  refusedUntilMs(account: Account, jobId: string): number | undefined;
  /** A snapshot no older than a moment, if there is one. */
  fresh(account: Account, jobId: string): Job | undefined;
  /** The last snapshot, however old. */
  known(account: Account, jobId: string): Job | undefined;
};

type Deps = {
  readonly calls: Calls;
  readonly links: UpstreamLinks;
  readonly limits: RemoteLimits;
  readonly clock: () => number;
};

type Entry = {
  job?: { readonly value: Job; readAtMs: number };
  reading?: Promise<Result<Job>>;
  /** The keys its prompt was sent with. */
  own?: Secrets;
  refused?: Pick<Refused, 'error' | 'untilMs'>;
};

const MAX_JOBS = 5_000;
const SUFFIX = { self: [], events: ['events'], cancel: ['cancel'] } as const;

export function createSnapshots(deps: Deps): Snapshots {
  const { calls, links, limits, clock } = deps;
  const entries = new LRUCache<string, Entry>({ max: MAX_JOBS });

  function entryOf(account: Account, jobId: string): Entry {
    const key = `${account.id} ${jobId}`;
    const entry = entries.get(key) ?? {};
    entries.set(key, entry);
    return entry;
  }

  function secretsOf({ id, key }: Account, jobId: string): Secrets {
    const { own = [] } = entries.get(`${id} ${jobId}`) ?? {};
    return key === undefined ? own : [key, ...own];
  }

  function learn(account: Account, job: Job): Job {
    const value = redactJob(job, secretsOf(account, job.id));
    entryOf(account, job.id).job = { value, readAtMs: clock() };
    return value;
  }

  function guard(account: Account, job: Job, own: Secrets): Job {
    const entry = entryOf(account, job.id);
    if (own.length > 0) entry.own = own;
    const value = redactJob(job, secretsOf(account, job.id));
    if (entry.job) entry.job = { ...entry.job, value };
    return value;
  }

  function target(account: Account, jobId: string, link: keyof Job['urls']): string {
    const urls = entries.get(`${account.id} ${jobId}`)?.job?.value.urls;
    return links.follow(urls?.[link]) ?? links.target('jobs', jobId, ...SUFFIX[link]);
  }

  function fresh(account: Account, jobId: string): Job | undefined {
    const job = entries.get(`${account.id} ${jobId}`)?.job;
    return job && clock() - job.readAtMs < limits.snapshotMs ? job.value : undefined;
  }

  /** A key that is good may still not be good for this job. */
  function noted(entry: Entry, error: V2Error): Result<never> {
    const isOfJob = error.status === 403 && error.code !== 'sso_required';
    if (isOfJob) entry.refused = { error, untilMs: clock() + limits.refusedPauseMs };
    return { ok: false, error };
  }

  async function ask(account: Account, jobId: string): Promise<Result<Job>> {
    const entry = entryOf(account, jobId);
    if (entry.refused && clock() < entry.refused.untilMs) {
      return { ok: false, error: entry.refused.error };
    }
    const answer = await calls.read(account, {
      method: 'GET',
      path: target(account, jobId, 'self'),
    });
    if (!answer.ok) return noted(entry, answer.error);
    delete entry.refused;
    const job = readJob(answer.value.json);
    if (job === undefined) return badAnswer();
    return ok(learn(account, job));
  }

  /** One server says `expired`, or nothing at all, of a job it is just moving between two lists. */
  async function askTwice(account: Account, jobId: string): Promise<Result<Job>> {
    const first = await ask(account, jobId);
    if (!first.ok || first.value.status !== 'expired') return first;
    await delay(limits.secondLookMs);
    return ask(account, jobId);
  }

  function look(account: Account, jobId: string): Promise<Result<Job>> {
    const entry = entryOf(account, jobId);
    const reading = askTwice(account, jobId).finally(() => {
      if (entry.reading === reading) delete entry.reading;
    });
    entry.reading = reading;
    return reading;
  }

  return {
    look,
    learn,
    guard,
    secretsOf,
    outdate(account, jobId) {
      const { job } = entryOf(account, jobId);
      if (job) job.readAtMs = Number.NEGATIVE_INFINITY;
    },
    target,
    refusedUntilMs: (account, jobId) => entries.get(`${account.id} ${jobId}`)?.refused?.untilMs,
    fresh,
    known: (account, jobId) => entries.get(`${account.id} ${jobId}`)?.job?.value,
    async get(account, jobId) {
      const known = fresh(account, jobId);
      if (known) return ok(known);
      const { job, reading } = entryOf(account, jobId);
      const { refused } = account;
      if (refused && clock() < refused.untilMs) return { ok: false, error: refused.error };
      // Older news is better than none while the account has to pause.
      if (job && account.gate.waitMs() > 0) return ok(job.value);
      return reading ?? look(account, jobId);
    },
  };
}
