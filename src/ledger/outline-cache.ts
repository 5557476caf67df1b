import { LRUCache } from 'lru-cache';
import type { PromptOutline } from './ledger.ts';

/** Outlines read from the history of a user. `Mark`: the position up to which it was read. */
type ReadOutlines<Mark> = {
  readonly mark: Mark;
  /** True when `outlines` has the whole history: there was no earlier mark, or prompts before it were removed. */
  readonly isWhole: boolean;
  readonly outlines: readonly PromptOutline[];
};

type CachedOutlines<Mark> = {
  readonly mark: Mark;
  readonly byKey: Map<string, PromptOutline>;
  readonly inOrder: readonly PromptOutline[];
};

/** Each cached user may have as many outlines as its history has entries. */
const MAX_CACHED_USERS = 20;

type OutlineCache = {
  readonly of: (user: string) => Promise<readonly PromptOutline[]>;
  /** Removes the cached outlines of one user, or of all. Needed when the mark of a ledger does not show removals. */
  readonly invalidate: (user?: string) => void;
};

/** Caches the outlines of done prompts. Front ends poll them, and each poll reads only the new ones. */
export function createOutlineCache<Mark>(
  readAfter: (user: string, mark?: Mark) => ReadOutlines<Mark> | Promise<ReadOutlines<Mark>>,
): OutlineCache {
  const cached = new LRUCache<string, CachedOutlines<Mark>>({ max: MAX_CACHED_USERS });
  return {
    of: async (user) => {
      const before = cached.get(user);
      const reading = readAfter(user, before?.mark);
      // SQLite reads at once. Do not await then: `invalidate` must not run between this read and the update below.
      const { mark, isWhole, outlines } = reading instanceof Promise ? await reading : reading;
      if (before && !isWhole && outlines.length === 0) return before.inOrder;
      const byKey: CachedOutlines<Mark>['byKey'] = (!isWhole && before?.byKey) || new Map();
      for (const outline of outlines) {
        // A prompt that ended twice has the position of its last end.
        byKey.delete(outline.key);
        byKey.set(outline.key, outline);
      }
      const inOrder = [...byKey.values()];
      cached.set(user, { mark, byKey, inOrder });
      return inOrder;
    },
    invalidate(user) {
      if (user === undefined) cached.clear();
      else cached.delete(user);
    },
  };
}
