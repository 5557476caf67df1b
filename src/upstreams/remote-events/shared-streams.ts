import { type Caller, type JobApi, type JobEvent, ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import type { Account } from '../remote-calls/accounts.ts';
import { type Subscribers, createSubscribers, statusEventOf } from './subscribers.ts';
import { type FollowOptions, follow } from './follow-job.ts';

type SharedStreamsOptions = FollowOptions & {
  /** True while a client watches this job. */
  readonly isWatched: (user: string, jobId: string) => boolean;
};

type SharedStream = {
  readonly subscribers: Subscribers;
  readonly stop: AbortController;
  readonly done: Promise<void>;
  readonly reportEnd: () => void;
};

/** All subscribers to a job of one account share one stream, or one poller. */
export function createSharedStreams(options: SharedStreamsOptions) {
  const streams = new Map<string, SharedStream>();

  function startStream(account: Account, caller: Caller, jobId: string): SharedStream {
    const key = `${account.id} ${jobId}`;
    const stop = new AbortController();
    const removeStream = (): void => {
      if (streams.get(key) === stream) streams.delete(key);
    };
    const onEmpty = (): void => {
      stop.abort();
      removeStream();
    };
    const subscribers = createSubscribers({ onEmpty });
    const following = follow(options, {
      account,
      jobId,
      subscribers,
      isWatched: () => options.isWatched(caller.user, jobId),
      signal: stop.signal,
    });
    const done = following.done
      .catch((error: unknown) =>
        options.log.error(
          { event: 'upstream.follow_failed', err: error, jobId },
          'could not follow a job',
        ),
      )
      .finally(removeStream);
    const stream: SharedStream = { subscribers, stop, done, reportEnd: following.reportEnd };
    streams.set(key, stream);
    return stream;
  }

  options.snapshots.onEnd((account, jobId) => streams.get(`${account.id} ${jobId}`)?.reportEnd());

  return {
    async events(
      account: Account,
      {
        caller,
        jobId,
        signal,
      }: { readonly caller: Caller; readonly jobId: string; readonly signal: AbortSignal },
    ): ReturnType<JobApi['events']> {
      // A known job needs no request first: its stream begins with its status.
      const latest = options.snapshots.latest(account, jobId);
      const read = latest ? ok(latest) : await options.snapshots.get(account, jobId);
      if (!read.ok) return read;
      if (IS_TERMINAL[read.value.status]) return ok(endedJobEvents(read.value, signal));
      const stream = streams.get(`${account.id} ${jobId}`) ?? startStream(account, caller, jobId);
      return ok(stream.subscribers.subscribe(signal));
    },
    async close(): Promise<void> {
      const all = [...streams.values()];
      for (const { stop } of all) stop.abort();
      await Promise.all(all.map(({ done }) => done));
    },
  };
}

/** The events of a job that has ended. */
function endedJobEvents(job: Job, signal: AbortSignal): AsyncIterable<JobEvent> {
  const subscribers = createSubscribers({ onEmpty: () => {} });
  const events = subscribers.subscribe(signal);
  subscribers.publish(statusEventOf(job));
  subscribers.end();
  return events;
}
