import type { Logger } from '../telemetry.ts';
import { type JobEvent, type Result, isGone } from '../wire/jobs.ts';
import { IS_TERMINAL, type Job } from '../wire/v2.ts';
import type { Account } from './accounts.ts';
import type { Audience } from './audience.ts';
import type { Calls } from './call.ts';
import type { Facts } from './facts.ts';
import { type RemoteLimits, jittered, pollPaceMs } from './limits.ts';
import { type Candidate, RANK, type Seats } from './seats.ts';
import { type AskRate, watchSilence } from './silence.ts';
import type { Snapshots } from './snapshots.ts';
import { streamOnce } from './stream.ts';

export type FollowDeps = {
  readonly calls: Calls;
  readonly snapshots: Snapshots;
  readonly seats: Seats;
  readonly facts: Facts;
  readonly limits: RemoteLimits;
  readonly clock: () => number;
  readonly log: Logger;
  /** Of the questions that silent streams give rise to. */
  readonly askRate: AskRate;
};

export type Followed = {
  readonly account: Account;
  readonly jobId: string;
  readonly audience: Audience;
  readonly isWatched: () => boolean;
  readonly signal: AbortSignal;
};

export type Following = {
  /** Resolves when the job is over, or `signal` aborts. */
  readonly done: Promise<void>;
  /** Some other call was told that the job is over: it is looked at now. */
  readonly endTold: () => void;
};

/**
 * Tells a job's audience all there is to tell until the job is over: from a stream while one can be
 * had, from polls while not. A stream that says of the end no more than its status is not believed
 * until the job says it.
 */
export function follow(deps: FollowDeps, followed: Followed): Following {
  const run = createRun(deps, followed);
  async function toTheEnd(): Promise<void> {
    try {
      while (!followed.signal.aborted && !(await run.turn()));
    } catch (error) {
      if (!followed.signal.aborted) throw error;
    } finally {
      run.close();
      followed.audience.end();
    }
  }
  return { done: toTheEnd(), endTold: () => run.endTold() };
}

