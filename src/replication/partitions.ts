import type { Redis, RedisConnections } from '../redis/redis.ts';
import type { RedisSubscriber } from '../redis/redis-subscriber.ts';
import type { RedisPartition } from '../redis/redis-partitions.ts';
import type { PromptOfUser } from '../prompts/prompt-event-log.ts';
import { type Scripts, defineReplicationScripts } from './scripts.ts';
import { type SubscriptionHandlers, Subscription } from './subscription.ts';

/** The prompts of some users, whose keys are in one place. */
export type PromptPartition = RedisPartition & {
  readonly scripts: Scripts;
  /** The same on the other connection: a client waits for these. */
  readonly waitedFor: Scripts;
  readonly subscriber: RedisSubscriber;
  readonly subscription: Subscription;
};

/** All prompts, in their partitions. */
export class PromptPartitions {
  readonly all: readonly PromptPartition[];
  readonly #links: RedisConnections;
  /** The partitions of prompts without a leader: of some the user is not known. */
  #vacant = new Map<string, PromptPartition>();

  constructor(links: RedisConnections, redis: Redis, handlers: SubscriptionHandlers) {
    this.#links = links;
    this.all = links.partitions.users.map((partition) => {
      const subscriber = links.subscriber(partition);
      return {
        ...partition,
        scripts: defineReplicationScripts(redis, partition),
        waitedFor: defineReplicationScripts(links.commands, partition),
        subscriber,
        subscription: new Subscription(subscriber, partition.channels, handlers),
      };
    });
  }

  ofUser(user: string): PromptPartition {
    return this.all[this.#links.partitions.indexOf(user)] as PromptPartition;
  }

  of({ key, user }: PromptOfUser): PromptPartition {
    return (user === '' && this.#vacant.get(key)) || this.ofUser(user);
  }

  /** The prompts without a leader. */
  async vacantKeys(): Promise<readonly string[]> {
    const vacant = new Map<string, PromptPartition>();
    await Promise.all(
      this.all.map(async (partition) => {
        for (const key of await partition.scripts.vacant<string[]>()) vacant.set(key, partition);
      }),
    );
    this.#vacant = vacant;
    // Keys begin with the time: the oldest prompts come first.
    return [...vacant.keys()].toSorted();
  }

  /** Calls `act` for each partition that has some of the prompts. */
  async each<Prompt extends PromptOfUser>(
    prompts: readonly Prompt[],
    act: (partition: PromptPartition, some: readonly Prompt[]) => Promise<void>,
  ): Promise<void> {
    const byPartition = new Map<PromptPartition, Prompt[]>();
    for (const prompt of prompts) {
      const partition = this.of(prompt);
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), prompt]);
    }
    await Promise.all([...byPartition].map(([partition, some]) => act(partition, some)));
  }
}
