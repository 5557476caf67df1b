import { setTimeout as delay } from 'node:timers/promises';
import { reached } from '../../lib/crash-point.ts';
import { yieldEvery } from '../../lib/yield-every.ts';
import type { ProgressInput } from '../../translate/progress-state.ts';
import { type JobApi, type JobEvent, isGone } from '../../protocol/job-api.ts';
import type { FileRef } from '../../protocol/v1.ts';
import { IS_TERMINAL, type Job, type Output } from '../../protocol/v2.ts';
import type { LivePrompt, LivePrompts } from '../live-prompts.ts';
import type { EndingPrompts } from './ending-prompts.ts';
import { endsJob, isKnown, showsActivity, startsJob } from '../state/progress-input-kinds.ts';
import { nameOutput } from '../../files/name-output.ts';
import { locationOf } from '../../files/output-name.ts';
import { LeadershipLost, type PromptEventLog } from '../prompt-event-log.ts';
import type { HistoryLimits, Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import type { Resend } from './missing-job.ts';
import { toOutcome } from '../state/outcome.ts';
import type { EntryApplier } from './apply-entry.ts';

/** The end of a prompt that has no job to report it. */
export type EndWithoutJob =
  | { readonly kind: 'canceled' }
  | { readonly kind: 'failed'; readonly error: NonNullable<Job['error']> }
  | { readonly kind: 'lost'; readonly reason: string };

/** Appends the events of one job to the log of its prompt, and writes its history. */
export type JobConsumer = {
  /** Consumes an event stream. */
  consume(stream: AsyncIterable<JobEvent>): Promise<void>;
  /** Reads the job; true when it has ended. */
  poll(jobId: string): Promise<boolean>;
  end(result: EndWithoutJob): Promise<void>;
  /** Writes the history of a prompt whose end is in its log, then sends v1's last frame. */
  finish(): Promise<void>;
};

export type JobConsumerOptions = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly promptEventLog: PromptEventLog;
  readonly livePrompts: LivePrompts;
  readonly log: Logger;
  readonly now: () => number;
  /** Limits of each user's history, and of one prompt's graph in it. */
  readonly history: HistoryLimits & { readonly graphBytes: number };
  /** True when the upstream may lose jobs it accepted. */
  readonly mayLoseJobs: boolean;
  /** Decides about a prompt whose job was lost, or failed, before it started. */
  readonly resend: Resend;
  /** Called with v1's status word of each ended prompt. */
  readonly onEnded?: (statusWord: string) => void;
  readonly endingPrompts: EndingPrompts;
  /** Called with the stored bytes of each ended prompt. */
  readonly onStored: (bytes: number) => void;
};

/** Events of one prompt that are consumed before the event loop gets its turn. */
const EVENTS_PER_TURN = 32;
/** Delay of a start that arrives before the start of an earlier job. */
const REORDER_WINDOW_MS = 50;
/** Wait before the history is written again: a full disk may have space later. */
const HISTORY_RETRY_MS = 1000;
/** Longest wait for a due input, in case the clock was set back. */
const MAX_IDLE_MS = 5000;

