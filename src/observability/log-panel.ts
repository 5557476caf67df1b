import { LRUCache } from 'lru-cache';
import { isoTime } from '../lib/clock.ts';
import type { JsonObject } from '../protocol/json.ts';
import { withUserLines } from './log-lines.ts';
import type { Logger } from './log.ts';

/** One line of the log as v1 shows it: when, and what with its line end. */
export type LogEntry = { readonly t: string; readonly m: string };

/** v1 sends the size of its terminal; this is its size without one. */
export const TERMINAL_SIZE = { cols: 80, rows: 24 } as const;

/** Lines that come close together share a frame. */
const BATCH_DELAY_MS = 100;
/** The number v1 has. */
const MAX_ENTRIES = 300;
const MAX_USERS = 100;
const MAX_SUBSCRIPTIONS = 2000;

type LogMessage = { readonly type: 'logs'; readonly data: JsonObject };

type Subscription = { readonly user: string; readonly clientId: string; hasSize: boolean };

type LogPanelOptions = {
  readonly now: () => number;
  /** The first line of every user: a log panel without any line looks broken. */
  readonly startLine: string;
  readonly sendTo: (user: string, clientId: string, message: LogMessage) => void;
};

/**
 * The log that v1 clients see: the last lines of each user, and new ones for the sockets that asked
 * for them. Lines that name no user are in the operator's log only.
 */
export class LogPanel {
  readonly #options: LogPanelOptions;
  readonly #startEntry: LogEntry;
  readonly #entries = new LRUCache<string, LogEntry[]>({ max: MAX_USERS });
  readonly #subscriptions = new LRUCache<string, Subscription>({ max: MAX_SUBSCRIPTIONS });
  readonly #pending = new Map<string, LogEntry[]>();
  #timer: NodeJS.Timeout | undefined;
  /** `undefined`: this process is alone. */
  #shared: SharedLog | undefined;

  constructor(options: LogPanelOptions) {
    this.#options = options;
    this.#startEntry = this.#entryOf(options.startLine);
  }

  /** The same log; its lines about a user are also shown in the panel. */
  wrap(log: Logger): Logger {
    return withUserLines(log, (user, text) => this.#record(user, this.#entryOf(text)));
  }

  /** The last lines about a user, of all processes. */
  async lastLines(user: string): Promise<readonly LogEntry[]> {
    const others = (await this.#shared?.gather(user)) ?? [];
    const all = [...others, ...this.ownLines(user)];
    return all.toSorted((a, b) => (a.t < b.t ? -1 : Number(a.t > b.t))).slice(-MAX_ENTRIES);
  }

  /** Those of this process. */
  ownLines(user: string): readonly LogEntry[] {
    return [this.#startEntry, ...(this.#entries.get(user) ?? [])];
  }

  /** Resolves when all processes know. */
  async subscribe(user: string, clientId: string): Promise<void> {
    this.add(user, clientId);
    await this.#shared?.subscribe(user, clientId);
  }

  async unsubscribe(user: string, clientId: string): Promise<void> {
    this.remove(user, clientId);
    await this.#shared?.unsubscribe(user, clientId);
  }

  /** Connects to the logs of other processes. */
  connect(shared: SharedLog): void {
    this.#shared = shared;
  }

  /** Adds a subscription, of this or another process. */
  add(user: string, clientId: string): void {
    const key = keyOf(user, clientId);
    if (this.#subscriptions.has(key)) return;
    this.#subscriptions.set(key, { user, clientId, hasSize: false });
  }

  remove(user: string, clientId: string): void {
    this.#subscriptions.delete(keyOf(user, clientId));
  }

  subscriptions(): readonly Subscription[] {
    return [...this.#subscriptions.values()];
  }

  /** Sends lines to the subscribed sockets here; returns the number of subscriptions at all processes. */
  send(user: string, entries: readonly LogEntry[]): number {
    const subscribed = this.subscriptions().filter((one) => one.user === user);
    for (const subscription of subscribed) {
      // The size is sent when it changes, which is once.
      const data = { entries, size: subscription.hasSize ? null : TERMINAL_SIZE };
      subscription.hasSize = true;
      this.#options.sendTo(user, subscription.clientId, { type: 'logs', data });
    }
    return subscribed.length;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#shared?.close();
  }

  #entryOf(text: string): LogEntry {
    return { t: isoTime(this.#options.now()), m: `${text}\n` };
  }

  #record(user: string, entry: LogEntry): void {
    append(this.#entries, user, entry);
    if (this.#subscriptions.size === 0) return;
    append(this.#pending, user, entry);
    this.#timer ??= setTimeout(() => this.#flush(), BATCH_DELAY_MS).unref();
  }

  #flush(): void {
    this.#timer = undefined;
    const lines = [...this.#pending];
    this.#pending.clear();
    for (const [user, entries] of lines)
      if (this.send(user, entries) > 0) this.#shared?.publish(user, entries);
  }
}

function append(
  lists: LRUCache<string, LogEntry[]> | Map<string, LogEntry[]>,
  user: string,
  entry: LogEntry,
): void {
  const entries = lists.get(user);
  if (entries === undefined) return void lists.set(user, [entry]);
  entries.push(entry);
  if (entries.length > MAX_ENTRIES) entries.shift();
}

function keyOf(user: string, clientId: string): string {
  return JSON.stringify([user, clientId]);
}

/** The logs of all processes; like previews, nothing of it has to arrive. */
export interface SharedLog {
  /** A socket that may be at any process wants the lines of all. */
  subscribe(user: string, clientId: string): Promise<void>;
  unsubscribe(user: string, clientId: string): Promise<void>;
  publish(user: string, entries: readonly LogEntry[]): void;
  /** The last lines of all other processes, in no order. */
  gather(user: string): Promise<readonly LogEntry[]>;
  close(): void;
}
