import type { LogEntry } from './journal.ts';

/** What other processes tell this one about their logs, and ask of its own. */
export type LogEar = {
  subscribed(user: string, clientId: string): void;
  unsubscribed(user: string, clientId: string): void;
  /** Another process has logged these. */
  lines(user: string, entries: readonly LogEntry[]): void;
  /** The last lines of this process. */
  entries(user: string): readonly LogEntry[];
};

/** The logs of all processes; like previews, nothing of it has to arrive. */
export interface LogShare {
  /** A socket that may be at any process wants the lines of all. */
  subscribe(user: string, clientId: string): Promise<void>;
  unsubscribe(user: string, clientId: string): Promise<void>;
  tell(user: string, entries: readonly LogEntry[]): void;
  /** The last lines of all other processes, in no order. */
  gather(user: string): Promise<readonly LogEntry[]>;
  close(): void;
}

/** For a process that is alone. */
export function createLoneLogShare(): LogShare {
  return {
    async subscribe() {},
    async unsubscribe() {},
    tell() {},
    gather: async () => [],
    close() {},
  };
}
