import { LRUCache } from 'lru-cache';
import { atMost } from '../lib/lru-size.ts';

/** Of as many users the number of processes is remembered. */
const MAX_USERS = 100_000;

/**
 * Tracks which users have sockets in other processes: each process subscribes to the previews of
 * its users, and each entry that is written returns how many do.
 */
export type PreviewWatchers = ReturnType<typeof createPreviewWatchers>;

export function createPreviewWatchers() {
  const localUsers = new Set<string>();
  const counts = new LRUCache<string, number>(atMost(MAX_USERS));
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
  };
}
