import type { PromptRow } from '../ledger/ledger.ts';
import type { LivePrompt } from './live-prompt.ts';
import type { PromptPorts, PromptRecords } from './ports.ts';
import type { FollowParts } from './submit/link-job.ts';
import { restorePlan, traceparentIn } from './submit/plan.ts';
import type { ContinuedSubmission, Submissions } from './submit/submissions.ts';

/** The parts that lead a prompt to its job, and from there to its history. */
export type PromptParts = FollowParts & { readonly submissions: Submissions };

/** The work that is done when all prompts are in place. */
export type NextStep = () => Promise<void>;

/** Continues a prompt, which this process now leads, from the step where its process ended. */
export async function takeOverPrompt(
  { records, frames }: PromptPorts,
  parts: PromptParts,
  prompt: LivePrompt,
): Promise<NextStep | undefined> {
  const { follower } = parts;
  // The log has the end of the prompt, but the steps after the end may be missing.
  if (!frames.livePrompts.has(prompt)) return () => completeEnd(records, parts, prompt);
  if (follower.continueEnd(prompt)) return undefined;
  const row = await records.prompts.get(prompt.key);
  if (!row) return () => follower.remove(prompt);
  if (!(await follower.appendEntry(prompt, 'taken'))) return undefined;
  frames.spans?.began(prompt.caller, prompt, traceparentIn(row));
  follower.releaseFrames(prompt);
  return row.jobId === null
    ? continueSubmission(parts, prompt, row)
    : continueFollowing(parts, prompt, row.jobId);
}

/**
 * Completes the end. A prompt with a history needs no leader; only a refused prompt has no record.
 */
async function completeEnd(
  { prompts }: PromptRecords,
  { follower }: PromptParts,
  prompt: LivePrompt,
): Promise<void> {
  const row = await prompts.get(prompt.key);
  if (row?.state === 'done') await follower.appendEntry(prompt, 'recorded');
  else await follower.remove(prompt);
}

function continueFollowing(
  { follower, jobCanceller }: PromptParts,
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
  { submissions }: PromptParts,
  prompt: LivePrompt,
  row: PromptRow,
): NextStep {
  const plan = restorePlan(row, prompt.caller);
  return () => submissions.continue({ prompt, plan, state: stateOf(row) });
}

/** The client of a prompt that was being submitted got no answer, since its process died. */
function stateOf({ state }: PromptRow): ContinuedSubmission['state'] {
  if (state === 'outbox' || state === 'sent' || state === 'unknown') return state;
  return 'unanswered';
}
