import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { type JobEvent, type Result, isGone } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import type { Account } from '../remote-calls/accounts.ts';
import type { Subscribers } from './subscribers.ts';
import type { Calls } from '../remote-calls/calls.ts';
import type { UpstreamCapabilities } from '../remote/capabilities.ts';
import { type RemoteLimits, jittered, pollDelayMs } from '../remote/limits.ts';
import { type StreamCandidate, RANK, type StreamSlots } from './stream-slots.ts';
import { type CheckRate, watchSilence } from './silence-watch.ts';
import type { Snapshots } from './snapshots.ts';
import { readStreamOnce } from './read-stream.ts';

export type FollowOptions = {
  readonly calls: Calls;
  readonly snapshots: Snapshots;
  readonly streamSlots: StreamSlots;
  readonly capabilities: UpstreamCapabilities;
  readonly limits: RemoteLimits;
  readonly clock: Clock;
  readonly log: Logger;
  /** The rate of the reads that silent streams cause. */
  readonly checkRate: CheckRate;
};

export type FollowedJob = {
  readonly account: Account;
  readonly jobId: string;
  readonly subscribers: Subscribers;
  readonly isWatched: () => boolean;
  readonly signal: AbortSignal;
};

export type FollowedStream = {
  /** Resolves when the job is over, or `signal` aborts. */
  readonly done: Promise<void>;
  /** Another call reported the end of the job: read the job now. */
  readonly reportEnd: () => void;
};

/**
 * Publishes everything about a job until it ends: from a stream when there is a slot for one, from
 * polls otherwise. A stream that reports the end by a status alone is not trusted until the job
 * itself shows it.
 */
export function follow(options: FollowOptions, followedJob: FollowedJob): FollowedStream {
  const follower = createFollower(options, followedJob);
  async function followToEnd(): Promise<void> {
    try {
      while (!followedJob.signal.aborted && !(await follower.cycle()));
    } catch (error) {
      if (!followedJob.signal.aborted) throw error;
    } finally {
      follower.close();
      followedJob.subscribers.end();
    }
  }
  return { done: followToEnd(), reportEnd: () => follower.reportEnd() };
}

