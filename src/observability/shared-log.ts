import type { LogEntry } from './log-buffer.ts';

/** Handlers for messages of other processes about logs. */
export type SharedLogHandlers = {
  onSubscribe(user: string, clientId: string): void;
  onUnsubscribe(user: string, clientId: string): void;
  /** Another process has logged these entries. */
  onEntries(user: string, entries: readonly LogEntry[]): void;
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

/** For a process that is alone. */
export function createLocalSharedLog(): SharedLog {
  return {
    async subscribe() {},
    async unsubscribe() {},
    publish() {},
    gather: async () => [],
    close() {},
  };
}
