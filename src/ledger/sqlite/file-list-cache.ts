import { LRUCache } from 'lru-cache';
import type { FileRow, FileType } from '../ledger.ts';

/** Lists of files by user and type, remembered until any of them changes. */
export type FileListCache = {
  of(user: string, type: FileType, read: () => readonly FileRow[]): readonly FileRow[];
  /** Wraps a write to the table of files: to one user's of one type, or to whosever. */
  change<T>(write: () => Promise<T>, of?: ListKey): Promise<T>;
};

type ListKey = Pick<FileRow, 'user' | 'type'>;

/** In all lists together. */
const MAX_CACHED_FILES = 100_000;

/**
 * Every call for the node definitions asks for one, and files change rarely. This process has the
 * database to itself.
 */
export function createFileListCache(): FileListCache {
  const cached = new LRUCache<string, readonly FileRow[]>({
    maxSize: MAX_CACHED_FILES,
    sizeCalculation: (rows) => rows.length + 1,
  });
  const keyOf = (user: string, type: FileType): string => `${type} ${user}`;
  const forget = (of: ListKey | undefined): void => {
    if (of) cached.delete(keyOf(of.user, of.type));
    else cached.clear();
  };
  return {
    of(user, type, read) {
      const key = keyOf(user, type);
      const rows = cached.get(key) ?? read();
      cached.set(key, rows);
      return rows;
    },
    /** It is seen at once, and so is that it came to nothing. */
    async change(write, of) {
      const writing = write();
      forget(of);
      try {
        return await writing;
      } catch (error) {
        forget(of);
        throw error;
      }
    },
  };
}
