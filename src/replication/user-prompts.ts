import { completesWithin } from '../lib/completes-within.ts';
import { COMMAND_TIMEOUT_MS, type Redis } from '../redis/redis.ts';
import type { LogHandlers } from '../prompts/prompt-event-log.ts';
import type { LogStream } from './log-stream.ts';
import type { LogStreams } from './log-streams.ts';
import type { PromptPartitions } from './partitions.ts';

type UserPromptsOptions = {
  readonly redis: Redis;
  readonly partitions: PromptPartitions;
  readonly streams: LogStreams;
  readonly handlers: () => LogHandlers | undefined;
  /** Shows a prompt that this process does not know. */
  readonly discover: (key: string) => Promise<void>;
};

/** The prompts of users, as they are stored and as this process knows them. */
export function createUserPrompts(options: UserPromptsOptions) {
  const { redis, partitions, streams, handlers, discover } = options;
  const opened = new Set<string>();

  /** Keys of prompts that ended a moment ago, and ids of prompts whose results were fetched. */
  const recent = (user: string) =>
    partitions.ofUser(user).waitedFor.recent<[string[], string[]]>(user);

  async function withEntries(user: string, keys: readonly string[]): Promise<readonly string[]> {
    const { waitedFor } = partitions.ofUser(user);
    return keys.length === 0 ? [] : await waitedFor.withEntries<string[]>(...keys);
  }

  /** A prompt may have ended while this process received nothing, longer ago than entries are kept. */
  async function catchUp(stream: LogStream): Promise<void> {
    const { prefix, waitedFor } = partitions.of(stream);
    const isLeased = (await redis.zscore(`${prefix}leases`, stream.key)) !== null;
    await stream.catchUp();
    if (isLeased || stream.token() !== undefined || stream.hasEnded()) return;
    const end = await handlers()?.endOf(stream.key);
    if (end === 'none') await waitedFor.register(stream.key, stream.user);
    else if (end) await stream.finish(end);
  }

  function forget(user: string): void {
    handlers()?.forgetUser(user);
    streams.deleteOfUser(user);
  }

  return {
    /** Receives what happens from now on, then reads what is stored. */
    async open(user: string): Promise<void> {
      opened.add(user);
      const listening = partitions.ofUser(user).subscription.follow(user);
      if (!(await completesWithin(COMMAND_TIMEOUT_MS, listening)))
        throw new Error('Redis does not answer');
      const [endedKeys, fetchedIds] = await recent(user);
      await handlers()?.trackUser(user, {
        endedKeys,
        withEntries: (keys) => withEntries(user, keys),
      });
      await Promise.all(streams.ofUser(user).map((stream) => stream.whenIdle()));
      for (const id of fetchedIds) handlers()?.resultFetched(user, id);
    },
    close(user: string): void {
      opened.delete(user);
      partitions.ofUser(user).subscription.unfollow(user);
      forget(user);
    },
    /** Reads what was missed. */
    async resync(user: string): Promise<void> {
      const [endedKeys] = await recent(user);
      const liveKeys = (await handlers()?.liveKeys(user)) ?? [];
      // A prompt may have begun and ended meanwhile.
      const unknown = [...endedKeys, ...liveKeys].filter(
        (key) => streams.get(key)?.isUnknown() ?? true,
      );
      for (const key of await withEntries(user, unknown)) await discover(key);
      for (const stream of streams.ofUser(user)) {
        if (!stream.hasEnded()) await catchUp(stream);
      }
      // Nothing more is received of a user that was closed meanwhile.
      if (!opened.has(user)) forget(user);
    },
  };
}
