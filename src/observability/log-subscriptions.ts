import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../protocol/json.ts';
import type { LogEntry } from './log-buffer.ts';

/** Sends new lines of the log to the sockets that asked for them. */
export type LogFeed = ReturnType<typeof createLogFeed>;

/** v1 sends the size of its terminal; this is its size without one. */
export const TERMINAL_SIZE = { cols: 80, rows: 24 } as const;

/** Lines that come close together share a frame. */
const BATCH_DELAY_MS = 100;
const MAX_ENTRIES_PER_FRAME = 300;
const MAX_SUBSCRIPTIONS = 2000;

type LogMessage = { readonly type: 'logs'; readonly data: JsonObject };

type Subscription = { readonly user: string; readonly clientId: string; hasSize: boolean };

export function createLogFeed(options: {
  readonly sendTo: (user: string, clientId: string, message: LogMessage) => void;
}) {
  const subscriptions = new LRUCache<string, Subscription>({ max: MAX_SUBSCRIPTIONS });
  const pending = new Map<string, LogEntry[]>();
  let timer: NodeJS.Timeout | undefined;
  /** `undefined`: this process is alone. */
  let sharedLog: SharedLog | undefined;

  function flush(): void {
    timer = undefined;
    const lines = [...pending];
    pending.clear();
    for (const [user, entries] of lines)
      if (sendToSubscribers(user, entries) > 0) sharedLog?.publish(user, entries);
  }

  /** Sends entries to the subscribed sockets here; returns the number of subscriptions at all processes. */
  function sendToSubscribers(user: string, entries: readonly LogEntry[]): number {
    const subscribed = [...subscriptions.values()].filter((one) => one.user === user);
    for (const subscription of subscribed) send(subscription, entries);
    return subscribed.length;
  }

  function add(user: string, clientId: string): void {
    const key = keyOf(user, clientId);
    if (!subscriptions.has(key)) subscriptions.set(key, { user, clientId, hasSize: false });
  }

  function remove(user: string, clientId: string): void {
    subscriptions.delete(keyOf(user, clientId));
  }

  /** The size is sent when it changes, which is once. */
  function send(subscription: Subscription, entries: readonly LogEntry[]): void {
    const size = subscription.hasSize ? null : TERMINAL_SIZE;
    subscription.hasSize = true;
    const data = { entries, size };
    options.sendTo(subscription.user, subscription.clientId, { type: 'logs', data });
  }

  return {
    /** Resolves when all processes know. */
    async subscribe(user: string, clientId: string): Promise<void> {
      add(user, clientId);
      await sharedLog?.subscribe(user, clientId);
    },
    async unsubscribe(user: string, clientId: string): Promise<void> {
      remove(user, clientId);
      await sharedLog?.unsubscribe(user, clientId);
    },
    /** The last lines of all other processes, in no order. */
    gather: async (user: string): Promise<readonly LogEntry[]> =>
      (await sharedLog?.gather(user)) ?? [],
    /** Connects to the logs of other processes. */
    connect: (other: SharedLog) => void (sharedLog = other),
    handlers: {
      onSubscribe: add,
      onUnsubscribe: remove,
      onEntries: (...lines) => void sendToSubscribers(...lines),
      subscriptions: () =>
        [...subscriptions.values()].map(({ user, clientId }) => [user, clientId] as const),
    } satisfies Omit<SharedLogHandlers, 'entries'>,
    push(this: void, user: string, entry: LogEntry): void {
      if (subscriptions.size === 0) return;
      const entries = pending.get(user) ?? [];
      entries.push(entry);
      if (entries.length > MAX_ENTRIES_PER_FRAME) entries.shift();
      pending.set(user, entries);
      timer ??= setTimeout(flush, BATCH_DELAY_MS).unref();
    },
    close(): void {
      clearTimeout(timer);
      sharedLog?.close();
    },
  };
}

function keyOf(user: string, clientId: string): string {
  return JSON.stringify([user, clientId]);
}

/** Handlers for messages of other processes about logs. */
export type SharedLogHandlers = {
  onSubscribe(user: string, clientId: string): void;
  onUnsubscribe(user: string, clientId: string): void;
  /** Another process has logged these entries. */
  onEntries(user: string, entries: readonly LogEntry[]): void;
  /** The users and client ids that are subscribed. */
  subscriptions(): readonly (readonly [user: string, clientId: string])[];
  /** The last lines of this process. */
  entries(user: string): readonly LogEntry[];
};

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
