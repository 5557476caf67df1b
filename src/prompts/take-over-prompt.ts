import type { PromptRow } from '../ledger/ledger.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { PromptContext } from './context.ts';
import type { LivePrompt } from './live-prompts.ts';
import { restorePlan, traceparentIn } from './submit/plan.ts';
import type { ContinuedSubmission, Submissions } from './submit/submissions.ts';
import type { JobCanceller } from './follow/cancel-job.ts';
import type { Follower } from './follow/follower.ts';

export type TakeOverPromptOptions = Pick<PromptContext, 'ledger' | 'livePrompts' | 'spans'> & {
  readonly follower: Follower;
  readonly submissions: Submissions;
  readonly jobCanceller: JobCanceller;
};

/** The work that is done when all prompts are in place. */
export type NextStep = () => Promise<void> | void;

/** Continues a prompt, which this process now leads, from the step where its process ended. */
export async function takeOverPrompt(
  options: TakeOverPromptOptions,
  prompt: LivePrompt,
  caller: Caller,
): Promise<NextStep | undefined> {
  const { ledger, livePrompts, follower } = options;
  prompt.caller = caller;
  // The log has the end of the prompt, but the steps after the end may be missing.
  if (!livePrompts.has(prompt)) return () => completeEnd(options, prompt);
  if (follower.continueEnd(prompt)) return undefined;
  const row = await ledger.prompts.get(prompt.key);
  if (!row) return () => follower.remove(prompt);
  if (!(await follower.appendEntry(prompt, 'taken'))) return undefined;
  options.spans?.began(caller, prompt, traceparentIn(row));
  follower.releaseFrames(prompt);
  return row.jobId === null
    ? continueSubmission(options, prompt, row)
    : continueFollowing(options, prompt, row.jobId);
}

/**
 * Completes the end. A prompt with a history needs no leader; only a refused prompt has no record.
 */
async function completeEnd(
  { ledger, follower }: TakeOverPromptOptions,
  prompt: LivePrompt,
): Promise<void> {
  const row = await ledger.prompts.get(prompt.key);
  if (row?.state === 'done') await follower.appendEntry(prompt, 'recorded');
  else await follower.remove(prompt);
}

function continueFollowing(
  { follower, jobCanceller }: TakeOverPromptOptions,
  prompt: LivePrompt,
  jobId: string,
): NextStep {
  const { graph, targets, cancelRequested } = prompt;
  follower.openEventStream(prompt, { jobId, graph, targets });
  return async () => {
    await follower.follow(prompt);
    if (cancelRequested) jobCanceller.cancelInBackground(prompt);
  };
}

function continueSubmission(
  { submissions }: TakeOverPromptOptions,
  prompt: LivePrompt,
  row: PromptRow,
): NextStep {
  const plan = restorePlan(row, prompt.caller);
  return () => submissions.continue({ prompt, plan, state: stateOf(row) });
}

/** The client of a prompt that was being submitted got no answer, since its process died. */
function stateOf({ state }: Pick<PromptRow, 'state'>): ContinuedSubmission['state'] {
  if (state === 'outbox' || state === 'sent' || state === 'unknown') return state;
  return 'unanswered';
}
