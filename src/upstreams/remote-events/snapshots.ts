import { type Result, type V2Error, isGone, ok } from '../../protocol/job-api.ts';
import type { Job } from '../../protocol/v2.ts';
import type { Account } from '../remote-calls/accounts.ts';
import type { RemoteClient } from '../remote-calls/calls.ts';
import { invalidAnswer } from '../remote-calls/errors.ts';
import type { Secrets } from '../remote-calls/redact.ts';
import { readJob } from '../remote/schemas.ts';
import { type CachedJob, SnapshotStore } from './snapshot-store.ts';

/** Reads jobs. One request serves all callers that ask at about the same time. */
export type Snapshots = ReturnType<typeof createSnapshots>;

const SUFFIX = { self: [], events: ['events'], cancel: ['cancel'] } as const;

export function createSnapshots({ calls, links, limits, clock }: RemoteClient) {
  const store = new SnapshotStore({ clock, maxAgeMs: limits.snapshotMs });

  function target(account: Account, jobId: string, link: keyof Job['urls']): string {
    const urls = store.find(account, jobId)?.job?.value.urls;
    return links.targetOf(urls?.[link]) ?? links.target('jobs', jobId, ...SUFFIX[link]);
  }

  /** A key that is good may still not be good for this job. */
  function recordJobRefusal(entry: CachedJob, error: V2Error): Result<never> {
    const isAboutJob = error.status === 403 && error.code !== 'sso_required';
    if (isAboutJob) entry.refused = { error, untilMs: clock.now() + limits.refusedPauseMs };
    return { ok: false, error };
  }

  async function readJobOnce(account: Account, jobId: string): Promise<Result<Job>> {
    const entry = store.entryOf(account, jobId);
    if (entry.refused && clock.now() < entry.refused.untilMs) {
      return { ok: false, error: entry.refused.error };
    }
    const path = target(account, jobId, 'self');
    const answer = await calls.callIdempotent(account, { method: 'GET', path });
    if (!answer.ok) return recordJobRefusal(entry, answer.error);
    delete entry.refused;
    const job = readJob(answer.value.json);
    return job === undefined ? invalidAnswer() : ok(job);
  }

  function accept(account: Account, jobId: string, read: Result<Job>): Result<Job> {
    if (read.ok) return ok(store.store(account, read.value));
    if (isGone(read.error)) store.storeGone(account, jobId, read.error);
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
    const entry = store.entryOf(account, jobId);
    const pendingRead = readConfirmed(account, jobId).finally(() => {
      if (entry.pendingRead === pendingRead) delete entry.pendingRead;
    });
    entry.pendingRead = pendingRead;
    return pendingRead;
  }

  async function get(account: Account, jobId: string): Promise<Result<Job>> {
    const { job, gone, pendingRead } = store.entryOf(account, jobId);
    if (job && store.isFresh(job)) return ok(job.value);
    if (gone && store.isFresh(gone)) return { ok: false, error: gone.error };
    const { credentialRefusal: refused } = account;
    if (refused && clock.now() < refused.untilMs) return { ok: false, error: refused.error };
    // An older snapshot is better than none while the account is paused.
    if (job && account.gate.waitMs() > 0) return ok(job.value);
    return pendingRead ?? refresh(account, jobId);
  }

  return {
    /** A snapshot no older than a moment. */
    get,
    /** Makes a new request, whatever is cached. */
    refresh,
    /**
     * The same after an answer that said the job is over or gone: it is not confirmed a second time.
     */
    confirm,
    /** The request target of an operation of a job: the job's own link when it has one. */
    target,
    /**
     * Registers a listener that is called whenever an answer of any call says that a job is over or
     * gone.
     */
    onEnd: (listener: (account: Account, jobId: string) => void): void => store.onEnd(listener),
    /** Takes in a job another call answered with; the job as it may be shown. */
    store: (account: Account, job: Job): Job => store.store(account, job),
    /** The same, of a prompt that was sent with keys of its own. */
    storeSecrets: (account: Account, job: Job, secrets: Secrets): Job =>
      store.storeSecrets(account, job, secrets),
    /** The texts that must be removed from everything the service says about a job. */
    secretsOf: (account: Account, jobId: string): Secrets => store.secretsOf(account, jobId),
    /** Something has happened since: the next who asks gets a new snapshot. */
    invalidate: (account: Account, jobId: string): void => store.invalidate(account, jobId),
    /** A list reported the end of the job; its final state is still to be read. */
    noteListedEnd: (account: Account, jobId: string): void => store.noteListedEnd(account, jobId),
    /** The time before which a job that the account may not read is not read again. */
    refusedUntilMs: (account: Account, jobId: string): number | undefined =>
      store.find(account, jobId)?.refused?.untilMs,
    /** A snapshot no older than a moment, if there is one. */
    fresh: (account: Account, jobId: string): Job | undefined => store.fresh(account, jobId),
    /** The last snapshot, however old. */
    latest: (account: Account, jobId: string): Job | undefined =>
      store.find(account, jobId)?.job?.value,
  };
}
