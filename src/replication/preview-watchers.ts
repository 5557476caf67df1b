import type { PromptPartitions } from './partitions.ts';

/**
 * Tracks which users have sockets in other processes: each process subscribes to the previews of
 * its users.
 */
export type PreviewWatchers = ReturnType<typeof createPreviewWatchers>;

export function createPreviewWatchers(partitions: PromptPartitions) {
  const localUsers = new Set<string>();
  let counts = new Map<string, number>();
  return {
    /** The users that have sockets in this process. */
    localUsers: (): Iterable<string> => localUsers,
    /** True when another process has sockets of this user: only then are pictures sent. */
    isWatched: (user: string): boolean => (counts.get(user) ?? 0) > (localUsers.has(user) ? 1 : 0),
    /** So many processes have sockets of the user. */
    onWatchers: (user: string, count: number): void => void counts.set(user, count),
    /** This process has sockets of the user, or has none any more. */
    setLocal: (user: string, isThere: boolean) =>
      void (isThere ? localUsers.add(user) : localUsers.delete(user)),
    /** Asks Redis again; other users are forgotten. */
    async refresh(users: readonly string[]): Promise<void> {
      const asked = [...new Set(users)].map((user) => ({ key: '', user }));
      const found = new Map<string, number>();
      await partitions.each(asked, async (partition, some) => {
        const names = some.map(({ user }) => user);
        const reply = (await partition.scripts.watchers(...names)) as number[];
        for (const [i, user] of names.entries()) found.set(user, reply[i] ?? 0);
      });
      counts = found;
    },
  };
}
