import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../wire/json.ts';
import type { LogEntry } from './journal.ts';

/** Sends new lines of the log to the sockets that asked for them. */
export type LogFeed = {
  subscribe(user: string, clientId: string): void;
  unsubscribe(user: string, clientId: string): void;
  readonly push: (user: string, entry: () => LogEntry) => void;
  close(): void;
};

/** v1 tells the size of its terminal; ours has none and says what v1's is without one. */
export const TERMINAL_SIZE = { cols: 80, rows: 24 } as const;

/** Lines that come close together share a frame. */
const GATHER_MS = 100;
const MOST_A_FRAME = 300;
const SUBSCRIPTIONS_KEPT = 2000;

type Subscription = { readonly user: string; readonly clientId: string; knowsSize: boolean };

export function createLogFeed(deps: {
  readonly tell: (user: string, clientId: string, data: JsonObject) => void;
}): LogFeed {
  const subscriptions = new LRUCache<string, Subscription>({ max: SUBSCRIPTIONS_KEPT });
  const waiting = new Map<string, LogEntry[]>();
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    timer = undefined;
    for (const subscription of subscriptions.values()) {
      const entries = waiting.get(subscription.user);
      if (entries) send(subscription, entries);
    }
    waiting.clear();
  }

  /** The size is told when it changes, which is once. */
  function send(subscription: Subscription, entries: readonly LogEntry[]): void {
    const size = subscription.knowsSize ? null : TERMINAL_SIZE;
    subscription.knowsSize = true;
    deps.tell(subscription.user, subscription.clientId, { entries, size });
  }

  return {
    subscribe(user, clientId) {
      const key = keyOf(user, clientId);
      if (!subscriptions.has(key)) subscriptions.set(key, { user, clientId, knowsSize: false });
    },
    unsubscribe(user, clientId) {
      subscriptions.delete(keyOf(user, clientId));
    },
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
    },
  };
}

function keyOf(user: string, clientId: string): string {
  return JSON.stringify([user, clientId]);
}
