import { setTimeout as delay } from 'node:timers/promises';
import { hasEvidence, initialProgress } from '../translate/progress-state.ts';
import { idleDueMs, step } from '../translate/progress.ts';
import type { JobEvent } from '../wire/jobs.ts';
import type { FileRef } from '../wire/v1.ts';
import { IS_TERMINAL, type Job } from '../wire/v2.ts';
import type { LivePrompt } from './board.ts';
import type { FollowerDeps } from './follower.ts';
import { nameOutput } from './names.ts';
import { type SpeakerDeps, createSpeaker } from './speaker.ts';

/** How a prompt ends without a job that tells it. */
export type JoblessEnd =
  | { readonly kind: 'canceled' }
  | { readonly kind: 'failed'; readonly error: NonNullable<Job['error']> }
  | { readonly kind: 'lost'; readonly reason: string };

/** Takes in what one job does and says it in v1's words. */
export type Listener = {
  /** Takes a stream in, event by event. */
  hear(stream: AsyncIterable<JobEvent>): Promise<void>;
  /** Reads the job itself; true when that was the end. */
  look(jobId: string): Promise<boolean>;
  end(how: JoblessEnd): Promise<void>;
};

export type ListenerDeps = SpeakerDeps & Pick<FollowerDeps, 'now'>;

/** One upstream says `expired` of a job it is just moving between two lists. */
const SECOND_LOOK_MS = 500;

export function createListener(deps: ListenerDeps, prompt: LivePrompt): Listener {
  const { jobs, ledger, hub, now } = deps;
  const { user } = prompt.caller;
  const speaker = createSpeaker(deps, prompt);
  let state = initialProgress({ promptId: prompt.promptId, graph: prompt.graph });
  let missing = 0;

  async function take(input: Parameters<typeof step>[1]): Promise<void> {
    const turn = step(state, input);
    state = turn.state;
    prompt.hasEvidence = hasEvidence(state);
    prompt.startedAtMs = state.startedAtMs;
    for (const effect of turn.effects) await speaker.say(effect, state);
  }

  async function takeEvent(event: JobEvent): Promise<void> {
    const atMs = now();
    if (event.event === 'output') {
      const file = await nameOutput(ledger.files, user, event.data, atMs);
      return take({ kind: 'output', output: event.data, file, atMs });
    }
    if (event.event === 'status') noteStatus(event.data.status);
    return take({ kind: 'event', event, atMs });
  }

  /** v1 tells its sockets the count once more when a prompt leaves the queue. */
  function noteStatus(status: Job['status']): void {
    const starts = status === 'running' && prompt.status === 'queued';
    if (!IS_TERMINAL[status]) prompt.status = status;
    if (starts) hub.status(user);
  }

  async function nameAll(job: Job): Promise<Map<string, FileRef>> {
    const files = new Map<string, FileRef>();
    for (const output of job.outputs) {
      files.set(output.id, await nameOutput(ledger.files, user, output, now()));
    }
    return files;
  }

  async function takeJob(job: Job): Promise<boolean> {
    const kind = IS_TERMINAL[job.status] ? 'settled' : 'snapshot';
    if (job.status === 'running') noteStatus('running');
    await take({ kind, job, files: await nameAll(job), atMs: now() });
    return state.phase === 'ended';
  }

  return {
    async hear(stream) {
      const events = stream[Symbol.asyncIterator]();
      let next = events.next();
      for (;;) {
        const dueMs = idleDueMs(state);
        const winner =
          dueMs === null ? await next : await Promise.race([next, idle(dueMs - now())]);
        if (winner === undefined) await take({ kind: 'idle', atMs: now() });
        else if (winner.done) return;
        else {
          await takeEvent(winner.value);
          next = events.next();
        }
      }
    },
    async look(jobId) {
      const read = await jobs.get(prompt.caller, jobId);
      const gone = read.ok ? read.value.status === 'expired' : read.error.status === 404;
      if (gone && missing++ === 0) {
        await delay(SECOND_LOOK_MS);
        return this.look(jobId);
      }
      if (!gone) missing = 0;
      // One upstream forgets what is taken out of its queue: a job we cancelled is not lost.
      if (gone && prompt.cancelAsked) return takeJob(cancelled(prompt, read));
      if (read.ok) return takeJob(read.value);
      if (gone) await take({ kind: 'lost', reason: read.error.message, atMs: now() });
      return gone;
    },
    async end(how) {
      const atMs = now();
      if (how.kind === 'lost') return take({ kind: 'lost', reason: how.reason, atMs });
      const error = how.kind === 'failed' ? how.error : null;
      const job = { ...unbornJob(prompt), status: how.kind, error };
      await take({ kind: 'settled', job, files: new Map(), atMs });
    },
  };
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

async function idle(ms: number): Promise<undefined> {
  await delay(Math.max(1, ms), undefined, { ref: false });
}
