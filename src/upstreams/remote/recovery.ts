import { LRUCache } from 'lru-cache';
import { type JobListQuery, type LostSubmission, type Result, ok } from '../../protocol/job-api.ts';
import { isJsonObject } from '../../protocol/json.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import type { Account } from '../remote-calls/accounts.ts';
import type { RemoteClient } from '../remote-calls/calls.ts';
import { invalidAnswer } from '../remote-calls/errors.ts';
import { redactJob } from '../remote-calls/redact.ts';
import { readJob, readWorkflow } from './schemas.ts';
import type { Snapshots } from '../remote-events/snapshots.ts';
import { inAssetMode, isSameWorkflow } from '../remote-files/file-references.ts';
import { atMost } from '../../lib/lru-size.ts';

type JobList = { readonly jobs: readonly Job[]; readonly next_cursor?: string };

type FoundJob = { readonly job: Job | null; readonly isListed: boolean };

/** Finds jobs by the content of their submission. */
export type Recovery = ReturnType<typeof createRecovery>;

const MAX_CLAIMED = 50_000;
const PAGE_SIZE = 100;
/** A single list may have been read just before the job was written. */
const READS_TO_CONFIRM_ABSENCE = 2;
/** The tolerance for the clocks of two machines, and for the whole seconds of a `Date` header. */
const CLOCK_SLACK_MS = 2_000;

