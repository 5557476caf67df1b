import type { Redis } from '../redis.ts';

/** Whose sockets are at other processes: each subscribes to the previews of its users. */
export type Watchers = {
  isWatched(this: void, user: string): boolean;
  onWatchers(this: void, user: string, count: number): void;
  /** This process is one of them, or no longer. */
  note(user: string, isThere: boolean): void;
  /** Asks anew; what is known of any other user is forgotten. */
  count(users: readonly string[]): Promise<void>;
};

export function createWatchers({ redis, channels }: { redis: Redis; channels: string }): Watchers {
  const own = new Set<string>();
  let counts = new Map<string, number>();
  return {
    isWatched: (user) => (counts.get(user) ?? 0) > (own.has(user) ? 1 : 0),
    onWatchers: (user, count) => void counts.set(user, count),
    note: (user, isThere) => void (isThere ? own.add(user) : own.delete(user)),
    async count(users) {
      const asked = [...new Set(users)];
      const reply = asked.length === 0 ? [] : await numSub(asked);
      counts = new Map(asked.map((user, i) => [user, Number(reply[2 * i + 1])]));
    },
  };

  async function numSub(users: readonly string[]): Promise<unknown[]> {
    const names = users.map((user) => `${channels}previews:${user}`);
    return (await redis.call('PUBSUB', 'NUMSUB', ...names)) as unknown[];
  }
}
