import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import type { Follower } from './follower.ts';
import { ifLeadershipLost } from '../prompt-event-log.ts';

export type RemovePrompt = ReturnType<typeof createRemovePrompt>;

type RemovePromptOptions = Pick<PromptContext, 'ledger' | 'promptEventLog'> & {
  readonly follower: Follower;
};

/** Removes a prompt that no client knows and that made no job. */
export function createRemovePrompt({ ledger, promptEventLog, follower }: RemovePromptOptions) {
  return async (prompt: LivePrompt): Promise<void> => {
    if (!(await follower.appendEntry(prompt, 'removed'))) return;
    await ledger.prompts.remove(prompt.key).catch(ifLeadershipLost(undefined));
    await promptEventLog.discard(prompt.key);
  };
}
