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

/** The prompts of one user, as they are stored and as this process knows them. */
export class UserPrompts {
  readonly #options: UserPromptsOptions;

  constructor(options: UserPromptsOptions) {
    this.#options = options;
  }

  /** Receives what happens from now on, then reads what is stored. */
  async open(user: string): Promise<void> {
    const { partitions, streams, handlers } = this.#options;
    const listening = partitions.ofUser(user).subscription.follow(user);
    if (!(await completesWithin(COMMAND_TIMEOUT_MS, listening)))
      throw new Error('Redis does not answer');
    const [endedKeys, fetchedIds] = await this.#recent(user);
    const withEntries = (keys: readonly string[]) => this.#withEntries(user, keys);
    await handlers()?.trackUser(user, { endedKeys, withEntries });
    await Promise.all(streams.ofUser(user).map((stream) => stream.whenIdle()));
    for (const id of fetchedIds) handlers()?.resultFetched(user, id);
  }

  close(user: string): void {
    const { partitions, streams, handlers } = this.#options;
    partitions.ofUser(user).subscription.unfollow(user);
    handlers()?.forgetUser(user);
    streams.deleteOfUser(user);
  }

  /** Reads what was missed. */
  async resync(user: string): Promise<void> {
    const { streams, handlers, discover } = this.#options;
    const [endedKeys] = await this.#recent(user);
    const liveKeys = (await handlers()?.liveKeys(user)) ?? [];
    // A prompt may have begun and ended meanwhile.
    const unknown = [...endedKeys, ...liveKeys].filter((key) => !streams.get(key));
    for (const key of await this.#withEntries(user, unknown)) await discover(key);
    for (const stream of streams.ofUser(user)) {
      if (stream.hasEnded()) continue;
      await stream.catchUp();
      await this.#finishIfForgotten(stream);
    }
  }

  /** It ended while this process received nothing, longer ago than entries are kept. */
  async #finishIfForgotten(stream: LogStream): Promise<void> {
    const { redis, partitions, handlers } = this.#options;
    const { prefix, waitedFor } = partitions.of(stream);
    if (stream.token() !== undefined || stream.hasEnded()) return;
    const isLeased = (await redis.zscore(`${prefix}leases`, stream.key)) !== null;
    if (isLeased || (await redis.exists(`${prefix}entries:${stream.key}`)) > 0) return;
    const end = await handlers()?.endOf(stream.key);
    if (end === 'none') await waitedFor.register(stream.key);
    else if (end) await stream.finish(end);
  }

  /** Keys of prompts that ended a moment ago, and ids of prompts whose results were fetched. */
  async #recent(user: string): Promise<readonly [readonly string[], readonly string[]]> {
    const recent = await this.#options.partitions.ofUser(user).waitedFor.recent(user);
    const [endedKeys = [], fetchedIds = []] = recent as readonly string[][];
    return [endedKeys, fetchedIds];
  }

  async #withEntries(user: string, keys: readonly string[]): Promise<readonly string[]> {
    const { waitedFor } = this.#options.partitions.ofUser(user);
    return keys.length === 0 ? [] : ((await waitedFor.withEntries(...keys)) as string[]);
  }
}
