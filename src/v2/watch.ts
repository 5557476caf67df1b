import { type Caller, type JobApi, type JobEvent, ok } from '../wire/jobs.ts';
import { IS_TERMINAL, type Job } from '../wire/v2.ts';
import type { Account } from './accounts.ts';
import { type Audience, createAudience, statusOf } from './audience.ts';
import { type FollowDeps, follow } from './follow.ts';

/** Everybody who listens to a job of one account shares one stream, or one poller, of it. */
export type Watches = {
  events(
    account: Account,
    asked: { readonly caller: Caller; readonly jobId: string; readonly signal: AbortSignal },
  ): ReturnType<JobApi['events']>;
  close(): Promise<void>;
};

type Deps = FollowDeps & {
  /** Whether somebody looks at this job right now. */
  readonly isWatched: (user: string, jobId: string) => boolean;
};

type Watch = {
  readonly audience: Audience;
  readonly stop: AbortController;
  readonly done: Promise<void>;
  readonly endTold: () => void;
};

export function createWatches(deps: Deps): Watches {
  const watches = new Map<string, Watch>();

  function start(account: Account, caller: Caller, jobId: string): Watch {
    const key = `${account.id} ${jobId}`;
    const stop = new AbortController();
    const forget = (): void => {
      if (watches.get(key) === watch) watches.delete(key);
    };
    const onEmpty = (): void => {
      stop.abort();
      forget();
    };
    const audience = createAudience({ onEmpty });
    const following = follow(deps, {
      account,
      jobId,
      audience,
      isWatched: () => deps.isWatched(caller.user, jobId),
      signal: stop.signal,
    });
    const done = following.done
      .catch((error: unknown) => deps.log.error({ err: error, jobId }, 'following a job failed'))
      .finally(forget);
    const watch: Watch = { audience, stop, done, endTold: following.endTold };
    watches.set(key, watch);
    return watch;
  }

  deps.snapshots.onEnd((account, jobId) => watches.get(`${account.id} ${jobId}`)?.endTold());

  return {
    async events(account, { caller, jobId, signal }) {
      // A job we know of needs no question first: its stream begins with its status.
      const known = deps.snapshots.known(account, jobId);
      const read = known ? ok(known) : await deps.snapshots.get(account, jobId);
      if (!read.ok) return read;
      if (IS_TERMINAL[read.value.status]) return ok(lastWord(read.value, signal));
      const watch = watches.get(`${account.id} ${jobId}`) ?? start(account, caller, jobId);
      return ok(watch.audience.join(signal));
    },
    async close() {
      const all = [...watches.values()];
      for (const { stop } of all) stop.abort();
      await Promise.all(all.map(({ done }) => done));
    },
  };
}

/** All there is to hear of a job that is over. */
function lastWord(job: Job, signal: AbortSignal): AsyncIterable<JobEvent> {
  const audience = createAudience({ onEmpty: () => {} });
  const heard = audience.join(signal);
  audience.tell(statusOf(job));
  audience.end();
  return heard;
}
