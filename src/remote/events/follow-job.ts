import { withJitter } from '../../lib/retry.ts';
import { type JobEvent, isGone } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import { pollDelayMs } from '../limits.ts';
import { type StreamCandidate, RANK } from './stream-slots.ts';
import { type FollowOptions, type FollowedJob, JobReads } from './job-reads.ts';
import { SilenceWatch } from './silence-watch.ts';
import { type StreamAttempt, readStreamOnce } from './read-stream.ts';
import { Subscribers } from './subscribers.ts';
import { InterruptibleSleep } from './interruptible-sleep.ts';

/** A read may overtake events that the service has sent before it: so long they may still arrive. */
const STREAM_LAG_MS = 100;

/**
 * Publishes everything about a job until it ends: from a stream when a slot is free, else from
 * polls. When a stream reports the end by a status alone, the job is read. The only state is the
 * timing of streams and polls; everything else is read from the services.
 */
export class JobFollower implements StreamCandidate {
  readonly #options: FollowOptions;
  readonly #job: FollowedJob;
  readonly #subscribers: Subscribers;
  readonly #pause = new InterruptibleSleep();
  readonly #reads: JobReads;
  #stream: AbortController | undefined;
  #isStopped = false;
  #reconnectMs: number;
  #noStreamUntilMs = 0;
  #tooLargeCount = 0;
  #polls = 0;
  /** The number of events that streams have brought. */
  #events = 0;
  /**
   * True at first, and when another call has reported the end of the job: it has just read it. False
   * when the stream has reported the end.
   */
  #mayUseSnapshot = true;
  /** True when the stream has reported the end of the job alone. */
  #isEndStreamed = false;

