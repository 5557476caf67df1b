import { LRUCache } from 'lru-cache';
import { PROMPT_COLUMNS } from '../columns.ts';
import type { PromptOutline, PromptRow } from '../ledger.ts';
import { sqlColumns } from './sql-columns.ts';
import type { Database } from './database.ts';

/** Outlines of done prompts, cached for the users whose front ends poll them. */
export type OutlineCache = {
  /** In completion order. */
  of(user: string): readonly PromptOutline[];
  /** Appends a prompt that has just ended. */
  append(key: string): void;
  /** Drops the cache of one user, or of all. */
  forget(user?: string): void;
};

const COLUMNS = `${sqlColumns<PromptRow>(PROMPT_COLUMNS).select([
  'key',
  'promptId',
  'statusWord',
  'createdAtMs',
  'startedAtMs',
  'endedAtMs',
])}, stored_bytes AS storedBytes`;

/** Each may have as many outlines as history has entries. */
const MAX_CACHED_USERS = 20;

export function createOutlineCache(db: Database): OutlineCache {
  const all = db.prepare(`SELECT ${COLUMNS} FROM prompts INDEXED BY prompts_done
    WHERE user = ? AND state = 'done' ORDER BY done_seq`);
  const one = db.prepare(`SELECT ${COLUMNS} FROM prompts WHERE key = ? AND state = 'done'`);
  const owner = db.prepare('SELECT user FROM prompts WHERE key = ?');
  const cached = new LRUCache<string, Map<string, PromptOutline>>({ max: MAX_CACHED_USERS });

  function read(user: string): Map<string, PromptOutline> {
    const rows = all.all(user) as unknown as PromptOutline[];
    return new Map(rows.map((outline) => [outline.key, outline]));
  }

  return {
    of(user) {
      const outlines = cached.get(user) ?? read(user);
      cached.set(user, outlines);
      return [...outlines.values()];
    },
    append(key) {
      if (cached.size === 0) return;
      const { user = '' } = (owner.get(key) as { readonly user: string } | undefined) ?? {};
      const outlines = cached.peek(user);
      outlines?.delete(key);
      outlines?.set(key, one.get(key) as unknown as PromptOutline);
    },
    forget(user) {
      if (user === undefined) cached.clear();
      else cached.delete(user);
    },
  };
}
