import type { PromptOutline, PromptRow, Ledger } from '../ledger/ledger.ts';
import type { ItemView, JobView } from '../translate/job-views.ts';
import { type ResultForm, parseEntry } from '../translate/stored-history-entry.ts';
import { liveWord, wordOf } from '../translate/status.ts';
import { type JsonObject, parseJson } from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import type { LivePrompt } from '../prompts/live-prompt.ts';

/** Returns a live prompt as `/api/jobs` shows it. */
export function liveView(prompt: LivePrompt): JobView {
  const { createdAtMs, startedAtMs } = prompt;
  return {
    submitted: prompt,
    word: liveWord(prompt),
    createdAtMs,
    startedAtMs,
    endedAtMs: null,
    entry: null,
  };
}

/**
 * Returns an ended prompt with its texts parsed, and its results in the form that its client knows.
 */
export function endedView(row: PromptRow, form: ResultForm): JobView {
  const view = endedItemView(row, form);
  const graph = parseJson(row.graphJson) as Graph;
  const targets = parseJson(row.targetsJson) as readonly string[];
  return { ...view, submitted: { ...view.submitted, graph, targets } };
}

/** Returns the part of an ended prompt that a list shows. */
export function endedItemView(row: PromptRow, form: ResultForm): ItemView {
  const { number, promptId, createdAtMs, startedAtMs, endedAtMs } = row;
  return {
    submitted: { number, promptId, extraData: parseJson(row.extraDataJson) as JsonObject },
    word: wordOf(row),
    createdAtMs,
    startedAtMs,
    endedAtMs,
    entry: parseEntry(row, form),
  };
}

/** Finds a done prompt by its v1 id or its v2 id. */
export async function findEndedPrompt(
  { prompts }: Ledger,
  user: string,
  id: string,
): Promise<PromptRow | undefined> {
  const row = (await prompts.find(user, id)) ?? (await prompts.findByJob(user, id));
  return row?.state === 'done' ? row : undefined;
}

/**
 * Leaves out the earlier runs of an id that was used again. As in v1, the newest run has the place
 * of the first one.
 */
export function latestRuns(ended: readonly PromptOutline[]): readonly PromptOutline[] {
  return [...new Map(ended.map((outline) => [outline.promptId, outline])).values()];
}
