import { LRUCache } from 'lru-cache';
import type { Logger } from './log.ts';

/** One line of the log as v1 shows it: when, and what with its line end. */
export type LogEntry = { readonly t: string; readonly m: string };

/** The number v1 has. */
export const MAX_ENTRIES = 300;
const MAX_USERS = 100;
const LEVELS = ['info', 'warn', 'error', 'fatal'] as const;

type LogBufferOptions = {
  readonly now: () => number;
  readonly startLine: string;
  readonly onEntry: (user: string, entry: LogEntry) => void;
};

/**
 * The last lines of the log for each user. A line belongs to the user its field `user` names;
 * lines without one are in the operator's log only.
 */
export class LogBuffer {
  readonly #options: LogBufferOptions;
  readonly #startEntry: LogEntry;
  readonly #entries = new LRUCache<string, LogEntry[]>({ max: MAX_USERS });

  constructor(options: LogBufferOptions) {
    this.#options = options;
    this.#startEntry = this.#entryOf(options.startLine);
  }

  /** The same log; every line is also recorded for its user. */
  wrap(log: Logger): Logger {
    const wrapped = Object.create(log) as Logger;
    for (const level of LEVELS)
      wrapped[level] = (fields: unknown, message?: string) => {
        this.#record(level, fields, message);
        log[level](fields, message);
      };
    return wrapped;
  }

  entries(user: string): readonly LogEntry[] {
    return [this.#startEntry, ...(this.#entries.get(user) ?? [])];
  }

  #entryOf(text: string): LogEntry {
    const t = new Date(this.#options.now()).toISOString();
    // A copy: the text may be a view of an address of 64 KiB, and would hold all of it in memory.
    return { t, m: Buffer.from(`${text}\n`).toString() };
  }

  #record(level: string, given: unknown, message: string | undefined): void {
    const fields = typeof given === 'object' && given !== null ? (given as LogFields) : {};
    const { user } = fields;
    if (typeof user !== 'string' || !isShownToClients(fields)) return;
    const entry = this.#entryOf(lineText(level, fields, message ?? String(given)));
    const entries = this.#entries.get(user) ?? [];
    entries.push(entry);
    if (entries.length > MAX_ENTRIES) entries.shift();
    this.#entries.set(user, entries);
    this.#options.onEntry(user, entry);
  }
}

/** Fields of a log line that may be shown to a client; no other field ever is. */
type LogFields = Partial<
  Record<'event' | 'user' | 'method' | 'url' | 'path' | 'status' | 'ms' | 'promptId', unknown>
>;

const MAX_CHARS = 1000;

/**
 * True when a line is of interest to a client. Pollers call many times a second: calls that only read and
 * succeed would push out everything else.
 */
function isShownToClients({ event, method, url, status }: LogFields): boolean {
  if (event !== 'request.answered') return true;
  const isRead = method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
  // An unknown route has its own line, logged once.
  if (isRead && (Number(status) < 400 || status === 404)) return false;
  return !String(url).startsWith('/internal/logs');
}

/** A line of the log in words a client may see. */
function lineText(level: string, fields: LogFields, message: string): string {
  if (fields.event === 'request.answered') return callText(fields);
  if (fields.event === 'prompt.finished') {
    return `Prompt executed in ${(Number(fields.ms) / 1000).toFixed(2)} seconds`;
  }
  if (fields.event === 'route.unknown')
    return withoutControlCharacters(`${String(fields.method)} ${String(fields.path)}: unknown`);
  const promptSuffix = typeof fields.promptId === 'string' ? ` (prompt ${fields.promptId})` : '';
  return withoutControlCharacters(
    `${level === 'info' ? '' : `${level.toUpperCase()}: `}${message}${promptSuffix}`,
  );
}

function callText({ method, url, status, ms }: LogFields): string {
  const path = String(url).split('?', 1)[0] ?? '';
  // Watchers of the v1 server's log wait for these words.
  if (/^(\/api)?\/prompt$/.test(path) && status === 200) return 'got prompt';
  return withoutControlCharacters(
    `${String(method)} ${path} -> ${String(status)} (${String(ms)} ms)`,
  );
}

function withoutControlCharacters(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, ' ').slice(0, MAX_CHARS);
}
