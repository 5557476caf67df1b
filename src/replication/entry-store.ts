import type { Redis } from '../lib/redis.ts';
import type { EntryStore } from './log-stream.ts';
import type { Scripts } from './scripts.ts';

/** The event logs of all prompts in Redis: one stream each, whose ids are the positions. */
export function createEntryStore(deps: {
  readonly redis: Redis;
  readonly prefix: string;
  readonly scripts: Scripts;
  /** True when another process has sockets of this user: only then are pictures sent. */
  readonly isWatched: (user: string) => boolean;
  /** Called with the number of processes that have sockets of the user. */
  readonly onWatchers: (user: string, count: number) => void;
}): EntryStore {
  const { redis, prefix, scripts, isWatched, onWatchers } = deps;
  return {
    async write(stream, { n, text, picture }, isLast) {
      const { user } = stream;
      const shown = picture && isWatched(user) ? picture : '';
      const token = stream.token() ?? '';
      const last = isLast ? '1' : '0';
      const reply = Number(await scripts.append(stream.key, token, n, text, user, last, shown));
      if (reply < 0) return false;
      onWatchers(user, reply);
      return true;
    },
    async after(key, n) {
      const entries = await redis.xrange(`${prefix}entries:${key}`, `(${n}-0`, '+');
      return entries.map(([id, [, text = '']]) => ({ n: Number.parseInt(id, 10), text }));
    },
    async receivedUpTo(key) {
      const receivedUpTo = `${prefix}received:${key}`;
      const [client, hosted] = await redis.mget(receivedUpTo, `${receivedUpTo}:hosted`);
      return { client: Number(client ?? 0), hosted: Number(hosted ?? 0) };
    },
  };
}
