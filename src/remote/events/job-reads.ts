import type { Result } from '../../protocol/job-api.ts';
import type { Job } from '../../protocol/v2.ts';
import type { TurnQueue } from '../../lib/rate-limiter.ts';
import type { Account } from '../calls/accounts.ts';
import type { RemoteClient } from '../calls/calls.ts';
import { retryAfterMs } from '../calls/errors.ts';
import type { Snapshots } from './snapshots.ts';
import type { StreamSlots } from './stream-slots.ts';

export type FollowOptions = RemoteClient & {
  readonly snapshots: Snapshots;
  readonly sharing: StreamSharing;
};

/** How the jobs that are followed share the streams and reads of their upstream. */
type StreamSharing = {
  readonly streamSlots: StreamSlots;
  /** The turns of all reads that following jobs causes. */
  readonly readTurns: TurnQueue;
  /** True while a client watches this job. */
  readonly isWatched: (user: string, jobId: string) => boolean;
};

export type FollowedJob = {
  readonly account: Account;
  /** The user who may watch the job. */
  readonly user: string;
  readonly jobId: string;
};

/** How much later a read is due for each rank. */
const YIELD_MS_PER_RANK = 1_000;

/**
 * The reads of one job that is followed: within the rate of its upstream, and not while the service
 * refuses them or asks for a pause.
 */
export class JobReads {
  readonly #options: FollowOptions;
  readonly #job: FollowedJob;
  readonly #rank: () => number;
  #pausedUntilMs = 0;
  #hasFailed = false;
  #endTurn: (() => void) | undefined;

  /** `rank`: jobs of lower rank are read first. */
  constructor(options: FollowOptions, job: FollowedJob, rank: () => number) {
    this.#options = options;
    this.#job = job;
    this.#rank = rank;
  }

  /** True when the last read brought no answer about the job. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Calls `begin` at the turn of this job, unless the returned function is called before. */
  requestTurn(begin: () => void): () => void {
    const { readTurns } = this.#options.sharing;
    return readTurns.request(this.#rank() * YIELD_MS_PER_RANK, begin);
  }

  /** Resolves at the turn of this job, or when `skipTurn` is called. */
  waitForTurn(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.requestTurn(() => this.#endTurn?.());
      this.#endTurn = () => {
        cancel();
        this.#endTurn = undefined;
        resolve();
      };
    });
  }

  /** Ends the wait for a turn: the end of the job was reported, or a stop is requested. */
  skipTurn(): void {
    this.#endTurn?.();
  }

  /**
   * Reads the job; `undefined`: it must not be read now. While the credential is refused, one caller
   * at a time checks if that is over.
   */
  async read(): Promise<Result<Job> | undefined> {
    const { snapshots, clock } = this.#options;
    const { account, jobId } = this.#job;
    if (clock.now() < this.#pausedUntilMs) return undefined;
    const { credentialRefusal: refusal } = account;
    if (refusal === undefined) return this.#note(await snapshots.refresh(account, jobId));
    if (refusal.isBeingChecked || clock.now() < refusal.untilMs) return undefined;
    refusal.isBeingChecked = true;
    try {
      return this.#note(await snapshots.refresh(account, jobId));
    } finally {
      refusal.isBeingChecked = false;
    }
  }

  #note(read: Result<Job>): Result<Job> {
    const { clock, limits } = this.#options;
    this.#hasFailed = !read.ok;
    const seconds = read.ok ? undefined : read.error.retryAfterSeconds;
    if (seconds !== undefined) this.#pausedUntilMs = clock.now() + retryAfterMs(seconds, limits);
    return read;
  }

  /** How long this job must not be read. */
  refusedForMs(): number {
    const { snapshots, clock } = this.#options;
    const { account, jobId } = this.#job;
    const ofJob = snapshots.refusedUntilMs(account, jobId) ?? 0;
    const ofAccount = account.credentialRefusal?.untilMs ?? 0;
    return Math.max(ofAccount, ofJob, this.#pausedUntilMs) - clock.now();
  }
}