export function createJobConsumer(
  deps: JobConsumerOptions,
  prompt: LivePrompt,
  entryApplier: Pick<EntryApplier, 'state' | 'hasEnded' | 'nextDueMs'>,
): JobConsumer {
  const { livePrompts, jobs, ledger, promptEventLog, endingPrompts, log, now } = deps;
  const { user } = prompt.caller;
  let lastQueuedAtMs: number | undefined;
  let hasBegun = false;
  /** Outputs that were named here, by id. */
  const namedOutputs = new Map<string, { readonly output: Output; readonly file: FileRef }>();

  async function receive(input: ProgressInput): Promise<void> {
    if (endsJob(input)) endingPrompts.begin(user, prompt.key);
    else {
      // Any other input shows that it has not ended after all.
      endingPrompts.finish(user, prompt.key);
      if (startsJob(input) && prompt.status === 'queued') await waitForTurn();
    }
    await recordBegin(input);
    await promptEventLog.append(prompt.key, { kind: 'input', input });
    if (entryApplier.hasEnded()) await finish();
  }

  /** Records that the job has started: such a job is never sent again, by any process. */
  async function recordBegin(input: ProgressInput): Promise<void> {
    if (!deps.mayLoseJobs || hasBegun || !showsActivity(input)) return;
    hasBegun = true;
    await ledger.prompts.begin(prompt.key, input.atMs);
  }

  /** Streams that report at the same moment may be read in any order. */
  async function waitForTurn(): Promise<void> {
    if (livePrompts.hasEarlierQueued(prompt)) await delay(REORDER_WINDOW_MS);
    await endingPrompts.whenFinished(user);
  }

  async function finish(): Promise<void> {
    const state = entryApplier.state();
    const outcome = await toOutcome(prompt, state, deps.history.graphBytes);
    await retryWrite(() => ledger.prompts.finish(prompt.key, outcome));
    reached('after-history');
    await promptEventLog.append(prompt.key, { kind: 'recorded' });
    endingPrompts.finish(user, prompt.key);
    deps.onEnded?.(outcome.statusWord);
    deps.onStored(outcome.entryJson.length);
    const { startedAtMs, endedAtMs } = state;
    const ms = Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? endedAtMs ?? 0));
    const facts = { event: 'prompt.finished', user, promptId: prompt.promptId, ms };
    log.info(facts, 'prompt executed');
  }

  async function retryWrite(write: () => Promise<void>): Promise<void> {
    while (promptEventLog.isLeader(prompt.key)) {
      try {
        return await write();
      } catch (error) {
        if (error instanceof LeadershipLost) throw error;
        log.error(
          { event: 'prompt.history_failed', err: error, user, promptId: prompt.promptId },
          'could not write the history of a prompt; retrying',
        );
        await delay(HISTORY_RETRY_MS);
      }
    }
  }

  async function receiveEvent(event: JobEvent): Promise<void> {
    const atMs = now();
    if (event.event === 'status' && event.data.status === 'queued') lastQueuedAtMs = atMs;
    if (event.event === 'output') {
      const file = await nameOutput(ledger.files, user, event.data, atMs);
      namedOutputs.set(event.data.id, { output: event.data, file });
      reached('after-output-named');
      return receive({ kind: 'output', output: event.data, file, atMs });
    }
    if (isKnown(event, entryApplier.state())) return endingPrompts.finish(user, prompt.key);
    return receive({ kind: 'event', event, atMs });
  }

  async function nameOutputs(job: Job): Promise<Map<string, FileRef>> {
    const files = new Map<string, FileRef>();
    const pause = yieldEvery(EVENTS_PER_TURN);
    for (const output of job.outputs) {
      files.set(output.id, await nameOutput(ledger.files, user, output, now()));
      await pause();
    }
    return files;
  }

  /**
   * A service that restarts runs the job again from its start. The same file then has another id,
   * and the first one is gone. Only the existing file keeps a name.
   */
  async function removeReplacedNames(job: Job): Promise<void> {
    for (const { output, file } of namedOutputs.values()) {
      const isPresent = job.outputs.some(({ id }) => id === output.id);
      if (isPresent || !job.outputs.some((other) => isReplacedBy(output, other))) continue;
      await ledger.files.remove(user, file);
      namedOutputs.delete(output.id);
    }
  }

  /** The same for a file that an earlier process named: only the upstream knows that it is gone. */
  async function removeGoneName(output: Output): Promise<void> {
    const place = locationOf(output.name, output.x_subfolder);
    const existing = await ledger.files.get(user, {
      ...place,
      type: output.x_temp ? 'temp' : 'output',
    });
    if (!existing || existing.assetId === output.id || existing.modifiedAtMs < prompt.createdAtMs)
      return;
    const asset = await jobs.asset(prompt.caller, existing.assetId);
    if (!asset.ok && isGone(asset.error)) await ledger.files.remove(user, existing);
  }

  async function receiveJob(job: Job): Promise<boolean> {
    await removeReplacedNames(job);
    if (deps.mayLoseJobs && prompt.isResumed) {
      for (const output of job.outputs) await removeGoneName(output);
    }
    const kind = IS_TERMINAL[job.status] ? 'settled' : 'snapshot';
    await receive({ kind, job, files: await nameOutputs(job), atMs: now() });
    return entryApplier.hasEnded();
  }

  return {
    async consume(stream) {
      const events = stream[Symbol.asyncIterator]();
      const pause = yieldEvery(EVENTS_PER_TURN);
      let next = events.next();
      for (;;) {
        const dueMs = entryApplier.nextDueMs();
        const received =
          dueMs === null
            ? await next
            : await nextOrTimeout(next, Math.min(dueMs - now(), MAX_IDLE_MS));
        if (received === undefined) {
          // Nothing awaits it any more if this throws.
          next.catch(ignoreError);
          await receive({ kind: 'idle', atMs: now() });
        } else if (received.done) return;
        else {
          await receiveEvent(received.value);
          await pause();
          next = events.next();
        }
      }
    },
    async poll(jobId) {
      const read = await jobs.get(prompt.caller, jobId);
      const gone = read.ok ? read.value.status === 'expired' : isGone(read.error);
      // One upstream forgets jobs that are deleted from its queue: a job we cancelled is not lost.
      if (gone && prompt.cancelRequested) return receiveJob(cancelled(prompt, read));
      const isLost = gone || (read.ok && isLostWaiting(read.value));
      if (isLost) {
        const job = read.ok ? read.value : undefined;
        const resendResult = await deps.resend(prompt, { job, lastQueuedAtMs });
        if (resendResult !== 'final') return resendResult === 'sent';
      } else if (read.ok) lastQueuedAtMs = now();
      if (read.ok) return receiveJob(read.value);
      if (gone) await receive({ kind: 'lost', reason: read.error.message, atMs: now() });
      return gone;
    },
    finish,
    async end(result) {
      const atMs = now();
      if (result.kind === 'lost') return receive({ kind: 'lost', reason: result.reason, atMs });
      const error = result.kind === 'failed' ? result.error : null;
      const job = { ...placeholderJob(prompt), status: result.kind, error };
      await receive({ kind: 'settled', job, files: new Map(), atMs });
    },
  };
}

