import { LRUCache } from 'lru-cache';
import type { Logger } from '../telemetry.ts';
import { type LogFields, describeLine, isOfInterest } from './log-line.ts';

/** One line of the log as v1 shows it: when, and what with its line end. */
export type LogEntry = { readonly t: string; readonly m: string };

/**
 * The last lines of the log for each user. A line belongs to whoever it names as its `user`;
 * lines about nobody are for the operator's log only.
 */
export type Journal = {
  /** The same log, with every line noted for its user. */
  watch(log: Logger): Logger;
  entries(user: string): readonly LogEntry[];
};

/** As many as v1 keeps. */
export const ENTRIES_KEPT = 300;
const USERS_KEPT = 100;
const LEVELS: ReadonlySet<string> = new Set(['info', 'warn', 'error', 'fatal']);

type Log = (fields: unknown, message?: string) => void;

export function createJournal(deps: {
  readonly now: () => number;
  /** The first line of every user: a log panel without any line looks broken. */
  readonly startLine: string;
  /** The entry is put into words when it is asked for. */
  readonly onEntry: (user: string, entry: () => LogEntry) => void;
}): Journal {
  const start = { t: new Date(deps.now()).toISOString(), m: `${deps.startLine}\n` };
  const rings = new LRUCache<string, (() => LogEntry)[]>({ max: USERS_KEPT });

  function note(level: string, given: unknown, message: string | undefined): void {
    const fields = typeof given === 'object' && given !== null ? (given as LogFields) : {};
    const { user } = fields;
    if (typeof user !== 'string') return;
    const said = message ?? String(given);
    if (!isOfInterest(fields, said)) return;
    const entry = inWords(level, fields, said);
    const ring = rings.get(user) ?? [];
    ring.push(entry);
    if (ring.length > ENTRIES_KEPT) ring.shift();
    rings.set(user, ring);
    deps.onEntry(user, entry);
  }

  /** What a client is never shown is not kept; most lines nobody ever reads. */
  function inWords(level: string, fields: LogFields, said: string): () => LogEntry {
    const atMs = deps.now();
    const { method, url, path, status, ms, promptId } = fields;
    const shown = { method, url, path, status, ms, promptId };
    return () => ({
      t: new Date(atMs).toISOString(),
      m: `${describeLine(level, shown, said)}\n`,
    });
  }

  return {
    watch: (log) =>
      new Proxy(log, {
        get(target, name, receiver) {
          const member = Reflect.get(target, name, receiver) as unknown;
          if (typeof name !== 'string' || !LEVELS.has(name)) return member;
          return ((fields, message) => {
            note(name, fields, message);
            Reflect.apply(
              member as Log,
              target,
              message === undefined ? [fields] : [fields, message],
            );
          }) satisfies Log;
        },
      }),
    entries: (user) => [start, ...(rings.get(user) ?? []).map((entry) => entry())],
  };
}
