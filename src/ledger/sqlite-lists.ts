import { LRUCache } from 'lru-cache';
import type { FileRow, FileType } from './ledger.ts';

/** Lists of files by user and type, remembered until any of them changes. */
export type FileLists = {
  of(user: string, type: FileType, read: () => readonly FileRow[]): readonly FileRow[];
  /** Wraps a write to the table of files: to one user's of one type, or to whosever. */
  change<T>(write: () => Promise<T>, of?: Owned): Promise<T>;
};

type Owned = Pick<FileRow, 'user' | 'type'>;

/** In all lists together. */
const MOST_FILES = 100_000;

/**
 * Every call for the node definitions asks for one, and files change rarely. This process has the
 * database to itself.
 */
export function createFileLists(): FileLists {
  const known = new LRUCache<string, readonly FileRow[]>({
    maxSize: MOST_FILES,
    sizeCalculation: (rows) => rows.length + 1,
  });
  const keyOf = (user: string, type: FileType): string => `${type} ${user}`;
  const forget = (of: Owned | undefined): void => {
    if (of) known.delete(keyOf(of.user, of.type));
    else known.clear();
  };
  return {
    of(user, type, read) {
      const key = keyOf(user, type);
      const rows = known.get(key) ?? read();
      known.set(key, rows);
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
