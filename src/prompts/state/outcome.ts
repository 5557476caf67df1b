import { runInSteps } from '../../lib/event-loop.ts';
import type { PromptOutcome } from '../../ledger/ledger.ts';
import {
  type Submitted,
  type SubmittedTexts,
  historySteps,
  withinLimit,
} from '../../translate/history.ts';
import type { ProgressState } from '../../translate/progress/progress-state.ts';
import { nodeTimesJson } from '../node-times.ts';
import { endWord } from '../../translate/status.ts';
import { type Json, stringifyJson } from '../../protocol/json.ts';
import type { LivePrompt } from '../live-prompt.ts';
import { toJsonText } from '../../lib/lazy-json.ts';

/**
 * Returns the record of an ended prompt: its history entry, its graph within the limit, its times.
 */
export async function toOutcome(
  prompt: LivePrompt,
  state: ProgressState,
  limitBytes: number,
): Promise<PromptOutcome> {
  const { graph, extraData } = prompt.lazy;
  const texts = { graphJson: toJsonText(graph), extraDataJson: toJsonText(extraData) };
  const sizeBytes = Buffer.byteLength(texts.graphJson) + Buffer.byteLength(texts.extraDataJson);
  const shown = withinLimit(prompt, { sizeBytes, limitBytes });
  const shortened = shown === prompt ? undefined : toTexts(shown);
  const nodeTimes = nodeTimesJson(state);
  return {
    ...(shortened && { shortened }),
    entryJson: await runInSteps(historySteps(state, shown, shortened ?? texts)),
    statusWord: endWord(state.outcome ?? 'lost', state.error?.code),
    startedAtMs: state.startedAtMs,
    endedAtMs: state.endedAtMs ?? prompt.createdAtMs,
    ...(nodeTimes !== undefined && { nodeTimesJson: nodeTimes }),
  };
}

function toTexts({ graph, extraData }: Submitted): SubmittedTexts {
  return { graphJson: stringifyJson(graph as Json), extraDataJson: stringifyJson(extraData) };
}