function createFollower(options: FollowOptions, followedJob: FollowedJob) {
  const { snapshots, streamSlots, capabilities, limits, clock } = options;
  const { account, jobId, subscribers, isWatched, signal } = followedJob;
  let isAwake = false;
  let wakeUp = (): void => {};
  let stream: AbortController | undefined;
  let reconnectMs = limits.reconnectMs.first;
  let noStreamUntilMs = 0;
  let tooLargeCount = 0;
  let cycles = 0;
  let polls = 0;
  let isEndReported = false;
  const candidate: StreamCandidate = {
    rank: () =>
      (isWatched() ? 0 : RANK.unwatched) + (subscribers.status() === 'running' ? 0 : RANK.queued),
    wake,
    preempt: () => stream?.abort(),
  };

  function wake(): void {
    isAwake = true;
    wakeUp();
  }

  /**
   * Rests, but not past the moment when a stream is to be had; that may have come before. One plain
   * timer: thousands of jobs rest at a time.
   */
  async function sleepUntilWoken(ms: number): Promise<void> {
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

  /** A job that was just read needs no request. After a pause it is read again. */
  async function readUnlessFresh(): Promise<boolean> {
    const isFresh = cycles++ === 0 || isEndReported;
    isEndReported = false;
    const freshJob = isFresh ? snapshots.fresh(account, jobId) : undefined;
    if (freshJob === undefined) return readAndPublish();
    subscribers.publishSnapshot(freshJob);
    return IS_TERMINAL[freshJob.status];
  }

  /** While the credential is refused, one caller at a time checks whether that is over. */
  async function readUnlessRefused(): Promise<Result<Job> | undefined> {
    const { credentialRefusal } = account;
    if (credentialRefusal === undefined) return snapshots.refresh(account, jobId);
    if (credentialRefusal.isBeingChecked || clock.now() < credentialRefusal.untilMs)
      return undefined;
    credentialRefusal.isBeingChecked = true;
    try {
      return await snapshots.refresh(account, jobId);
    } finally {
      credentialRefusal.isBeingChecked = false;
    }
  }

  /** Reads the job and shows it; true when that was the end. */
  async function readAndPublish(): Promise<boolean> {
    const read = await readUnlessRefused();
    if (read === undefined) return false;
    if (!read.ok) return isGone(read.error);
    const before = subscribers.status();
    subscribers.publishSnapshot(read.value);
    if (subscribers.status() !== before) polls = 0;
    return IS_TERMINAL[read.value.status];
  }

  /**
   * The job itself reports its end, after all its outputs. The terminal status may carry the job.
   */
  function handleEvent(event: JobEvent): void {
    if (event.event !== 'status') return subscribers.publish(event);
    snapshots.invalidate(account, jobId);
    const { status, job } = event.data;
    if (!IS_TERMINAL[status]) return subscribers.publish(event);
    // `expired` is checked: one server sends it for a job that it moves between two lists.
    if (job?.id === jobId && status !== 'expired') snapshots.store(account, job);
    else subscribers.publishEnding();
  }

  /** Even a healthy stream may have missed the end. */
  function readBesideStream(current: AbortController): void {
    readAndPublish().then(
      (isOver) => isOver && current.abort(),
      (error: unknown) =>
        options.log.debug(
          { event: 'upstream.read_failed', err: error },
          'could not read a job beside its stream',
        ),
    );
  }

  async function readStreamUntilEnd(): Promise<number> {
    const current = new AbortController();
    stream = current;
    const startedAtMs = clock.now();
    const silence = watchSilence(
      { ...limits.streamCheckMs, rate: options.checkRate, jitter: jittered },
      () => readBesideStream(current),
    );
    try {
      const streamed = await readStreamOnce(options, {
        account,
        path: snapshots.target(account, jobId, 'events'),
        signal: AbortSignal.any([signal, current.signal]),
        onEvent(event) {
          silence.noteActivity();
          handleEvent(event);
        },
        secrets: snapshots.secretsOf(account, jobId),
      });
      streamSlots.release(candidate);
      if (streamed.kind === 'crowded') streamSlots.noteLimit(streamed.forMs);
      // A second attempt would receive the same event; the job is polled meanwhile.
      if (streamed.kind === 'read' && streamed.end === 'too large' && tooLargeCount++ > 0) {
        noStreamUntilMs = clock.now() + limits.oddStreamMs;
      }
      if (clock.now() - startedAtMs >= limits.healthyStreamMs)
        reconnectMs = limits.reconnectMs.first;
      return streamed.kind === 'crowded' ? nextPollMs() : nextReconnectMs();
    } finally {
      silence.close();
      streamSlots.release(candidate);
      stream = undefined;
    }
  }

  /** How long no request is made for the account, or for this job alone. */
  function refusedForMs(): number {
    const ofJob = snapshots.refusedUntilMs(account, jobId) ?? 0;
    return Math.max(account.credentialRefusal?.untilMs ?? 0, ofJob) - clock.now();
  }

  function mayStream(): boolean {
    const refusedUntil = account.credentialRefusal ?? snapshots.refusedUntilMs(account, jobId);
    const mayCall = refusedUntil === undefined && account.gate.waitMs() === 0;
    return mayCall && clock.now() >= Math.max(capabilities.pollOnlyUntilMs, noStreamUntilMs);
  }

  function nextReconnectMs(): number {
    const ms = reconnectMs;
    reconnectMs = Math.min(reconnectMs * 2, limits.reconnectMs.last);
    return ms;
  }

  function nextPollMs(): number {
    const status = subscribers.status() ?? 'queued';
    return pollDelayMs(limits, { status, isWatched: isWatched(), polls: polls++ });
  }

  signal.addEventListener('abort', wake, { once: true });
  return {
    /** Reads one stream or polls once, then waits; true when the job is over. */
    async cycle(): Promise<boolean> {
      const waitMs =
        mayStream() && streamSlots.acquire(candidate) ? await readStreamUntilEnd() : undefined;
      if (signal.aborted || (await readUnlessFresh())) return true;
      await sleepUntilWoken(Math.max(jittered(waitMs ?? nextPollMs()), refusedForMs()));
      return false;
    },
    close() {
      signal.removeEventListener('abort', wake);
      streamSlots.remove(candidate);
    },
    reportEnd() {
      isEndReported = true;
      wake();
      stream?.abort();
    },
  };
}
