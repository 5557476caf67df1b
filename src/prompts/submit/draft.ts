import { NEW_PROMPT, type PromptRow } from '../../ledger/columns.ts';
import type { Caller } from '../../protocol/job-api.ts';
import { type SubmissionPlan, toStoredPlan } from './plan.ts';
import type { PromptPorts } from '../ports.ts';
import type { Submission } from '../submission.ts';
import type { SubmissionState } from './submission-table.ts';

/** A checked submission that can be sent upstream. */
export type SubmissionDraft = {
  readonly caller: Caller;
  readonly submission: Submission;
  readonly plan: SubmissionPlan;
  /** The JSON of the graph and extra data that the client sent, written once. */
  readonly graphJson: string;
  readonly extraDataJson: string;
  readonly createdAtMs: number;
};

/** The id of the prompt, unless the job gives it another one. */
export function initialPromptId({ submission, plan }: SubmissionDraft): string {
  return submission.promptId ?? plan.promptKey;
}

/** Returns the record that is on disk before the first byte goes upstream. */
export function toPromptRow(draft: SubmissionDraft, state: SubmissionState): PromptRow {
  const { caller, submission, plan, graphJson, extraDataJson, createdAtMs } = draft;
  return {
    ...NEW_PROMPT,
    ...toStoredPlan(plan),
    key: plan.promptKey,
    user: caller.user,
    promptId: initialPromptId(draft),
    jobId: null,
    number: submission.number,
    clientId: submission.clientId,
    createdAtMs,
    graphJson,
    extraDataJson,
    state,
  };
}

/**
 * Records the prompt and makes this process its leader. On failure it has neither record nor
 * leader.
 */
export async function recordPrompt(
  row: PromptRow,
  { records: { eventLog, prompts }, policy }: PromptPorts,
): Promise<void> {
  await eventLog.claim(row);
  const inserted = prompts.insert(row, policy.durability);
  // Not awaited: the ledger may be away for long, and the client is waiting.
  inserted.catch(() => eventLog.discard(row.key)).catch(() => {});
  await inserted;
}
