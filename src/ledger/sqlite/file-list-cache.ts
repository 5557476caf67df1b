import { LRUCache } from 'lru-cache';
import type { FileRow, FileType } from '../ledger.ts';

/** Cached lists of files by user and type; a change invalidates its list. */
export type FileListCache = {
  of(user: string, type: FileType, read: () => readonly FileRow[]): readonly FileRow[];
  /** Wraps a write to the table of files: it concerns one user and type, or any. */
  change<T>(write: () => Promise<T>, of?: ListKey): Promise<T>;
};

type ListKey = Pick<FileRow, 'user' | 'type'>;

/** In all lists together. */
const MAX_CACHED_FILES = 100_000;

/**
 * Every request for the node definitions reads a list, and files change rarely. This process has
 * the database to itself.
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
    /** The list is invalidated at once, and again when the write fails. */
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
