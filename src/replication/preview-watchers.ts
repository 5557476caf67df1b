import type { Redis } from '../lib/redis.ts';

/**
 * Tracks which users have sockets in other processes: each process subscribes to the previews of
 * its users.
 */
export type PreviewWatchers = ReturnType<typeof createPreviewWatchers>;

export function createPreviewWatchers({ redis, channels }: { redis: Redis; channels: string }) {
  const localUsers = new Set<string>();
  let counts = new Map<string, number>();
  return {
    /** The users that have sockets in this process. */
    localUsers: (): Iterable<string> => localUsers,
    isWatched: (user: string) => (counts.get(user) ?? 0) > (localUsers.has(user) ? 1 : 0),
    onWatchers: (user: string, refresh: number) => void counts.set(user, refresh),
    /** This process has sockets of the user, or has none any more. */
    setLocal: (user: string, isThere: boolean) =>
      void (isThere ? localUsers.add(user) : localUsers.delete(user)),
    /** Asks Redis again; other users are forgotten. */
    async refresh(users: readonly string[]): Promise<void> {
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
