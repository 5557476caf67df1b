import { LRUCache } from 'lru-cache';
import type { PromptOutline } from './ledger.ts';

/** The part of the history of a user that was read. `Mark`: up to where it was read. */
type ReadOutlines<Mark> = {
  readonly mark: Mark;
  /** All of them: some of those before the mark were removed, or there was no mark. */
  readonly isWhole: boolean;
  readonly outlines: readonly PromptOutline[];
};

type CachedOutlines<Mark> = {
  readonly mark: Mark;
  readonly byKey: Map<string, PromptOutline>;
  readonly inOrder: readonly PromptOutline[];
};

/** Each may have as many outlines as history has entries. */
const MAX_CACHED_USERS = 20;

/** Outlines of done prompts. Front ends poll them; each poll reads only the new ones. */
export function createOutlineCache<Mark>(
  readAfter: (user: string, mark?: Mark) => ReadOutlines<Mark> | Promise<ReadOutlines<Mark>>,
) {
  const cached = new LRUCache<string, CachedOutlines<Mark>>({ max: MAX_CACHED_USERS });
  return {
    of: async (user: string): Promise<readonly PromptOutline[]> => {
      const before = cached.get(user);
      const reading = readAfter(user, before?.mark);
      // At once where it can be: nothing is forgotten in between.
      const { mark, isWhole, outlines } = reading instanceof Promise ? await reading : reading;
      if (before && !isWhole && outlines.length === 0) return before.inOrder;
      const byKey: CachedOutlines<Mark>['byKey'] = (!isWhole && before?.byKey) || new Map();
      for (const outline of outlines) {
        // One that ended again has its latest place.
        byKey.delete(outline.key);
        byKey.set(outline.key, outline);
      }
      const inOrder = [...byKey.values()];
      cached.set(user, { mark, byKey, inOrder });
      return inOrder;
    },
    /** For a ledger whose marks do not tell removals: those of one user, or of all. */
    forget(user?: string): void {
      if (user === undefined) cached.clear();
      else cached.delete(user);
    },
  };
}
