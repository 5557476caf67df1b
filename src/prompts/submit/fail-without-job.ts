import type { Job } from '../../protocol/v2.ts';
import type { Follower } from '../follow/follower.ts';
import type { RemovePrompt } from '../follow/remove-prompt.ts';
import type { LivePrompt } from '../live-prompts.ts';
import type { ClientKnows } from './recovery-rules.ts';

export type FailWithoutJob = ReturnType<typeof createFailWithoutJob>;

type FailWithoutJobOptions = { readonly follower: Follower; readonly removePrompt: RemovePrompt };

/**
 * Ends a prompt that cannot get a job any more. It is removed if its client was told nothing: that
 * client has an error already.
 */
export function createFailWithoutJob({ follower, removePrompt }: FailWithoutJobOptions) {
  return async (
    { prompt, clientKnows }: { readonly prompt: LivePrompt; readonly clientKnows: ClientKnows },
    error: NonNullable<Job['error']>,
  ): Promise<void> => {
    if (clientKnows === 'nothing') return removePrompt(prompt);
    void follower.finishWithoutJob(prompt, { kind: 'failed', error });
  };
}
