import type { Redis } from '../redis/redis.ts';
import type { PromptPartitions } from './partitions.ts';
import type { EntryStore } from './log-stream.ts';

/** The event logs of all prompts in Redis: one stream each, whose ids are the positions. */
export function createEntryStore(
  redis: Redis,
  partitions: PromptPartitions,
  watchers: {
    readonly isWatched: (user: string) => boolean;
    /** So many processes have sockets of the user. */
    readonly onCount: (user: string, count: number) => void;
  },
): EntryStore {
  return {
    async write(stream, { n, text, picture }, isLast) {
      const { user } = stream;
      const shown = picture && watchers.isWatched(user) ? picture : '';
      const token = stream.token() ?? '';
      const last = isLast ? '1' : '0';
      const { scripts } = partitions.of(stream);
      const reply = await scripts.append<number>(stream.key, token, n, text, user, last, shown);
      if (reply < 0) return false;
      watchers.onCount(user, reply);
      return true;
    },
    async after(prompt, n) {
      const { prefix } = partitions.of(prompt);
      const entries = await redis.xrange(`${prefix}entries:${prompt.key}`, `(${n}-0`, '+');
      return entries.map(([id, [, text = '']]) => ({ n: Number.parseInt(id, 10), text }));
    },
    async receivedUpTo(prompt) {
      const receivedUpTo = `${partitions.of(prompt).prefix}received:${prompt.key}`;
      const [client, hosted] = await redis.mget(receivedUpTo, `${receivedUpTo}:hosted`);
      return { client: Number(client ?? 0), hosted: Number(hosted ?? 0) };
    },
  };
}
