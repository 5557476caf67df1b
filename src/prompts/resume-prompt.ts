import type { PromptRow } from '../ledger/ledger.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { PromptContext } from './context.ts';
import type { LivePrompt } from './live-prompts.ts';
import { failWithoutJob } from './submit/fail-without-job.ts';
import type { Outbox } from './submit/outbox.ts';
import { mayHaveBeenSent, restorePlan, traceparentIn } from './submit/plan.ts';
import type { SubmissionRecovery } from './submit/recover.ts';
import type { ClientKnows } from './submit/recovery-rules.ts';
import type { JobCanceller } from './follow/cancel-job.ts';
import type { Follower } from './follow/follower.ts';

export type ResumePromptOptions = Pick<PromptContext, 'ledger' | 'livePrompts' | 'spans'> & {
  readonly follower: Follower;
  readonly outbox: Outbox;
  readonly submissionRecovery: SubmissionRecovery;
  readonly jobCanceller: JobCanceller;
};

/** The work that is done when all prompts are in place. */
export type NextStep = () => Promise<void> | void;

/** Continues a prompt, which this process now leads, from the step where its process ended. */
export async function resumePrompt(
  options: ResumePromptOptions,
  prompt: LivePrompt,
  caller: Caller,
): Promise<NextStep | undefined> {
  const { ledger, livePrompts, follower } = options;
  prompt.caller = caller;
  // The log has the end of the prompt, but the steps after the end may be missing.
  if (!livePrompts.has(prompt)) return () => completeEnd(options, prompt);
  if (follower.resumeFinish(prompt)) return undefined;
  const row = await ledger.prompts.get(prompt.key);
  if (!row) return () => follower.remove(prompt);
  if (!(await follower.appendEntry(prompt, 'taken'))) return undefined;
  options.spans?.began(caller, prompt, traceparentIn(row));
  follower.releaseFrames(prompt);
  return row.jobId === null
    ? resumeSubmission(options, prompt, row)
    : resumeFollowing(options, prompt, row.jobId);
}

/**
 * Completes the end. A prompt with a history needs no leader; only a refused prompt has no record.
 */
async function completeEnd(
  { ledger, follower }: ResumePromptOptions,
  prompt: LivePrompt,
): Promise<void> {
  const row = await ledger.prompts.get(prompt.key);
  if (row?.state === 'done') await follower.appendEntry(prompt, 'recorded');
  else await follower.remove(prompt);
}

function resumeFollowing(
  { follower, jobCanceller }: ResumePromptOptions,
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

function resumeSubmission(
  options: ResumePromptOptions,
  prompt: LivePrompt,
  row: PromptRow,
): NextStep {
  const { outbox, submissionRecovery, follower } = options;
  const plan = restorePlan(row, prompt.caller);
  const clientKnows = clientKnowsOf(row);
  const isAmbiguous = mayHaveBeenSent(row);
  const { lacksSecrets } = plan;
  if (prompt.cancelRequested && !isAmbiguous) {
    return () => void follower.finishWithoutJob(prompt, { kind: 'canceled' });
  }
  if (lacksSecrets && !isAmbiguous)
    return () => failWithoutJob(follower, { prompt, clientKnows }, SECRETS_GONE);
  // A prompt whose end was requested is not sent again; it may have been sent already.
  const mayResend = !prompt.cancelRequested && !lacksSecrets;
  if (clientKnows !== 'unknown' && mayResend) {
    return () => outbox.add({ prompt, plan, clientKnows, mayHaveBeenSent: isAmbiguous });
  }
  return () => submissionRecovery.recover({ prompt, plan, clientKnows, mayResend });
}

/** Returns the answer that the client had when the process died. */
function clientKnowsOf({ state }: Pick<PromptRow, 'state'>): ClientKnows {
  if (state === 'outbox') return 'accepted';
  return state === 'unknown' ? 'unknown' : 'nothing';
}

const SECRETS_GONE = {
  code: 'credentials_gone',
  message:
    'This prompt came with a key of its own. Keys are never stored, and the server was restarted ' +
    'before the job could be submitted. Please submit it again.',
  x_exception_type: 'ServiceError',
};
