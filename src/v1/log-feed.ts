import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../wire/json.ts';
import type { LogEntry } from './journal.ts';
import { type LogEar, type LogShare, createLoneLogShare } from './log-share.ts';

/** Sends new lines of the log to the sockets that asked for them. */
export type LogFeed = {
  /** Resolves when all processes know. */
  subscribe(user: string, clientId: string): Promise<void>;
  unsubscribe(user: string, clientId: string): Promise<void>;
  /** From now on other processes are told, and heard. */
  join(share: LogShare): void;
  readonly ear: Omit<LogEar, 'entries'>;
  readonly push: (user: string, entry: () => LogEntry) => void;
  close(): void;
};

/** v1 tells the size of its terminal; ours has none and says what v1's is without one. */
export const TERMINAL_SIZE = { cols: 80, rows: 24 } as const;

/** Lines that come close together share a frame. */
const GATHER_MS = 100;
const MOST_A_FRAME = 300;
const SUBSCRIPTIONS_KEPT = 2000;

type LogMessage = { readonly type: 'logs'; readonly data: JsonObject };

type Subscription = { readonly user: string; readonly clientId: string; knowsSize: boolean };

export function createLogFeed(deps: {
  readonly tell: (user: string, clientId: string, message: LogMessage) => void;
}): LogFeed {
  const subscriptions = new LRUCache<string, Subscription>({ max: SUBSCRIPTIONS_KEPT });
  const waiting = new Map<string, LogEntry[]>();
  let timer: NodeJS.Timeout | undefined;
  let share = createLoneLogShare();

  function flush(): void {
    timer = undefined;
    const lines = [...waiting];
    waiting.clear();
    for (const [user, entries] of lines) if (show(user, entries) > 0) share.tell(user, entries);
  }

  /** The number of those who asked for them, wherever their sockets are. */
  function show(user: string, entries: readonly LogEntry[]): number {
    const theirs = [...subscriptions.values()].filter((one) => one.user === user);
    for (const subscription of theirs) send(subscription, entries);
    return theirs.length;
  }

  function add(user: string, clientId: string): void {
    const key = keyOf(user, clientId);
    if (!subscriptions.has(key)) subscriptions.set(key, { user, clientId, knowsSize: false });
  }

  function remove(user: string, clientId: string): void {
    subscriptions.delete(keyOf(user, clientId));
  }

  /** The size is told when it changes, which is once. */
  function send(subscription: Subscription, entries: readonly LogEntry[]): void {
    const size = subscription.knowsSize ? null : TERMINAL_SIZE;
    subscription.knowsSize = true;
    const data = { entries, size };
    deps.tell(subscription.user, subscription.clientId, { type: 'logs', data });
  }

  return {
    async subscribe(user, clientId) {
      add(user, clientId);
      await share.subscribe(user, clientId);
    },
    async unsubscribe(user, clientId) {
      remove(user, clientId);
      await share.unsubscribe(user, clientId);
    },
    join: (others) => void (share = others),
    ear: { subscribed: add, unsubscribed: remove, lines: (...lines) => void show(...lines) },
    push(user, entry) {
      if (subscriptions.size === 0) return;
      const entries = waiting.get(user) ?? [];
      entries.push(entry());
      if (entries.length > MOST_A_FRAME) entries.shift();
      waiting.set(user, entries);
      timer ??= setTimeout(flush, GATHER_MS).unref();
    },
    close() {
      clearTimeout(timer);
      share.close();
    },
  };
}

function keyOf(user: string, clientId: string): string {
  return JSON.stringify([user, clientId]);
}
