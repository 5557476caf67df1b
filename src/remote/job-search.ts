import { LRUCache } from 'lru-cache';
import {
  type JobListQuery,
  type JobPage,
  type JobSearch,
  type LostSubmission,
  type Result,
  ok,
} from '../protocol/job-api.ts';
import { isJsonObject } from '../protocol/json.ts';
import { IS_TERMINAL, type Job } from '../protocol/v2.ts';
import type { Account } from './calls/accounts.ts';
import type { RemoteClient } from './calls/calls.ts';
import { invalidAnswer } from './calls/errors.ts';
import { redactJob } from './calls/redact.ts';
import { readJob, readWorkflow } from './schemas.ts';
import type { Snapshots } from './events/snapshots.ts';
import { inAssetMode, isSameWorkflow } from './files/file-references.ts';
import { atMost } from '../lib/lru-size.ts';

type Labels = LostSubmission['metadata'];

/** Lists jobs, and finds them by the content of their submission. */
export type RemoteJobSearch = {
  list(account: Account, query: JobListQuery): Promise<Result<JobPage>>;
  /** Searches once for the job of a lost submission. */
  search(account: Account, lost: LostSubmission): Promise<Result<JobSearch>>;
  /** Records that a job belongs to the submission with these labels: no other one gets it. */
  claim(jobId: string, labels: Labels): void;
};

const MAX_CLAIMED = 50_000;
const PAGE_SIZE = 100;
/** The tolerance for the clocks of two machines, and for the whole seconds of a `Date` header. */
const CLOCK_SLACK_MS = 2_000;

export function createJobSearch(client: RemoteClient, snapshots: Snapshots): RemoteJobSearch {
  const { calls, links, capabilities } = client;
  /** The submissions that have jobs, by job id. */
  const claims = new LRUCache<string, string>(atMost(MAX_CLAIMED));
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

  async function list(account: Account, query: JobListQuery): Promise<Result<JobPage>> {
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

  function claim(jobId: string, labels: Labels): void {
    claims.set(jobId, JSON.stringify(labels ?? null));
  }

  function isOfOther(jobId: string, labels: Labels): boolean {
    const owner = claims.get(jobId);
    return owner !== undefined && (labels === undefined || owner !== JSON.stringify(labels));
  }

  /**
   * True when the job may be the one. A label proves it, whatever the clocks say. The same workflow
   * may have been submitted twice.
   */
  function isCandidate(job: Job, lost: LostSubmission): boolean {
    if (isOfOther(job.id, lost.metadata)) return false;
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

  async function search(account: Account, lost: LostSubmission): Promise<Result<JobSearch>> {
    const { metadata } = lost;
    // Some servers ignore the filter, so every job is checked here as well.
    const byLabel =
      capabilities.labels === 'map' && metadata ? { metadata: firstLabels(metadata) } : {};
    const read = await page(account, { limit: PAGE_SIZE, ...byLabel });
    if (!read.ok && capabilities.listing !== 'no') return read;
    if (!read.ok) return ok({ kind: 'no list', mayForgetKeys: capabilities.keys === 'unsure' });
    const candidates = read.value.jobs.filter((job) => isCandidate(job, lost)).toReversed();
    for (const job of candidates) {
      const isLabelled = metadata !== undefined && hasLabels(job, metadata);
      const isForeign = !isLabelled && job.metadata !== undefined && metadata !== undefined;
      if (isForeign || !(isLabelled || (await hasWorkflow(account, job, lost)))) continue;
      if (isOfOther(job.id, metadata) || (await lost.isClaimed?.(job.id)) === true) continue;
      claim(job.id, metadata);
      snapshots.noteSecrets(account, job.id, Object.values(lost.extraData ?? {}));
      const read = await snapshots.refresh(account, job.id);
      const found = read.ok ? read.value : redactJob(job, snapshots.secretsOf(account, job.id));
      return ok({ kind: 'found', job: found });
    }
    return ok({ kind: coversTime(read.value, lost) ? 'not listed' : 'not seen' });
  }

  return { list, search, claim };
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
function firstLabels(metadata: NonNullable<Labels>): NonNullable<Labels> {
  return Object.fromEntries(Object.entries(metadata).slice(0, 3));
}

function hasLabels(job: Job, metadata: NonNullable<Labels>): boolean {
  return Object.entries(metadata).every(([name, value]) => job.metadata?.[name] === value);
}
