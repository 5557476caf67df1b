import { NEW_PROMPT, type PromptRow } from '../../ledger/columns.ts';
import type { Caller } from '../../protocol/job-api.ts';
import { type SubmissionPlan, toStoredPlan } from './plan.ts';
import type { PromptContext } from '../context.ts';
import type { Submission } from '../submission.ts';

/** A checked submission that can be sent upstream. */
export type SubmissionDraft = {
  readonly caller: Caller;
  readonly submission: Submission;
  readonly plan: SubmissionPlan;
  /** JSON of what the client sent, written once. */
  readonly graphJson: string;
  readonly extraDataJson: string;
  readonly createdAtMs: number;
};

/** The id of the prompt, unless the job gives it another one. */
export function initialPromptId({ submission, plan }: SubmissionDraft): string {
  return submission.promptId ?? plan.promptKey;
}

/** The record that is on disk before the first byte goes upstream. */
export function toPromptRow(draft: SubmissionDraft, state: 'submitting' | 'outbox'): PromptRow {
  const { caller, submission, plan, graphJson, extraDataJson, createdAtMs } = draft;
  return {
    ...NEW_PROMPT,
    key: plan.promptKey,
    user: caller.user,
    promptId: initialPromptId(draft),
    jobId: null,
    number: submission.number,
    clientId: submission.clientId,
    createdAtMs,
    graphJson,
    extraDataJson,
    ...toStoredPlan(plan, state === 'outbox' ? 'here' : 'away'),
    state,
  };
}

/**
 * Records the prompt and makes this process its owner. On failure it has neither record nor owner.
 */
export async function recordPrompt(
  row: PromptRow,
  { promptEventLog, ledger }: Pick<PromptContext, 'promptEventLog' | 'ledger'>,
): Promise<void> {
  await promptEventLog.claim(row);
  const stored = ledger.prompts.insert(row);
  discardIfLost(stored, row.key, promptEventLog);
  await stored;
}

/**
 * The same, but resolves as soon as the record is stored before every later write; `stored` resolves
 * when it is.
 */
export async function recordBeforeJob(
  row: PromptRow,
  { promptEventLog, ledger }: Pick<PromptContext, 'promptEventLog' | 'ledger'>,
): Promise<{ readonly stored: Promise<void> }> {
  await promptEventLog.claim(row);
  const inserted = ledger.prompts.insertBeforeLater(row);
  discardIfLost(
    inserted.then(({ stored }) => stored),
    row.key,
    promptEventLog,
  );
  return await inserted;
}

/** Not awaited: it may take until the ledger is back, and the client is waiting. */
function discardIfLost(
  stored: Promise<void>,
  key: string,
  promptEventLog: PromptContext['promptEventLog'],
): void {
  stored.catch(() => promptEventLog.discard(key)).catch(() => {});
}
