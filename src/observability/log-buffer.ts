import { LRUCache } from 'lru-cache';
import type { Logger } from './log.ts';
import { type LogFields, lineText, isShownToClients } from './log-line.ts';

/** One line of the log as v1 shows it: when, and what with its line end. */
export type LogEntry = { readonly t: string; readonly m: string };

/**
 * The last lines of the log for each user. A line belongs to the user its field `user` names;
 * lines without one are in the operator's log only.
 */
export type LogBuffer = {
  /** The same log; every line is also recorded for its user. */
  wrap(log: Logger): Logger;
  entries(user: string): readonly LogEntry[];
};

/** The number v1 has. */
export const MAX_ENTRIES = 300;
const MAX_USERS = 100;
const LEVELS: ReadonlySet<string> = new Set(['info', 'warn', 'error', 'fatal']);

type Log = (fields: unknown, message?: string) => void;

export function createLogBuffer(options: {
  readonly now: () => number;
  /** The first line of every user: a log panel without any line looks broken. */
  readonly startLine: string;
  /** The entry is put into words when it is asked for. */
  readonly onEntry: (user: string, entry: () => LogEntry) => void;
}): LogBuffer {
  const startEntry = { t: new Date(options.now()).toISOString(), m: `${options.startLine}\n` };
  const entriesByUser = new LRUCache<string, (() => LogEntry)[]>({ max: MAX_USERS });

  function record(level: string, given: unknown, message: string | undefined): void {
    const fields = typeof given === 'object' && given !== null ? (given as LogFields) : {};
    const { user } = fields;
    if (typeof user !== 'string') return;
    const text = message ?? String(given);
    if (!isShownToClients(fields)) return;
    const entry = entryFrom(level, fields, text);
    const userEntries = entriesByUser.get(user) ?? [];
    userEntries.push(entry);
    if (userEntries.length > MAX_ENTRIES) userEntries.shift();
    entriesByUser.set(user, userEntries);
    options.onEntry(user, entry);
  }

  /** Only fields a client may see are stored; the text is made when it is read, which is rare. */
  function entryFrom(level: string, fields: LogFields, text: string): () => LogEntry {
    const atMs = options.now();
    const { event, method, url, path, status, ms, promptId } = fields;
    const shown = { event, method, url, path, status, ms, promptId };
    return () => ({
      t: new Date(atMs).toISOString(),
      m: `${lineText(level, shown, text)}\n`,
    });
  }

  return {
    wrap: (log) =>
      new Proxy(log, {
        get(target, name, receiver) {
          const member = Reflect.get(target, name, receiver) as unknown;
          if (typeof name !== 'string' || !LEVELS.has(name)) return member;
          return ((fields, message) => {
            record(name, fields, message);
            Reflect.apply(
              member as Log,
              target,
              message === undefined ? [fields] : [fields, message],
            );
          }) satisfies Log;
        },
      }),
    entries: (user) => [startEntry, ...(entriesByUser.get(user) ?? []).map((entry) => entry())],
  };
}