  /** `onEmpty` is called when the last subscriber leaves before the end. */
  constructor(options: FollowOptions, job: FollowedJob, onEmpty: () => void) {
    this.#options = options;
    this.#job = job;
    this.#subscribers = new Subscribers(() => {
      this.stop();
      onEmpty();
    });
    this.#reads = new JobReads(options, job, () => this.rank());
    this.#reconnectMs = options.limits.reconnectMs.first;
  }

  subscribe(signal: AbortSignal): AsyncIterable<JobEvent> {
    return this.#subscribers.subscribe(signal);
  }

  rank(): number {
    const isRunning = this.#subscribers.status() === 'running';
    return (this.#isWatched() ? 0 : RANK.unwatched) + (isRunning ? 0 : RANK.queued);
  }

  wake(): void {
    this.#pause.interrupt();
  }

  preempt(): void {
    this.#stream?.abort();
  }

  /** Resolves when the job is over, or when a stop is requested. */
  async run(): Promise<void> {
    try {
      while (!this.#isStopped) {
        const reconnectMs = this.#takeSlot() ? await this.#readStreamUntilEnd() : undefined;
        if (this.#isStopped || (await this.#readUnlessFresh())) return;
        await this.#pause.sleep(this.#waitMs(reconnectMs));
      }
    } catch (error) {
      if (!this.#isStopped) throw error;
    } finally {
      this.#options.sharing.streamSlots.remove(this);
      this.#subscribers.end();
    }
  }

  /** Takes a slot for a stream. False when the job is to be polled. */
  #takeSlot(): boolean {
    const { streamSlots } = this.#options.sharing;
    if (this.#mayStream()) return streamSlots.acquire(this);
    streamSlots.remove(this);
    return false;
  }

  /** The wait before the next stream or poll. `reconnectMs`: the wait that the last stream asks for. */
  #waitMs(reconnectMs: number | undefined): number {
    const waitsMs = [reconnectMs, this.#failedReadMs()].filter((ms) => ms !== undefined);
    const nextMs = waitsMs.length > 0 ? Math.min(...waitsMs) : this.#nextPollMs();
    return Math.max(withJitter(nextMs), this.#reads.refusedForMs());
  }

  /**
   * Ends the job: a call has reported its end. Not while the stream reports it: outputs may follow,
   * and the answer may be older than they are.
   */
  reportEnd(): void {
    if (this.#isEndStreamed) return;
    if (!this.#stream) return this.#endFromSnapshot();
    const eventsBefore = this.#events;
    this.#options.clock.callAfter(STREAM_LAG_MS, () => {
      if (this.#events === eventsBefore) this.#endFromSnapshot();
    });
  }

  #endFromSnapshot(): void {
    this.#mayUseSnapshot = true;
    this.#endWait();
  }

  /** Stops: the events are not read any more. */
  stop(): void {
    this.#isStopped = true;
    this.#endWait();
  }

  #endWait(): void {
    this.#reads.skipTurn();
    this.#pause.interrupt();
    this.#stream?.abort();
  }

  /**
   * Shows the job as another call has just read it, else reads it at its turn, or at once when its
   * stream has just reported its end. True when it has ended.
   */
  async #readUnlessFresh(): Promise<boolean> {
    let known = this.#knownJob();
    if (!known && !this.#isEndStreamed) {
      await this.#reads.waitForTurn();
      known = this.#knownJob();
    }
    this.#isEndStreamed = false;
    if (this.#isStopped) return false;
    return known ? this.#show(known) : this.#readAndShow();
  }

  /** The job as another call has just read it, if that will do. */
  #knownJob(): Job | undefined {
    const mayUse = this.#mayUseSnapshot;
    this.#mayUseSnapshot = false;
    return mayUse ? this.#options.snapshots.fresh(this.#job.account, this.#job.jobId) : undefined;
  }

  /** Shows the job. True when it has ended. */
  #show(job: Job): boolean {
    this.#subscribers.publishSnapshot(job);
    return IS_TERMINAL[job.status];
  }

  /**
   * Reads the job and shows it. True when it has ended. An answer is out of date when an event
   * arrives before it. `reportEnd` ends a job whose stream is open.
   */
  async #readAndShow(): Promise<boolean> {
    const eventsBefore = this.#events;
    const read = await this.#reads.read();
    if (read === undefined || this.#events !== eventsBefore) return false;
    if (!read.ok) return isGone(read.error);
    if (this.#stream && IS_TERMINAL[read.value.status]) return false;
    const before = this.#subscribers.status();
    const hasEnded = this.#show(read.value);
    if (this.#subscribers.status() !== before) this.#polls = 0;
    return hasEnded;
  }

  /**
   * Handles an event. The job itself reports its end, after all its outputs. A terminal status may
   * include the job.
   */
  #handleEvent(event: JobEvent): void {
    const { account, jobId } = this.#job;
    this.#events++;
    if (event.event !== 'status') return this.#subscribers.publish(event);
    this.#options.snapshots.invalidate(account, jobId);
    const { status, job } = event.data;
    if (!IS_TERMINAL[status]) return this.#subscribers.publish(event);
    // `expired` is checked: one server sends it for a job that it moves between two lists.
    if (job?.id === jobId && status !== 'expired') {
      this.#options.snapshots.store(account, job);
      this.#endFromSnapshot();
    } else {
      this.#isEndStreamed = true;
      this.#mayUseSnapshot = false;
      this.#subscribers.publishEnding();
    }
  }

  /** Reads the job while its stream is open: even a working stream may have missed the end. */
  #readBesideStream(current: AbortController, silence: SilenceWatch): void {
    this.#readAndShow().then(
      (isOver) => {
        const failedMs = this.#failedReadMs();
        if (isOver) current.abort();
        else if (failedMs !== undefined)
          silence.checkAgainIn(Math.max(failedMs, this.#reads.refusedForMs()));
      },
      (error: unknown) =>
        this.#options.log.debug(
          { event: 'upstream.read_failed', err: error },
          'could not read a job beside its stream',
        ),
    );
  }

  /** Reads one stream. Returns the wait before the next attempt. */
  async #readStreamUntilEnd(): Promise<number> {
    const { limits, clock, sharing } = this.#options;
    const current = new AbortController();
    this.#stream = current;
    const startedAtMs = clock.now();
    const requestTurn = (begin: () => void) => this.#reads.requestTurn(begin);
    const silence: SilenceWatch = new SilenceWatch(
      { ...limits.streamCheckMs, requestTurn, jitter: withJitter },
      () => this.#readBesideStream(current, silence),
    );
    try {
      const attempt = await this.#readStream(current.signal, silence);
      sharing.streamSlots.release(this);
      return this.#waitAfter(attempt, clock.now() - startedAtMs);
    } finally {
      silence.close();
      sharing.streamSlots.release(this);
      this.#stream = undefined;
    }
  }

  #readStream(stop: AbortSignal, silence: SilenceWatch): Promise<StreamAttempt> {
    const { snapshots } = this.#options;
    const { account, jobId } = this.#job;
    return readStreamOnce(this.#options, {
      account,
      path: snapshots.target(account, jobId, 'events'),
      signal: stop,
      onEvent: (event) => {
        this.#handleEvent(event);
        // After the reported end outputs may follow, so the job is read when the stream has ended.
        if (this.#isEndStreamed) silence.close();
        else silence.noteActivity();
      },
      secrets: snapshots.secretsOf(account, jobId),
    });
  }

  #waitAfter(attempt: StreamAttempt, livedMs: number): number {
    const { limits, clock, sharing } = this.#options;
    if (attempt.kind === 'no capacity') sharing.streamSlots.noteLimit(attempt.forMs);
    // A second attempt would get the same event, so the job is polled meanwhile.
    const isTooLarge = attempt.kind === 'read' && attempt.end === 'too large';
    if (isTooLarge && this.#tooLargeCount++ > 0) {
      this.#noStreamUntilMs = clock.now() + limits.uncertainStreamMs;
    }
    if (livedMs >= limits.longStreamMs) this.#reconnectMs = limits.reconnectMs.first;
    return attempt.kind === 'no capacity' ? this.#nextPollMs() : this.#nextReconnectMs();
  }

  /** The wait after a read that failed, while a client watches the job. */
  #failedReadMs(): number | undefined {
    const isSoon = this.#reads.hasFailed && this.#isWatched();
    return isSoon ? this.#options.limits.failedReadMs : undefined;
  }

  #mayStream(): boolean {
    const { snapshots, capabilities, clock } = this.#options;
    const { account, jobId } = this.#job;
    const refused = account.credentialRefusal ?? snapshots.refusedUntilMs(account, jobId);
    const isPaused = account.gate.waitMs() > 0 || this.#reads.refusedForMs() > 0;
    const mayCall = refused === undefined && !isPaused;
    const notBeforeMs = Math.max(capabilities.pollOnlyUntilMs, this.#noStreamUntilMs);
    return mayCall && clock.now() >= notBeforeMs;
  }

  #nextReconnectMs(): number {
    const ms = this.#reconnectMs;
    this.#reconnectMs = Math.min(ms * 2, this.#options.limits.reconnectMs.last);
    return ms;
  }

  #nextPollMs(): number {
    const status = this.#subscribers.status() ?? 'queued';
    const polls = this.#polls++;
    return pollDelayMs(this.#options.limits, { status, isWatched: this.#isWatched(), polls });
  }

  #isWatched(): boolean {
    return this.#options.sharing.isWatched(this.#job.user, this.#job.jobId);
  }
}
