import type { PromptOutline } from '../ledger/ledger.ts';
import { yieldEvery } from '../lib/event-loop.ts';
import type { LivePrompt } from '../prompts/live-prompt.ts';
import { isNotStarted } from '../prompts/pending-reason.ts';
import { liveWord, type ListedStatus, LISTED_STATUS, wordOf } from '../translate/status.ts';
import type { JobListAnswer, JobSummary } from './api-types.ts';
import type { PromptServices } from './job-detail.ts';
import { createEndedSummaries, liveSummary } from './job-summary.ts';

export type JobPageQuery = {
  readonly limit: number;
  readonly cursor: string | undefined;
  /** The wanted statuses; empty for all. */
  readonly statuses: readonly ListedStatus[];
  readonly clientId: string | undefined;
  readonly api: 'v1' | 'v2' | undefined;
  /** A part of a name, an id, a client id or an error, in any case. */
  readonly text: string;
};

/**
 * The maximum number of ended prompts that one call reads. If a filter matches few of them, the
 * answer has fewer prompts and a cursor.
 */
const MAX_READ = 400;
const ROWS_PER_TURN = 20;

/**
 * Lists the prompts of a user: the running ones, then the waiting ones in their order, then the
 * ended ones, the latest first.
 */
export function createJobList({
  prompts,
  livePrompts,
}: PromptServices): (user: string, query: JobPageQuery) => Promise<JobListAnswer> {
  const endedSummary = createEndedSummaries(prompts);

  return async (user, query) => {
    const listed = livePrompts.list(user);
    const ended = (await prompts.outlines(user)).toReversed();
    const endedKeys = new Set(ended.map(({ key }) => key));
    const live = inDisplayOrder(listed.filter(({ key }) => !endedKeys.has(key)));
    const counts = countByStatus(live, ended);
    const found: JobSummary[] = [];
    const start = positionAfter(query.cursor, live, ended);
    for (let at = start.live; at < live.length; at++) {
      const { prompt, position } = live[at] as LiveEntry;
      if (found.length >= query.limit) return { jobs: found, next_cursor: `live ${at}`, counts };
      if (!hasStatus(query, LISTED_STATUS[liveWord(prompt)])) continue;
      const summary = liveSummary(prompt, position);
      if (isWanted(query, summary)) found.push(summary);
    }
    let read = 0;
    const pause = yieldEvery(ROWS_PER_TURN);
    for (let at = start.ended; at < ended.length; at++) {
      const outline = ended[at] as PromptOutline;
      if (!hasStatus(query, LISTED_STATUS[wordOf(outline)])) continue;
      if (found.length >= query.limit || read++ >= MAX_READ) {
        return { jobs: found, next_cursor: cursorBefore(ended, at), counts };
      }
      const summary = await endedSummary(outline);
      if (summary && isWanted(query, summary)) found.push(summary);
      await pause();
    }
    return { jobs: found, next_cursor: null, counts };
  };
}

type LiveEntry = { readonly prompt: LivePrompt; readonly position: number | null };

function inDisplayOrder(prompts: readonly LivePrompt[]): readonly LiveEntry[] {
  const running = prompts.filter((prompt) => !isNotStarted(prompt));
  const waiting = prompts.filter(isNotStarted);
  return [
    ...running.map((prompt) => ({ prompt, position: null })),
    ...waiting.map((prompt, index) => ({ prompt, position: index + 1 })),
  ];
}

/**
 * Makes a cursor that names the last ended prompt that was read, and its end, since the prompt may
 * be deleted meanwhile.
 */
function cursorBefore(ended: readonly PromptOutline[], at: number): string {
  const last = ended[at - 1];
  return last === undefined ? 'ended' : `ended ${last.endedAtMs ?? 0} ${last.key}`;
}

/**
 * Returns where a page begins. Prompts end while pages are read: a page may repeat one, and readers
 * compare `key`.
 */
function positionAfter(
  cursor: string | undefined,
  live: readonly LiveEntry[],
  ended: readonly PromptOutline[],
): { readonly live: number; readonly ended: number } {
  const [kind, value = '', key] = (cursor ?? '').split(' ');
  if (kind === 'live') return { live: Math.max(0, Number(value) || 0), ended: 0 };
  if (kind !== 'ended') return { live: 0, ended: 0 };
  const known = ended.findIndex((outline) => outline.key === key);
  if (known >= 0) return { live: live.length, ended: known + 1 };
  const endedAtMs = Number(value);
  const older = ended.findIndex((outline) => (outline.endedAtMs ?? 0) < endedAtMs);
  const next = value === '' ? 0 : older;
  return { live: live.length, ended: next < 0 ? ended.length : next };
}

function countByStatus(
  live: readonly LiveEntry[],
  ended: readonly PromptOutline[],
): Record<ListedStatus, number> {
  const counts = { pending: 0, in_progress: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const { prompt } of live) counts[LISTED_STATUS[liveWord(prompt)]]++;
  for (const outline of ended) counts[LISTED_STATUS[wordOf(outline)]]++;
  return counts;
}

function hasStatus({ statuses }: JobPageQuery, status: ListedStatus): boolean {
  return statuses.length === 0 || statuses.includes(status);
}

function isWanted({ clientId, api, text }: JobPageQuery, job: JobSummary): boolean {
  if (clientId !== undefined && (job.client_id ?? '') !== clientId) return false;
  if (api !== undefined && job.api !== api) return false;
  if (text === '') return true;
  const wanted = text.toLowerCase();
  const texts = [job.name, job.id, job.job_id, job.client_id, job.error];
  return texts.some((value) => value?.toLowerCase().includes(wanted));
}
