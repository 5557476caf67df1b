import type { PromptRow } from '../../ledger/ledger.ts';
import { parseJson } from '../../protocol/json.ts';
import type { Graph } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { LivePrompts } from '../live-prompts.ts';

/** Reads from the record the job that another process linked to the prompt, unless that has one here. */
export function readLinkedJob(
  livePrompts: LivePrompts,
  prompt: LivePrompt,
  row: PromptRow | undefined,
): void {
  if (prompt.jobId !== null || !row || row.jobId === null) return;
  livePrompts.setJob(prompt, {
    jobId: row.jobId,
    graph: parseJson(row.graphJson) as Graph,
    targets: parseJson(row.targetsJson) as readonly string[],
  });
}
