import { completesWithin } from '../lib/completes-within.ts';
import { type Deferred, createDeferred } from '../lib/concurrency.ts';
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
  /** Users whose messages were missed, until everything is read. */
  const missed = new Map<string, Deferred>();

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

  /** Compares with what is stored. */
  async function resync(user: string): Promise<void> {
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
  }

  async function readMissed(user: string): Promise<void> {
    await resync(user);
    for (const stream of streams.ofUser(user)) await stream.readReceived();
  }

  function settle(user: string, read: Deferred): void {
    read.resolve();
    if (missed.get(user) === read) missed.delete(user);
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
    resync,
    /** Messages about these users were missed: reads what they said, one user after the other. */
    async recover(users: readonly string[]): Promise<void> {
      const turns = users.map((user) => ({ user, read: createDeferred() }));
      for (const { user, read } of turns) missed.set(user, read);
      try {
        for (const { user, read } of turns)
          await readMissed(user).finally(() => settle(user, read));
      } finally {
        for (const { user, read } of turns) settle(user, read);
      }
    },
    /** Resolves when nothing of this user is missed. */
    whenRecovered: async (user: string): Promise<void> => missed.get(user)?.promise,
  };
}
