import type { Ledger, PromptRow } from '../../ledger/ledger.ts';
import type { Caller } from '../../protocol/job-api.ts';
import { type SubmissionPlan, toStoredPlan } from './plan.ts';
import type { PromptEventLog } from '../prompt-event-log.ts';
import type { Submission } from '../submission.ts';

/** A submission that may be sent: all that was asked of its client and of the house is known. */
export type SubmissionDraft = {
  readonly caller: Caller;
  readonly submission: Submission;
  readonly plan: SubmissionPlan;
  /** The texts of what the client sent, written once. */
  readonly graphJson: string;
  readonly extraDataJson: string;
  readonly createdAtMs: number;
};

/** The id its prompt has unless a job gives it another. */
export function initialPromptId({ submission, plan }: SubmissionDraft): string {
  return submission.promptId ?? plan.label;
}

/** What is on disk before the first byte leaves. */
export function toPromptRow(draft: SubmissionDraft, state: 'submitting' | 'outbox'): PromptRow {
  const { caller, submission, plan, graphJson, extraDataJson, createdAtMs } = draft;
  return {
    key: plan.label,
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
    cancelAskedAtMs: null,
    entryJson: null,
    statusWord: null,
    startedAtMs: null,
    endedAtMs: null,
  };
}

type PromptRecords = {
  readonly promptEventLog: Pick<PromptEventLog, 'claim' | 'discard'>;
  readonly ledger: { readonly prompts: Pick<Ledger['prompts'], 'insert'> };
};

/** On record, and looked after by this process; or refused, and looked after by nobody. */
export async function recordPrompt(
  row: PromptRow,
  { promptEventLog, ledger }: PromptRecords,
): Promise<void> {
  await promptEventLog.claim(row.key);
  try {
    await ledger.prompts.insert(row);
  } catch (error) {
    // It may take until the ledger is back: the client is not kept waiting.
    promptEventLog.discard(row.key).catch(() => {});
    throw error;
  }
}
