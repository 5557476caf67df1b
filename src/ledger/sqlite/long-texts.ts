import { randomUUID } from 'node:crypto';
import { yieldToEventLoop } from '../../lib/event-loop.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

/** The characters written in one turn of the event loop, which takes two or three milliseconds. */
const PART_CHARS = 512 * 1024;
/** Begins a reference to a long text. No JSON text begins with this character. */
const REFERENCE_PREFIX = '@';

/** The columns of each kind of record whose texts may be long. */
export const LONG_COLUMNS = {
  prompts: ['graphJson', 'extraDataJson'],
  jobs: ['workflowJson', 'provenanceJson'],
} as const;

/** The owner of a job's long texts; that of a prompt's is its key. */
export function jobOwner(jobId: string): string {
  return `job ${jobId}`;
}

type Names<Row> = readonly (keyof Row & string)[];

/**
 * Stores texts that are too long to be written in one turn of the event loop. They are stored in parts, in a table of
 * their own. The row has references in their place; when it is removed, triggers remove its long texts.
 */
export class LongTexts {
  readonly #db: Database;
  readonly #writer: Writer;

  constructor(db: Database, writer: Writer) {
    this.#db = db;
    this.#writer = writer;
  }

  isLong<Row extends object>(row: Row, names: Names<Row>): boolean {
    return names.some((name) => isLongText(row[name]));
  }

  /** Stores the long texts of a row, and returns the row with references. Write that row afterwards. */
  async put<Row extends object>(owner: string, row: Row, names: Names<Row>): Promise<Row> {
    const referring = { ...row };
    for (const name of names) {
      const text: unknown = row[name];
      if (!isLongText(text)) continue;
      // Do not use a name again: the row keeps its earlier text until the row itself is written.
      const stored = `${name}.${randomUUID()}`;
      await this.#store(owner, stored, text);
      Object.assign(referring, { [name]: REFERENCE_PREFIX + stored });
    }
    return referring;
  }

  /** Replaces references in the row by getters that read the long text. Changes the row and returns it. */
  withTexts<Row extends object>(owner: string, row: Row, names: Names<Row>): Row {
    for (const name of names) {
      const text: unknown = row[name];
      if (typeof text !== 'string' || !text.startsWith(REFERENCE_PREFIX)) continue;
      // A getter, because most readers of a row use none of its long texts.
      const get = (): string => this.#textOf(owner, text.slice(REFERENCE_PREFIX.length));
      Object.defineProperty(row, name, { get, enumerable: true, configurable: true });
    }
    return row;
  }

  /** Removes the long texts of the owner to which the row does not refer. `undefined`: the row was not written. */
  async dropOthers(owner: string, row: object | undefined): Promise<void> {
    const names = this.#db.prepare('SELECT DISTINCT name FROM long_texts WHERE owner = ?');
    const drop = this.#db.prepare('DELETE FROM long_texts WHERE owner = ? AND name = ?');
    const referenced = new Set(Object.values(row ?? {}));
    for (const { name } of names.all(owner) as { name: string }[]) {
      if (!referenced.has(REFERENCE_PREFIX + name))
        await this.#writer.write(() => void drop.run(owner, name));
    }
  }

  /** Removes long texts without a row, which a crashed process may have left. */
  dropOrphans(): void {
    this.#db.exec(`DELETE FROM long_texts WHERE owner NOT IN (SELECT key FROM prompts)
      AND owner NOT IN (SELECT 'job ' || id FROM jobs)`);
  }

  async #store(owner: string, name: string, text: string): Promise<void> {
    const insert = this.#db.prepare('INSERT INTO long_texts VALUES (?, ?, ?, ?)');
    let part = 0;
    for (let start = 0; start < text.length;) {
      const end = endOfPart(text, start);
      const piece = text.slice(start, end);
      await this.#writer.write(() => void insert.run(owner, name, part, piece));
      start = end;
      part++;
      await yieldToEventLoop();
    }
  }

  #textOf(owner: string, name: string): string {
    const parts = this.#db.prepare(
      'SELECT text FROM long_texts WHERE owner = ? AND name = ? ORDER BY part',
    );
    return (parts.all(owner, name) as { text: string }[]).map(({ text }) => text).join('');
  }
}

function isLongText(text: unknown): text is string {
  return typeof text === 'string' && text.length > 2 * PART_CHARS;
}

/** The end of the part that begins at `start`. It never splits a surrogate pair, because SQLite stores UTF-8. */
function endOfPart(text: string, start: number): number {
  const end = Math.min(text.length, start + PART_CHARS);
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