function isReplacedBy(one: Output, other: Output): boolean {
  const isSameFile = one.name === other.name && one.x_subfolder === other.x_subfolder;
  return one.id !== other.id && one.node_id === other.node_id && isSameFile;
}

/** A service that says its engine lost a job which was waiting there. */
function isLostWaiting({ status, error, started_at: startedAt }: Job): boolean {
  return status === 'failed' && error?.code === 'worker_lost' && startedAt === null;
}

function cancelled(
  prompt: LivePrompt,
  read: { readonly ok: true; readonly value: Job } | { readonly ok: false },
): Job {
  const job = read.ok ? read.value : placeholderJob(prompt);
  return { ...job, status: 'canceled' };
}

/** Stands in for a job that was never made, or is gone. */
function placeholderJob({ key, createdAtMs }: LivePrompt): Job {
  const createdAt = new Date(createdAtMs).toISOString();
  return {
    id: key,
    status: 'canceled',
    created_at: createdAt,
    started_at: null,
    completed_at: null,
    expires_at: createdAt,
    queue_position: null,
    progress: null,
    outputs: [],
    error: null,
    urls: { self: '', events: '', cancel: '' },
  };
}

/** The next event, or `undefined` after `ms` milliseconds. Leaves no timer behind. */
function nextOrTimeout<T>(next: Promise<T>, ms: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), Math.max(1, ms));
    timer.unref();
    next.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function ignoreError(): void {}