export function createRecovery(client: RemoteClient, snapshots: Snapshots) {
  const { calls, links, capabilities, limits, clock } = client;
  const claimed = new LRUCache<string, true>(atMost(MAX_CLAIMED));
  /**
   * The jobs whose workflow is known to differ from that of the lost submission: a search is
   * repeated for minutes.
   */
  const compared = new LRUCache<string, true>(atMost(MAX_CLAIMED));

  async function page(account: Account, query: JobListQuery): Promise<Result<Page>> {
    const path = `${links.target('jobs')}${queryText(query)}`;
    const answer = await calls.callIdempotent(account, { method: 'GET', path });
    if (!answer.ok) {
      const { status } = answer.error;
      const isUnknownRoute = status === 404 || status === 405;
      if (isUnknownRoute) capabilities.keys = 'unsure';
      if (isUnknownRoute || status === 501) capabilities.listing = 'no';
      return answer;
    }
    const { json } = answer.value;
    if (!isJsonObject(json) || !Array.isArray(json['jobs'])) return invalidAnswer();
    capabilities.listing = 'yes';
    capabilities.keys = 'promised';
    const next = json['next_cursor'];
    const listed = json['jobs'].flatMap((item) => readJob(item) ?? []);
    for (const { id, status } of listed) {
      if (IS_TERMINAL[status]) snapshots.noteListedEnd(account, id);
    }
    const jobs = listed.map((job) => redactJob(job, snapshots.secretsOf(account, job.id)));
    const nextCursor = typeof next === 'string' && next !== '' ? next : undefined;
    const isFull = json['jobs'].length >= (query.limit ?? Infinity);
    const hasMore = nextCursor !== undefined || json['truncated'] === true || isFull;
    return ok({ jobs, nextCursor, hasMore });
  }

  async function list(account: Account, query: JobListQuery): Promise<Result<JobList>> {
    const read = await page(account, query);
    if (!read.ok) return read;
    const { jobs, nextCursor } = read.value;
    return ok({ jobs, ...(nextCursor !== undefined && { next_cursor: nextCursor }) });
  }

  /**
   * True when the page reaches back far enough. Lists are newest first: jobs on later pages are
   * older.
   */
  function coversTime({ jobs, hasMore }: Page, { sentAtMs }: LostSubmission): boolean {
    if (!hasMore) return true;
    const oldestMs = Date.parse(jobs.at(-1)?.created_at ?? '') - capabilities.clockAheadMs;
    return oldestMs < sentAtMs - CLOCK_SLACK_MS;
  }

  /**
   * True when the job may be the one. A label proves it, whatever the clocks say. The same workflow
   * may have been submitted twice.
   */
  function isCandidate(job: Job, lost: LostSubmission): boolean {
    if (claimed.has(job.id)) return false;
    if (lost.metadata !== undefined && hasLabels(job, lost.metadata)) return true;
    const createdAtMs = Date.parse(job.created_at) - capabilities.clockAheadMs;
    return createdAtMs >= lost.sentAtMs - CLOCK_SLACK_MS;
  }

  async function hasWorkflow(account: Account, job: Job, lost: LostSubmission): Promise<boolean> {
    const name = JSON.stringify([job.id, lost.sentAtMs, lost.metadata]);
    if (compared.has(name)) return false;
    const path = snapshots.workflowTarget(account, job.id);
    const answer = await calls.callIdempotent(account, { method: 'GET', path });
    const stored = answer.ok ? readWorkflow(answer.value.json) : undefined;
    if (stored === undefined) return false;
    const sent = inAssetMode(lost.workflow, capabilities.assetMode);
    const isSame = isSameWorkflow(sent, stored.workflow);
    if (!isSame) compared.set(name, true);
    return isSame;
  }

  async function find(account: Account, lost: LostSubmission): Promise<Result<FoundJob>> {
    const { metadata } = lost;
    // Some servers ignore the filter, so every job is checked here as well.
    const byLabel =
      capabilities.labels === 'map' && metadata ? { metadata: firstLabels(metadata) } : {};
    const read = await page(account, { limit: PAGE_SIZE, ...byLabel });
    if (!read.ok) return read;
    const candidates = read.value.jobs.filter((job) => isCandidate(job, lost)).toReversed();
    for (const job of candidates) {
      const isLabelled = metadata !== undefined && hasLabels(job, metadata);
      const isForeign = !isLabelled && job.metadata !== undefined && metadata !== undefined;
      if (isForeign || !(isLabelled || (await hasWorkflow(account, job, lost)))) continue;
      if (claimed.has(job.id) || (await lost.isClaimed?.(job.id)) === true) continue;
      claimed.set(job.id, true);
      const snapshot = await snapshots.refresh(account, job.id);
      return ok({ job: snapshot.ok ? snapshot.value : job, isListed: true });
    }
    return ok({ job: null, isListed: coversTime(read.value, lost) });
  }

  return {
    list,
    /**
     * Says if a submission that may have made a job may be sent again: not to a service that can
     * neither list its jobs nor promises to remember keys.
     */
    async mayRepeat(account: Account): Promise<'yes' | 'no' | 'unreachable'> {
      if (capabilities.listing === 'unknown') {
        const read = await page(account, { limit: 1 });
        const isSilent = !read.ok && read.error.code === 'upstream_unreachable';
        if (isSilent && !read.error.engineDown) return 'unreachable';
      }
      return capabilities.keys === 'promised' ? 'yes' : 'no';
    },
    /** Finds the job of a lost submission; `null` when no job is visible. */
    find,
    /** Records that a job belongs to a submission, so that no other one can claim it. */
    claim: (jobId: string): void => void claimed.set(jobId, true),
    /**
     * Searches repeatedly, as the first request may still be in progress. `absent`: every request
     * was answered, and the complete list of the service lacked the job twice in a row.
     */
    async search(
      account: Account,
      lost: LostSubmission & { readonly isAnswered: boolean },
    ): Promise<Job | 'absent' | 'engine down' | 'not seen'> {
      const deadlineMs = clock.now() + limits.recoverBudgetMs;
      for (let absentReads = 0; ;) {
        if (capabilities.listing === 'no') return 'not seen';
        const found = await find(account, lost);
        if (found.ok && found.value.job) return found.value.job;
        // The service lists nothing before its engine is back, and no caller waits for that.
        if (!found.ok && found.error.engineDown) return 'engine down';
        absentReads = found.ok && found.value.isListed ? absentReads + 1 : 0;
        if (lost.isAnswered && absentReads >= READS_TO_CONFIRM_ABSENCE) return 'absent';
        if (clock.now() + limits.recoverEveryMs > deadlineMs) return 'not seen';
        await clock.sleep(limits.recoverEveryMs);
      }
    },
  };
}

type Page = {
  readonly jobs: readonly Job[];
  readonly nextCursor: string | undefined;
  /** True when there may be older jobs on later pages. */
  readonly hasMore: boolean;
};

function queryText({ limit, cursor, status, metadata = {} }: JobListQuery): string {
  const query = new URLSearchParams();
  if (limit !== undefined) query.set('limit', String(limit));
  if (cursor !== undefined && cursor !== '') query.set('cursor', cursor);
  if (status && status.length > 0) query.set('status', status.join(','));
  for (const [name, value] of Object.entries(metadata)) query.set(`metadata[${name}]`, value);
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

/** Returns the first labels: a query may contain three. */
function firstLabels(
  metadata: NonNullable<LostSubmission['metadata']>,
): NonNullable<LostSubmission['metadata']> {
  return Object.fromEntries(Object.entries(metadata).slice(0, 3));
}

function hasLabels(job: Job, metadata: NonNullable<LostSubmission['metadata']>): boolean {
  return Object.entries(metadata).every(([name, value]) => job.metadata?.[name] === value);
}
