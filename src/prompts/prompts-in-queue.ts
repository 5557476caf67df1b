import type { Ledger } from '../ledger/ledger.ts';
import type { LivePrompt } from './live-prompt.ts';
import type { LivePrompts } from './live-prompts.ts';

export type QueueSources = { readonly livePrompts: LivePrompts; readonly ledger: Ledger };

/**
 * Returns the live prompts of the user that `/history` does not show yet, in the order they run.
 * The original moves a prompt from its queue to its history in one step. Here its history is
 * visible some milliseconds before the prompt leaves the live prompts.
 */
export async function promptsInQueue(
  { livePrompts, ledger }: QueueSources,
  user: string,
): Promise<readonly LivePrompt[]> {
  const ending = livePrompts.list(user).filter(({ isEnding }) => isEnding);
  if (ending.length === 0) return livePrompts.list(user);
  const entries = await ledger.prompts.entries(ending.map(({ key }) => key));
  const recorded = new Set(ending.filter((_, index) => (entries[index] ?? null) !== null));
  return livePrompts.list(user).filter((prompt) => !recorded.has(prompt));
}