function createRun(deps: FollowDeps, followed: Followed) {
  const { snapshots, seats, facts, limits, clock } = deps;
  const { account, jobId, audience, isWatched, signal } = followed;
  let isAwake = false;
  let wakeUp = (): void => {};
  let stream: AbortController | undefined;
  let reconnectMs = limits.reconnectMs.first;
  let noStreamUntilMs = 0;
  let tooLargeCount = 0;
  let turns = 0;
  let polls = 0;
  let isEndTold = false;
  const candidate: Candidate = {
    rank: () =>
      (isWatched() ? 0 : RANK.unwatched) + (audience.status() === 'running' ? 0 : RANK.queued),
    wake,
    yieldSeat: () => stream?.abort(),
  };

  function wake(): void {
    isAwake = true;
    wakeUp();
  }

  /**
   * Rests, but not past the moment when a stream is to be had; that may have come before. One plain
   * timer: thousands of jobs rest at a time.
   */
  async function rest(ms: number): Promise<void> {
    if (!isAwake && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        wakeUp = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    isAwake = false;
    wakeUp = () => {};
  }

  /** What was told of the job just now needs no question; whoever has rested asks. */
  async function lookUnlessTold(): Promise<boolean> {
    const isFresh = turns++ === 0 || isEndTold;
    isEndTold = false;
    const told = isFresh ? snapshots.fresh(account, jobId) : undefined;
    if (told === undefined) return look();
    audience.show(told);
    return IS_TERMINAL[told.status];
  }

  /** One question now and then, by whoever comes first, tells whether the key is good again. */
  async function ask(): Promise<Result<Job> | undefined> {
    const { refused } = account;
    if (refused === undefined) return snapshots.look(account, jobId);
    if (refused.isAskedAbout || clock() < refused.untilMs) return undefined;
    refused.isAskedAbout = true;
    try {
      return await snapshots.look(account, jobId);
    } finally {
      refused.isAskedAbout = false;
    }
  }

  /** Reads the job and shows it; true when that was the end. */
  async function look(): Promise<boolean> {
    const read = await ask();
    if (read === undefined) return false;
    if (!read.ok) return isGone(read.error);
    const before = audience.status();
    audience.show(read.value);
    if (audience.status() !== before) polls = 0;
    return IS_TERMINAL[read.value.status];
  }

  /** The end is the job's to tell, once all its outputs are told: it may come along with the status. */
  function hear(event: JobEvent): void {
    if (event.event !== 'status') return audience.tell(event);
    snapshots.outdate(account, jobId);
    const { status, job } = event.data;
    if (!IS_TERMINAL[status]) return audience.tell(event);
    // `expired` is asked about: one server says it of a job it is moving between two lists.
    if (job?.id === jobId && status !== 'expired') snapshots.learn(account, job);
    else audience.announceEnd();
  }

  /** Even a stream that seems well may have missed the end. */
  function lookBeside(current: AbortController): void {
    look().then(
      (isOver) => isOver && current.abort(),
      (error: unknown) => deps.log.debug({ err: error }, 'a look beside the stream failed'),
    );
  }

  async function listen(): Promise<number> {
    const current = new AbortController();
    stream = current;
    const startedAtMs = clock();
    const silence = watchSilence(
      { ...limits.streamCheckMs, rate: deps.askRate, jitter: jittered },
      () => lookBeside(current),
    );
    try {
      const streamed = await streamOnce(deps, {
        account,
        path: snapshots.target(account, jobId, 'events'),
        signal: AbortSignal.any([signal, current.signal]),
        onEvent(event) {
          silence.heard();
          hear(event);
        },
        secrets: snapshots.secretsOf(account, jobId),
      });
      seats.leave(candidate);
      if (streamed.kind === 'crowded') seats.crowded(streamed.forMs);
      // At the second time it would say the same again; the job is polled meanwhile.
      if (streamed.kind === 'read' && streamed.end === 'too large' && tooLargeCount++ > 0) {
        noStreamUntilMs = clock() + limits.oddStreamMs;
      }
      if (clock() - startedAtMs >= limits.healthyStreamMs) reconnectMs = limits.reconnectMs.first;
      return streamed.kind === 'crowded' ? pace() : nextReconnect();
    } finally {
      silence.close();
      seats.leave(candidate);
      stream = undefined;
    }
  }

  /** How long the account, or this job alone, is not asked about. */
  function refusedMs(): number {
    const ofJob = snapshots.refusedUntilMs(account, jobId) ?? 0;
    return Math.max(account.refused?.untilMs ?? 0, ofJob) - clock();
  }

  function mayStream(): boolean {
    const isRefused = account.refused ?? snapshots.refusedUntilMs(account, jobId);
    const mayCall = isRefused === undefined && account.gate.waitMs() === 0;
    return mayCall && clock() >= Math.max(facts.pollOnlyUntilMs, noStreamUntilMs);
  }

  function nextReconnect(): number {
    const ms = reconnectMs;
    reconnectMs = Math.min(reconnectMs * 2, limits.reconnectMs.last);
    return ms;
  }

  function pace(): number {
    const status = audience.status() ?? 'queued';
    return pollPaceMs(limits, { status, isWatched: isWatched(), polls: polls++ });
  }

  signal.addEventListener('abort', wake, { once: true });
  return {
    /** One stream or one poll, and the rest after it; true when the job is over. */
    async turn(): Promise<boolean> {
      const waitMs = mayStream() && seats.take(candidate) ? await listen() : undefined;
      if (signal.aborted || (await lookUnlessTold())) return true;
      await rest(Math.max(jittered(waitMs ?? pace()), refusedMs()));
      return false;
    },
    close() {
      signal.removeEventListener('abort', wake);
      seats.forget(candidate);
    },
    endTold() {
      isEndTold = true;
      wake();
      stream?.abort();
    },
  };
}
