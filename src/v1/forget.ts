import type { Ledger } from '../ledger/ledger.ts';
import type { LivePrompt } from './board.ts';
import type { Follower } from './follower.ts';
import { type PromptJournal, ifLost } from './prompt-journal.ts';

/** Removes a prompt nobody was told of, and nothing came of. */
export type Forget = (prompt: LivePrompt) => Promise<void>;

export function createForget(deps: {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly journal: Pick<PromptJournal, 'drop'>;
  readonly follower: Follower;
}): Forget {
  return async (prompt) => {
    if (!(await deps.follower.note(prompt, 'removed'))) return;
    await deps.ledger.prompts.remove(prompt.key).catch(ifLost(undefined));
    await deps.journal.drop(prompt.key);
  };
}
