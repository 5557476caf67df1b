import type { ResolvedFile } from '../files/resolve-files.ts';
import type { PromptRow } from '../ledger/ledger.ts';
import type { Graph } from '../protocol/v2.ts';
import { isSubmittedThroughV1, restorePlan, workflowOf } from './submit/plan.ts';

export { isSubmittedThroughV1 } from './submit/plan.ts';

/** Returns the workflow that v2 got for a prompt, with references to files. */
export function submittedWorkflow(row: PromptRow): Graph {
  const plan = restorePlan(row, { user: row.user });
  return isSubmittedThroughV1(row) ? workflowOf(plan) : plan.graph;
}

/** Returns the files that the workflow of a prompt refers to, under their v1 names. */
export function submittedFiles(row: PromptRow): readonly ResolvedFile[] {
  return restorePlan(row, { user: row.user }).resolvedFiles;
}
