import { setTimeout as delay } from 'node:timers/promises';
import { reached } from '../crash-point.ts';
import { yieldEvery } from '../lib/yield-every.ts';
import type { Input } from '../translate/progress-state.ts';
import { type JobEvent, isGone } from '../wire/jobs.ts';
import type { FileRef } from '../wire/v1.ts';
import { IS_TERMINAL, type Job, type Output } from '../wire/v2.ts';
import type { LivePrompt } from './board.ts';
import type { Endings } from './endings.ts';
import type { FollowerDeps } from './follower.ts';
import { isEnd, isKnown, isSignOfLife, isStart } from './input-kinds.ts';
import { nameOutput } from './names.ts';
import { placeOf } from './output-name.ts';
import { LeadLost } from './prompt-journal.ts';
import { outcomeOf } from './prompt-outcome.ts';
import type { Teller } from './teller.ts';

/** How a prompt ends without a job that tells it. */
export type JoblessEnd =
  | { readonly kind: 'canceled' }
  | { readonly kind: 'failed'; readonly error: NonNullable<Job['error']> }
  | { readonly kind: 'lost'; readonly reason: string };

/** Takes in what one job does, for its journal, and writes its history. */
export type Listener = {
  /** Takes a stream in, event by event. */
  hear(stream: AsyncIterable<JobEvent>): Promise<void>;
  /** Reads the job itself; true when that was the end. */
  look(jobId: string): Promise<boolean>;
  end(how: JoblessEnd): Promise<void>;
  /** Writes the history of a prompt whose end was heard, and v1's last word after it. */
  conclude(): Promise<void>;
};

export type ListenerDeps = Pick<
  FollowerDeps,
  | 'board'
  | 'jobs'
  | 'ledger'
  | 'journal'
  | 'log'
  | 'now'
  | 'onEnded'
  | 'mayLoseJobs'
  | 'resend'
  | 'history'
> & {
  readonly endings: Endings;
  /** Hears how much is stored of each prompt that has ended. */
  readonly onStored: (bytes: number) => void;
};

/** So many events of a prompt are taken in before others have their turn. */
const EVENTS_A_TURN = 32;
/** What runs in another order than v1's is told so much later. */
const SAME_MOMENT_MS = 50;
/** A disk that is full now may have room later; the outcome is kept until then. */
const REWRITE_MS = 1000;
/** Nothing is due later than that, unless the clock was set back. */
const MOST_IDLE_MS = 5000;

