import { BackgroundTasks } from '../../lib/concurrency.ts';
import { type Caller, type JobEvents, type Result, ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { Account } from '../calls/accounts.ts';
import { endedJobEvents } from '../../job-events/job-feed.ts';
import { statusEventOf } from './subscribers.ts';
import { JobFollower } from './follow-job.ts';
import { keyOf } from './snapshots.ts';
import type { FollowOptions, FollowedJob } from './job-reads.ts';

/** Lets all subscribers to a job of one account share one stream, or one poller. */
export class SharedStreams {
  readonly #options: FollowOptions;
  readonly #followers = new Map<string, JobFollower>();
  readonly #tasks = new BackgroundTasks();

  constructor(options: FollowOptions) {
    this.#options = options;
    options.snapshots.onEnd((account, jobId) =>
      this.#followers.get(keyOf(account, jobId))?.reportEnd(),
    );
  }

  async events(
    account: Account,
    { user }: Caller,
    jobId: string,
    signal: AbortSignal,
  ): Promise<Result<JobEvents>> {
    const { snapshots } = this.#options;
    // A known job is not read first: its stream begins with its status.
    const latest = snapshots.latest(account, jobId);
    const read = latest ? ok(latest) : await snapshots.get(account, jobId);
    if (!read.ok) return read;
    if (IS_TERMINAL[read.value.status]) return ok(endedJobEvents(statusEventOf(read.value).data));
    const known = this.#followers.get(keyOf(account, jobId));
    const follower = known ?? this.#follow({ account, user, jobId });
    return ok(follower.subscribe(signal));
  }

  async close(): Promise<void> {
    for (const follower of this.#followers.values()) follower.stop();
    await this.#tasks.close();
  }

  #follow(job: FollowedJob): JobFollower {
    const { account, jobId } = job;
    const key = keyOf(account, jobId);
    const remove = (): void => {
      if (this.#followers.get(key) === follower) this.#followers.delete(key);
    };
    const follower = new JobFollower(this.#options, job, remove);
    this.#followers.set(key, follower);
    void this.#tasks.run(
      () => follower.run().finally(remove),
      (err) =>
        this.#options.log.error(
          { event: 'upstream.follow_failed', err, jobId },
          'could not follow a job',
        ),
    );
    return follower;
  }
}
