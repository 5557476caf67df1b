import { packageVersion } from '../config/version.ts';
import { createLogBuffer, type LogBuffer } from '../observability/log-buffer.ts';
import { createLogFeed, type LogFeed } from '../observability/log-subscriptions.ts';
import type { Logger } from '../observability/log.ts';

/** The log, and the part of it that v1 clients see in their log panel. */
export interface Logs {
  readonly log: Logger;
  readonly buffer: LogBuffer;
  readonly feed: LogFeed;
}

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
    buffer,
    feed,
  };
}
