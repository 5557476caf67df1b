import { packageVersion } from '../config/version.ts';
import { type LogBuffer, createLogBuffer } from '../observability/log-buffer.ts';
import {
  type LogFeed,
  createLogFeed,
  type SharedLog,
  createLocalSharedLog,
} from '../observability/log-subscriptions.ts';
import { type Logger, withoutRedaction } from '../observability/log.ts';
import { openSharedLogOf } from './replication.ts';
import type { Store } from './store.ts';

/** The log, and the part of it that v1 clients see in their log panel. */
export type Logs = {
  readonly log: Logger;
  /** Writes the line of each request. */
  readonly requestLog: Logger;
  readonly buffer: LogBuffer;
  readonly feed: LogFeed;
  /** The log lines of all processes. Until `connectLogs`, only those of this process. */
  shared: SharedLog;
};

const START_LINE = `Holdover ${packageVersion()} started`;

/** Opens the logs of a process. Lines of the operator log also go into the log panel of v1 clients. */
export function openLogs(
  operatorLog: Logger,
  options: { readonly now: () => number } & Parameters<typeof createLogFeed>[0],
): Logs {
  const feed = createLogFeed({ sendTo: options.sendTo });
  const buffer = createLogBuffer({
    now: options.now,
    startLine: START_LINE,
    onEntry: feed.push,
  });
  return {
    log: buffer.wrap(operatorLog),
    requestLog: buffer.wrap(withoutRedaction(operatorLog)),
    buffer,
    feed,
    shared: createLocalSharedLog(),
  };
}

/** Connects the log panel with the other processes of this ledger, if there are any. */
export async function connectLogs(logs: Logs, store: Store): Promise<void> {
  logs.shared = await openSharedLogOf(store, logs);
}
