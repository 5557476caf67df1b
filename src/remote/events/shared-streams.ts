import { type Caller, type JobEvents, type Result, ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { Account } from '../calls/accounts.ts';
import { endedJobEvents } from '../../job-events/job-feed.ts';
import { Subscribers, statusEventOf } from './subscribers.ts';
import { JobFollower } from './follow-job.ts';
import type { FollowOptions } from './job-reads.ts';

type SharedStream = {
  readonly subscribers: Subscribers;
  readonly follower: JobFollower;
};

/** Lets all subscribers to a job of one account share one stream, or one poller. */
export function createSharedStreams(options: FollowOptions) {
  const streams = new Map<string, SharedStream>();
  const tasks = new Set<Promise<void>>();

  function removeStream(key: string, subscribers: Subscribers): void {
    if (streams.get(key)?.subscribers === subscribers) streams.delete(key);
  }

  function startStream(account: Account, { user }: Caller, jobId: string): SharedStream {
    const key = `${account.id} ${jobId}`;
    const subscribers = new Subscribers(() => {
      follower.stop();
      removeStream(key, subscribers);
    });
    const follower = new JobFollower(options, { account, user, jobId, subscribers });
    const stream = { subscribers, follower };
    streams.set(key, stream);
    const task = followToEnd(key, stream, jobId).finally(() => tasks.delete(task));
    tasks.add(task);
    return stream;
  }

  async function followToEnd(key: string, stream: SharedStream, jobId: string): Promise<void> {
    try {
      await stream.follower.run();
    } catch (error) {
      const facts = { event: 'upstream.follow_failed', err: error, jobId };
      options.log.error(facts, 'could not follow a job');
    } finally {
      removeStream(key, stream.subscribers);
    }
  }

  options.snapshots.onEnd((account, jobId) =>
    streams.get(`${account.id} ${jobId}`)?.follower.reportEnd(),
  );

  return {
    async events(
      account: Account,
      {
        caller,
        jobId,
        signal,
      }: { readonly caller: Caller; readonly jobId: string; readonly signal: AbortSignal },
    ): Promise<Result<JobEvents>> {
      // A known job is not read first: its stream begins with its status.
      const latest = options.snapshots.latest(account, jobId);
      const read = latest ? ok(latest) : await options.snapshots.get(account, jobId);
      if (!read.ok) return read;
      if (IS_TERMINAL[read.value.status]) return ok(endedJobEvents(statusEventOf(read.value).data));
      const stream = streams.get(`${account.id} ${jobId}`) ?? startStream(account, caller, jobId);
      return ok(stream.subscribers.subscribe(signal));
    },
    async close(): Promise<void> {
      for (const { follower } of streams.values()) follower.stop();
      await Promise.all(tasks);
    },
  };
}
