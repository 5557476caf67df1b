import type { JobError } from '../../protocol/v2.ts';
import type { Follower } from '../follow/follower.ts';
import type { LivePrompt } from '../live-prompts.ts';
import type { ClientKnows } from './recovery-rules.ts';

/**
 * Ends a prompt that cannot get a job any more. The prompt is removed if its client got no answer:
 * that client saw its call fail.
 */
export async function failWithoutJob(
  follower: Follower,
  { prompt, clientKnows }: { readonly prompt: LivePrompt; readonly clientKnows: ClientKnows },
  error: JobError,
): Promise<void> {
  if (clientKnows === 'nothing') return follower.remove(prompt);
  void follower.finishWithoutJob(prompt, { kind: 'failed', error });
}
