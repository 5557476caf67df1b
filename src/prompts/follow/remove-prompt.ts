import type { Ledger } from '../../ledger/ledger.ts';
import type { LivePrompt } from '../live-prompts.ts';
import type { Follower } from './follower.ts';
import { type PromptEventLog, ifLeadershipLost } from '../prompt-event-log.ts';

/** Removes a prompt that no client knows and that made no job. */
export type RemovePrompt = (prompt: LivePrompt) => Promise<void>;

export function createRemovePrompt(deps: {
  readonly ledger: { readonly prompts: Pick<Ledger['prompts'], 'remove'> };
  readonly promptEventLog: Pick<PromptEventLog, 'discard'>;
  readonly follower: Pick<Follower, 'appendEntry'>;
}): RemovePrompt {
  return async (prompt) => {
    if (!(await deps.follower.appendEntry(prompt, 'removed'))) return;
    await deps.ledger.prompts.remove(prompt.key).catch(ifLeadershipLost(undefined));
    await deps.promptEventLog.discard(prompt.key);
  };
}