export function createListener(
  deps: ListenerDeps,
  prompt: LivePrompt,
  teller: Pick<Teller, 'state' | 'hasEnded' | 'dueMs'>,
): Listener {
  const { board, jobs, ledger, journal, endings, log, now } = deps;
  const { user } = prompt.caller;
  let waitedAtMs: number | undefined;
  let hasBegun = false;
  /** Outputs that were told here, by their ids. */
  const named = new Map<string, { readonly output: Output; readonly file: FileRef }>();

  async function take(input: Input): Promise<void> {
    if (isEnd(input)) endings.begin(user, prompt.key);
    else {
      // Whatever else it says: it has not ended after all.
      endings.done(user, prompt.key);
      if (isStart(input) && prompt.status === 'queued') await itsTurn();
    }
    await noteBegin(input);
    await journal.append(prompt.key, { kind: 'input', input });
    if (teller.hasEnded()) await conclude();
  }

  /** A later process must know that the job has begun: one that has is not to be sent again. */
  async function noteBegin(input: Input): Promise<void> {
    if (!deps.mayLoseJobs || hasBegun || !isSignOfLife(input)) return;
    hasBegun = true;
    await ledger.prompts.begin(prompt.key, input.atMs);
  }

  /** Streams that speak in the same moment may be read in any order. */
  async function itsTurn(): Promise<void> {
    if (board.isEarly(prompt)) await delay(SAME_MOMENT_MS);
    await endings.over(user);
  }

  async function conclude(): Promise<void> {
    const state = teller.state();
    const outcome = await outcomeOf(prompt, state, deps.history.graphBytes);
    await persist(() => ledger.prompts.finish(prompt.key, outcome));
    reached('after-history');
    await journal.append(prompt.key, { kind: 'recorded' });
    endings.done(user, prompt.key);
    deps.onEnded?.(outcome.statusWord);
    deps.onStored(outcome.entryJson.length);
    const { startedAtMs, endedAtMs } = state;
    const ms = Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? endedAtMs ?? 0));
    log.info({ user, promptId: prompt.promptId, ms }, 'prompt executed');
  }

  async function persist(write: () => Promise<void>): Promise<void> {
    while (journal.leads(prompt.key)) {
      try {
        return await write();
      } catch (error) {
        if (error instanceof LeadLost) throw error;
        log.error(
          { err: error, user, promptId: prompt.promptId },
          'history could not be written, trying again',
        );
        await delay(REWRITE_MS);
      }
    }
  }

  async function takeEvent(event: JobEvent): Promise<void> {
    const atMs = now();
    if (event.event === 'status' && event.data.status === 'queued') waitedAtMs = atMs;
    if (event.event === 'output') {
      const file = await nameOutput(ledger.files, user, event.data, atMs);
      named.set(event.data.id, { output: event.data, file });
      reached('after-output-named');
      return take({ kind: 'output', output: event.data, file, atMs });
    }
    if (isKnown(event, teller.state())) return endings.done(user, prompt.key);
    return take({ kind: 'event', event, atMs });
  }

  async function nameAll(job: Job): Promise<Map<string, FileRef>> {
    const files = new Map<string, FileRef>();
    const pause = yieldEvery(EVENTS_A_TURN);
    for (const output of job.outputs) {
      files.set(output.id, await nameOutput(ledger.files, user, output, now()));
      await pause();
    }
    return files;
  }

  /**
   * A service that died in the middle of a job runs it again from the start: the same file has
   * another id then, and the first one is gone. Only the one that is there keeps a name.
   */
  async function unnameReplaced(job: Job): Promise<void> {
    for (const { output, file } of named.values()) {
      const isThere = job.outputs.some(({ id }) => id === output.id);
      if (isThere || !job.outputs.some((other) => isReplacedBy(output, other))) continue;
      await ledger.files.remove(user, file);
      named.delete(output.id);
    }
  }

  /** The same where an earlier process named the file that is gone: only its service can tell. */
  async function unnameGone(output: Output): Promise<void> {
    const place = placeOf(output.name, output.x_subfolder);
    const held = await ledger.files.get(user, {
      ...place,
      type: output.x_temp ? 'temp' : 'output',
    });
    if (!held || held.assetId === output.id || held.modifiedAtMs < prompt.createdAtMs) return;
    const asset = await jobs.asset(prompt.caller, held.assetId);
    if (!asset.ok && isGone(asset.error)) await ledger.files.remove(user, held);
  }

  async function takeJob(job: Job): Promise<boolean> {
    await unnameReplaced(job);
    if (deps.mayLoseJobs && prompt.isResumed) {
      for (const output of job.outputs) await unnameGone(output);
    }
    const kind = IS_TERMINAL[job.status] ? 'settled' : 'snapshot';
    await take({ kind, job, files: await nameAll(job), atMs: now() });
    return teller.hasEnded();
  }

  return {
    async hear(stream) {
      const events = stream[Symbol.asyncIterator]();
      const pause = yieldEvery(EVENTS_A_TURN);
      let next = events.next();
      for (;;) {
        const dueMs = teller.dueMs();
        const winner =
          dueMs === null ? await next : await orIdle(next, Math.min(dueMs - now(), MOST_IDLE_MS));
        if (winner === undefined) {
          // Should this throw, nobody waits for it any more.
          next.catch(ignore);
          await take({ kind: 'idle', atMs: now() });
        } else if (winner.done) return;
        else {
          await takeEvent(winner.value);
          await pause();
          next = events.next();
        }
      }
    },
    async look(jobId) {
      const read = await jobs.get(prompt.caller, jobId);
      const gone = read.ok ? read.value.status === 'expired' : isGone(read.error);
      // One upstream forgets what is taken out of its queue: a job we cancelled is not lost.
      if (gone && prompt.cancelAsked) return takeJob(cancelled(prompt, read));
      const isLost = gone || (read.ok && isLostWaiting(read.value));
      if (isLost) {
        const job = read.ok ? read.value : undefined;
        const resent = await deps.resend(prompt, { job, waitedAtMs });
        if (resent !== 'final') return resent === 'sent';
      } else if (read.ok) waitedAtMs = now();
      if (read.ok) return takeJob(read.value);
      if (gone) await take({ kind: 'lost', reason: read.error.message, atMs: now() });
      return gone;
    },
    conclude,
    async end(how) {
      const atMs = now();
      if (how.kind === 'lost') return take({ kind: 'lost', reason: how.reason, atMs });
      const error = how.kind === 'failed' ? how.error : null;
      const job = { ...unbornJob(prompt), status: how.kind, error };
      await take({ kind: 'settled', job, files: new Map(), atMs });
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
  const job = read.ok ? read.value : unbornJob(prompt);
  return { ...job, status: 'canceled' };
}

/** Stands for a job that never came to be, or is gone. */
function unbornJob({ key, createdAtMs }: LivePrompt): Job {
  const bornAt = new Date(createdAtMs).toISOString();
  return {
    id: key,
    status: 'canceled',
    created_at: bornAt,
    started_at: null,
    completed_at: null,
    expires_at: bornAt,
    queue_position: null,
    progress: null,
    outputs: [],
    error: null,
    urls: { self: '', events: '', cancel: '' },
  };
}

/** The next event, or `undefined` after so long; no timer is left behind by an event that was faster. */
function orIdle<T>(next: Promise<T>, ms: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), Math.max(1, ms));
    timer.unref();
    next.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function ignore(): void {}
