import { BackgroundTasks } from '../../lib/concurrency.ts';
import { type Caller, type JobEvents, type Result, ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { Account } from '../calls/accounts.ts';
import { endedJobEvents } from '../../job-events/job-feed.ts';
import { statusEventOf } from './subscribers.ts';
import { JobFollower } from './follow-job.ts';
import { keyOf } from './snapshots.ts';
import type { FollowOptions } from './job-reads.ts';

/** Lets all subscribers to a job of one account share one stream, or one poller. */
export function createSharedStreams(options: FollowOptions) {
  const followers = new Map<string, JobFollower>();
  const tasks = new BackgroundTasks();

  function follow(account: Account, user: string, jobId: string): JobFollower {
    const key = keyOf(account, jobId);
    const remove = (): void => {
      if (followers.get(key) === follower) followers.delete(key);
    };
    const follower = new JobFollower(options, { account, user, jobId }, remove);
    followers.set(key, follower);
    void tasks.run(
      () => follower.run().finally(remove),
      (err) =>
        options.log.error(
          { event: 'upstream.follow_failed', err, jobId },
          'could not follow a job',
        ),
    );
    return follower;
  }

  options.snapshots.onEnd((account, jobId) => followers.get(keyOf(account, jobId))?.reportEnd());

  return {
    async events(
      account: Account,
      { user }: Caller,
      jobId: string,
      signal: AbortSignal,
    ): Promise<Result<JobEvents>> {
      // A known job is not read first: its stream begins with its status.
      const latest = options.snapshots.latest(account, jobId);
      const read = latest ? ok(latest) : await options.snapshots.get(account, jobId);
      if (!read.ok) return read;
      if (IS_TERMINAL[read.value.status]) return ok(endedJobEvents(statusEventOf(read.value).data));
      const follower = followers.get(keyOf(account, jobId)) ?? follow(account, user, jobId);
      return ok(follower.subscribe(signal));
    },
    async close(): Promise<void> {
      for (const follower of followers.values()) follower.stop();
      await tasks.close();
    },
  };
}
