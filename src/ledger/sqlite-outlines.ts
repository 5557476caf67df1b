import { LRUCache } from 'lru-cache';
import type { PromptOutline } from './ledger.ts';
import type { Database } from './sqlite.ts';

/** Outlines of done prompts, in memory for those whose front ends poll them. */
export type Outlines = {
  /** In completion order. */
  of(user: string): readonly PromptOutline[];
  /** A prompt has just ended: it is the last of its user's. */
  ended(key: string): void;
  /** Something else has changed: of this user, or of all. */
  forget(user?: string): void;
};

const COLUMNS = `key, prompt_id AS promptId, status_word AS statusWord,
  created_at_ms AS createdAtMs, started_at_ms AS startedAtMs, ended_at_ms AS endedAtMs,
  stored_bytes AS storedBytes`;

/** Of each there may be as many as history keeps. */
const MOST_USERS = 20;

export function createOutlines(db: Database): Outlines {
  const all = db.prepare(`SELECT ${COLUMNS} FROM prompts INDEXED BY prompts_done
    WHERE user = ? AND state = 'done' ORDER BY done_seq`);
  const one = db.prepare(`SELECT ${COLUMNS} FROM prompts WHERE key = ? AND state = 'done'`);
  const owner = db.prepare('SELECT user FROM prompts WHERE key = ?');
  const known = new LRUCache<string, Map<string, PromptOutline>>({ max: MOST_USERS });

  function read(user: string): Map<string, PromptOutline> {
    const rows = all.all(user) as unknown as PromptOutline[];
    return new Map(rows.map((outline) => [outline.key, outline]));
  }

  return {
    of(user) {
      const theirs = known.get(user) ?? read(user);
      known.set(user, theirs);
      return [...theirs.values()];
    },
    ended(key) {
      if (known.size === 0) return;
      const { user = '' } = (owner.get(key) as { readonly user: string } | undefined) ?? {};
      const theirs = known.peek(user);
      theirs?.delete(key);
      theirs?.set(key, one.get(key) as unknown as PromptOutline);
    },
    forget(user) {
      if (user === undefined) known.clear();
      else known.delete(user);
    },
  };
}
