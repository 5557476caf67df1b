import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import type { Caller } from '../wire/jobs.ts';
import { type Plan, intentOf } from './plan.ts';
import type { PromptJournal } from './prompt-journal.ts';
import type { Submission } from './submission.ts';

/** A submission that may be sent: all that was asked of its client and of the house is known. */
export type Intake = {
  readonly caller: Caller;
  readonly submission: Submission;
  readonly plan: Plan;
  /** The texts of what the client sent, written once. */
  readonly graphJson: string;
  readonly extraDataJson: string;
  readonly createdAtMs: number;
};

/** The id its prompt has unless a job gives it another. */
export function ownIdOf({ submission, plan }: Intake): string {
  return submission.promptId ?? plan.label;
}

/** What is on disk before the first byte leaves. */
export function rowOf(intake: Intake, state: 'submitting' | 'outbox'): PromptRow {
  const { caller, submission, plan, graphJson, extraDataJson, createdAtMs } = intake;
  return {
    key: plan.label,
    user: caller.user,
    promptId: ownIdOf(intake),
    jobId: null,
    number: submission.number,
    clientId: submission.clientId,
    createdAtMs,
    graphJson,
    extraDataJson,
    ...intentOf(plan, state === 'outbox' ? 'here' : 'away'),
    state,
    cancelAskedAtMs: null,
    entryJson: null,
    statusWord: null,
    startedAtMs: null,
    endedAtMs: null,
  };
}

type Books = {
  readonly journal: Pick<PromptJournal, 'claim' | 'drop'>;
  readonly ledger: { readonly prompts: Pick<Ledger['prompts'], 'insert'> };
};

/** On record, and looked after by this process; or refused, and looked after by nobody. */
export async function enter(row: PromptRow, { journal, ledger }: Books): Promise<void> {
  await journal.claim(row.key);
  try {
    await ledger.prompts.insert(row);
  } catch (error) {
    // It may take until the ledger is back: the client is not kept waiting.
    journal.drop(row.key).catch(() => {});
    throw error;
  }
}
