import { LRUCache } from 'lru-cache';
import {
  type JobListQuery,
  type JobPage,
  type JobSearch,
  type LostSubmission,
  type Result,
  ok,
} from '../protocol/job-api.ts';
import { type Json, isJsonObject } from '../protocol/json.ts';
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

const MAX_CLAIMED = 50_000;
const PAGE_SIZE = 100;
/** The tolerance for the clocks of two machines, and for the whole seconds of a `Date` header. */
const CLOCK_SLACK_MS = 2_000;

/** Lists jobs, and finds them by the content of their submission. */
export class RemoteJobSearch {
  readonly #client: RemoteClient;
  readonly #snapshots: Snapshots;
  /** The submissions that have jobs, by job id. */
  readonly #claims = new LRUCache<string, string>(atMost(MAX_CLAIMED));
  /**
   * The jobs whose workflow is known to differ from that of the lost submission: a search is
   * repeated for minutes.
   */
  readonly #compared = new LRUCache<string, true>(atMost(MAX_CLAIMED));

  constructor(client: RemoteClient, snapshots: Snapshots) {
    this.#client = client;
    this.#snapshots = snapshots;
  }

  async list(account: Account, query: JobListQuery): Promise<Result<JobPage>> {
    const read = await this.#page(account, query);
    if (!read.ok) return read;
    const { jobs, nextCursor } = read.value;
    return ok({ jobs, ...(nextCursor !== undefined && { next_cursor: nextCursor }) });
  }

  /** Searches once for the job of a lost submission. */
  async search(account: Account, lost: LostSubmission): Promise<Result<JobSearch>> {
    const { capabilities } = this.#client;
    const { metadata } = lost;
    // Some servers ignore the filter, so every job is checked here as well.
    const byLabel =
      capabilities.labels === 'map' && metadata ? { metadata: firstLabels(metadata) } : {};
    const read = await this.#page(account, { limit: PAGE_SIZE, ...byLabel });
    if (!read.ok && capabilities.listing !== 'no') return read;
    if (!read.ok) return ok({ kind: 'no list', mayForgetKeys: capabilities.keys === 'unsure' });
    const candidates = read.value.jobs.filter((job) => this.#isCandidate(job, lost)).toReversed();
    for (const job of candidates) {
      if (!(await this.#claimIfOwn(account, job, lost))) continue;
      return ok({ kind: 'found', job: await this.#readFound(account, job, lost) });
    }
    return ok({ kind: this.#coversTime(read.value, lost) ? 'not listed' : 'not seen' });
  }

  /** Records that a job belongs to the submission with these labels: no other one gets it. */
  claim(jobId: string, labels: Labels): void {
    this.#claims.set(jobId, JSON.stringify(labels ?? null));
  }

  async #page(account: Account, query: JobListQuery): Promise<Result<Page>> {
    const { calls, links, capabilities } = this.#client;
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
    const nextCursor = typeof next === 'string' && next !== '' ? next : undefined;
    const isFull = json['jobs'].length >= (query.limit ?? Infinity);
    const hasMore = nextCursor !== undefined || json['truncated'] === true || isFull;
    return ok({ jobs: this.#noteListed(account, json['jobs']), nextCursor, hasMore });
  }

  /** Notes the ends of the listed jobs. Returns the jobs as they may be shown. */
  #noteListed(account: Account, items: readonly Json[]): readonly Job[] {
    const snapshots = this.#snapshots;
    const listed = items.flatMap((item) => readJob(item) ?? []);
    for (const { id, status } of listed) {
      if (IS_TERMINAL[status]) snapshots.noteListedEnd(account, id);
    }
    return listed.map((job) => redactJob(job, snapshots.secretsOf(account, job.id)));
  }

  /**
   * True when the job may be the one. A label proves it, whatever the clocks say. The same workflow
   * may have been submitted twice.
   */
  #isCandidate(job: Job, lost: LostSubmission): boolean {
    if (this.#isOfOther(job.id, lost.metadata)) return false;
    if (lost.metadata !== undefined && hasLabels(job, lost.metadata)) return true;
    return this.#atMs(job.created_at) >= lost.sentAtMs - CLOCK_SLACK_MS;
  }

  /** Claims the job when it is that of the submission, by its labels or its workflow. */
  async #claimIfOwn(account: Account, job: Job, lost: LostSubmission): Promise<boolean> {
    const { metadata } = lost;
    const isLabelled = metadata !== undefined && hasLabels(job, metadata);
    const isForeign = !isLabelled && job.metadata !== undefined && metadata !== undefined;
    if (isForeign || !(isLabelled || (await this.#hasWorkflow(account, job, lost)))) return false;
    if (this.#isOfOther(job.id, metadata) || (await lost.isClaimed?.(job.id)) === true)
      return false;
    this.claim(job.id, metadata);
    return true;
  }

  #isOfOther(jobId: string, labels: Labels): boolean {
    const owner = this.#claims.get(jobId);
    return owner !== undefined && (labels === undefined || owner !== JSON.stringify(labels));
  }

  async #hasWorkflow(account: Account, job: Job, lost: LostSubmission): Promise<boolean> {
    const { calls, capabilities } = this.#client;
    const name = JSON.stringify([job.id, lost.sentAtMs, lost.metadata]);
    if (this.#compared.has(name)) return false;
    const path = this.#snapshots.workflowTarget(account, job.id);
    const answer = await calls.callIdempotent(account, { method: 'GET', path });
    const stored = answer.ok ? readWorkflow(answer.value.json) : undefined;
    if (stored === undefined) return false;
    const sent = inAssetMode(lost.workflow, capabilities.assetMode);
    const isSame = isSameWorkflow(sent, stored.workflow);
    if (!isSame) this.#compared.set(name, true);
    return isSame;
  }

  /** Returns the job as it is now. */
  async #readFound(account: Account, job: Job, lost: LostSubmission): Promise<Job> {
    const snapshots = this.#snapshots;
    snapshots.noteSecrets(account, job.id, Object.values(lost.extraData ?? {}));
    const read = await snapshots.refresh(account, job.id);
    return read.ok ? read.value : redactJob(job, snapshots.secretsOf(account, job.id));
  }

  /**
   * True when the page reaches back far enough. Lists are newest first: jobs on later pages are
   * older.
   */
  #coversTime({ jobs, hasMore }: Page, { sentAtMs }: LostSubmission): boolean {
    return !hasMore || this.#atMs(jobs.at(-1)?.created_at ?? '') < sentAtMs - CLOCK_SLACK_MS;
  }

  /** Converts a time of the service to the clock of this machine. */
  #atMs(time: string): number {
    return Date.parse(time) - this.#client.capabilities.clockAheadMs;
  }
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
