import { randomUUID } from 'node:crypto';
import { yieldToEventLoop } from '../../lib/event-loop.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

/** Characters written in one turn: two or three milliseconds. */
const PART_CHARS = 512 * 1024;
/** No JSON text begins with this character. */
const REFERENCE_PREFIX = '@';

type Names<Row> = readonly (keyof Row & string)[];

/**
 * Texts too long to be written in one turn of the event loop, stored in parts beside their row. The
 * row has a reference in their place, and its removal removes them.
 */
export function longTexts(db: Database, writer: Writer) {
  const sql = {
    insert: db.prepare('INSERT INTO long_texts (owner, name, part, text) VALUES (?, ?, ?, ?)'),
    parts: db.prepare('SELECT text FROM long_texts WHERE owner = ? AND name = ? ORDER BY part'),
    names: db.prepare('SELECT DISTINCT name FROM long_texts WHERE owner = ?'),
    drop: db.prepare('DELETE FROM long_texts WHERE owner = ? AND name = ?'),
    orphans: db.prepare(`DELETE FROM long_texts WHERE owner NOT IN (SELECT key FROM prompts)
      AND owner NOT IN (SELECT 'job ' || id FROM jobs)`),
  };

  async function store(owner: string, name: string, text: string): Promise<void> {
    let part = 0;
    for (let start = 0; start < text.length;) {
      const end = endOfPart(text, start);
      const piece = text.slice(start, end);
      await writer.writeOne(() => void sql.insert.run(owner, name, part, piece));
      start = end;
      part++;
      await yieldToEventLoop();
    }
  }

  function textOf(owner: string, name: string): string {
    const parts = sql.parts.all(owner, name) as { text: string }[];
    return parts.map(({ text }) => text).join('');
  }

  return {
    isLong: <Row extends object>(row: Row, names: Names<Row>): boolean =>
      names.some((name) => isLongText(row[name])),
    /** Stores the long texts of a row in parts; returns the row to be written after them. */
    async put<Row extends object>(owner: string, row: Row, names: Names<Row>): Promise<Row> {
      const marked = { ...row };
      for (const name of names) {
        const text: unknown = row[name];
        if (!isLongText(text)) continue;
        // Names are never reused: a row keeps its earlier text until the row itself is written.
        const stored = `${name}.${randomUUID()}`;
        await store(owner, stored, text);
        Object.assign(marked, { [name]: REFERENCE_PREFIX + stored });
      }
      return marked;
    },
    /** The row with its texts, which are read on first use. */
    withTexts<Row extends object>(owner: string, row: Row, names: Names<Row>): Row {
      for (const name of names) {
        const text: unknown = row[name];
        if (typeof text !== 'string' || !text.startsWith(REFERENCE_PREFIX)) continue;
        // Most readers of a row use none of them.
        const get = (): string => textOf(owner, text.slice(REFERENCE_PREFIX.length));
        Object.defineProperty(row, name, { get, enumerable: true, configurable: true });
      }
      return row;
    },
    /**
     * Removes the texts that the row no longer refers to; `undefined` when the row was not written.
     */
    async dropOthers(owner: string, row: object | undefined): Promise<void> {
      const referenced = new Set(Object.values(row ?? {}));
      for (const { name } of sql.names.all(owner) as { name: string }[]) {
        if (!referenced.has(REFERENCE_PREFIX + name))
          await writer.writeOne(() => void sql.drop.run(owner, name));
      }
    },
    /** Removes texts that a crashed process wrote without a row. */
    dropOrphans: (): void => void sql.orphans.run(),
  };
}

function isLongText(text: unknown): text is string {
  return typeof text === 'string' && text.length > 2 * PART_CHARS;
}

/** Does not split a surrogate pair, because SQLite stores UTF-8. */
function endOfPart(text: string, start: number): number {
  const end = Math.min(text.length, start + PART_CHARS);
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
