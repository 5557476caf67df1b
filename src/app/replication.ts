import type { Ledger } from '../ledger/ledger.ts';
import type { Store } from './store.ts';
import type { LogPanel } from '../observability/log-panel.ts';
import type { Logger } from '../observability/log.ts';
import { type PromptEventLog, createLocalEventLog } from '../prompts/prompt-event-log.ts';
import type { SharedCounter } from '../prompts/submission.ts';

/** Opens the prompt event log: of this process alone, or shared by all processes of this ledger. */
export async function openPromptEventLog(
  { links, instance, useWriteTokens }: Store,
  log: Logger,
): Promise<PromptEventLog> {
  if (!links) return createLocalEventLog();
  const { SharedEventLog } = await import('../replication/shared-event-log.ts');
  const promptEventLog = new SharedEventLog({ links, instance, log });
  useWriteTokens(promptEventLog.streams);
  return promptEventLog;
}

/** Connects the log panel with the other processes of this ledger, if there are any. */
export async function connectLogs(
  { links, instance }: Store,
  panel: LogPanel,
  log: Logger,
): Promise<void> {
  if (!links) return;
  const { openSharedLog } = await import('../replication/shared-log-lines.ts');
  panel.connect(await openSharedLog({ links, instance, panel, log }));
}

/**
 * Opens the counter of prompts. It continues where an earlier process stopped, since prompts of
 * that process may still have to run.
 */
export async function openPromptCounter(
  links: Store['links'],
  ledger: Ledger,
): Promise<SharedCounter> {
  const first = Math.floor((await ledger.prompts.highestNumber()) + 1);
  if (!links) {
    let number = first;
    return { next: () => number++ };
  }
  const { commands, prefix } = links;
  const key = `${prefix}number`;
  await commands.set(key, first, 'NX');
  return { next: async () => (await commands.incr(key)) - 1 };
}
