import type { PromptRow, PromptStore } from '../ledger/ledger.ts';
import type { LivePrompt } from '../prompts/live-prompt.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import { errorMessage } from '../translate/job-views.ts';
import { parseEntry } from '../translate/stored-history-entry.ts';
import { type PendingReason, pendingRow } from '../prompts/pending-reason.ts';
import { submittedFiles } from '../prompts/submitted-workflow.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
  prettyJson,
  stringifyJson,
  memberOf,
} from '../protocol/json.ts';
import type { HistoryEntry, HistoryMessage } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import type { JobAnswer, JobFile, JobSummary } from './api-types.ts';
import { endedRuns, isGraph, liveRuns, jobNodesOf } from './job-nodes.ts';
import { fileRefOf, liveSummary, summaryOfRow } from './job-summary.ts';

/** The prompts of all users, ended and live. */
export type PromptServices = {
  readonly prompts: PromptStore;
  readonly livePrompts: LivePrompts;
};

/** A prompt that was found: its row, and its live prompt if it has not ended. */
export type FoundPrompt = { readonly row: PromptRow; readonly live: LivePrompt | undefined };

/** Finds a prompt of this user by its id, or by the id of its job. */
export async function findPrompt(
  { prompts, livePrompts }: PromptServices,
  user: string,
  id: string,
): Promise<FoundPrompt | undefined> {
  const live = livePrompts.find(user, id);
  const row = live
    ? await prompts.get(live.key)
    : ((await prompts.find(user, id)) ?? (await prompts.findByJob(user, id)));
  return row && { row, live: row.state === 'done' ? undefined : live };
}

type LiveAnswer = {
  /** The time until which its running nodes have run. */
  readonly nowMs: number;
  readonly pendingReason: PendingReason | null;
};

/** Returns everything about one prompt. */
export function jobAnswer(
  { row, live }: FoundPrompt,
  { nowMs, pendingReason }: LiveAnswer,
): JobAnswer {
  const entry = live || row.entryJson === null ? null : parseEntry(row, 'own');
  const graph = parseJson(row.graphJson) as Graph;
  const extraData = parseJson(row.extraDataJson);
  const messages = entry?.status.messages ?? [];
  const job: JobSummary = live ? liveSummary(live, null) : summaryOfRow(row);
  return {
    job,
    pending: pendingReason && pendingAnswer(pendingReason),
    nodes: isGraph(graph)
      ? jobNodesOf(graph, live ? liveRuns(live, nowMs) : endedRuns(row.nodeTimesJson, entry))
      : [],
    inputs: submittedFiles(row).map((file) => ({
      node: file.nodeId,
      input: file.input,
      filename: file.filename,
      subfolder: file.subfolder,
      type: file.type,
    })),
    outputs: filesOf(entry),
    texts: textsOf(entry),
    messages: messages.map(messageOf),
    error: errorOf(entry),
    graph_json: prettyJson(graph as Json),
    workflow_json: uiWorkflowOf(extraData),
  };
}

function pendingAnswer(reason: PendingReason): JobAnswer['pending'] {
  const { text, readyzPart } = pendingRow(reason);
  return { reason, text, readyz_part: readyzPart ?? null };
}

function filesOf(entry: HistoryEntry | null): readonly JobFile[] {
  return outputItems(entry).flatMap(({ node, list, item }) => {
    const file = isJsonObject(item) ? fileRefOf(item) : null;
    return file ? [{ node, list, ...file }] : [];
  });
}

function textsOf(entry: HistoryEntry | null): JobAnswer['texts'] {
  return outputItems(entry).flatMap(({ node, item }) =>
    typeof item === 'string' ? [{ node, text: item }] : [],
  );
}

function outputItems(entry: HistoryEntry | null) {
  return Object.entries(entry?.outputs ?? {}).flatMap(([node, lists]) =>
    Object.entries(lists).flatMap(([list, items]) =>
      Array.isArray(items) ? (items as readonly Json[]).map((item) => ({ node, list, item })) : [],
    ),
  );
}

const NOT_IN_TEXT = new Set([
  'prompt_id',
  'timestamp',
  'traceback',
  'current_inputs',
  'current_outputs',
]);

function messageOf([type, data]: HistoryMessage): JobAnswer['messages'][number] {
  const facts = data as unknown as JsonObject;
  const { timestamp } = facts;
  const shown = Object.entries(facts).filter(([name]) => !NOT_IN_TEXT.has(name));
  const text = shown.map(([name, value]) => `${name}: ${stringifyJson(value)}`).join(', ');
  return { type, at_ms: typeof timestamp === 'number' ? timestamp : null, text };
}

function errorOf(entry: HistoryEntry | null): JobAnswer['error'] {
  const error = errorMessage(entry);
  if (!isJsonObject(error)) return null;
  const { node_id, node_type, exception_type, exception_message, traceback } = error;
  const text = (value: Json | undefined) => (typeof value === 'string' ? value : '');
  return {
    node: text(node_id),
    node_type: text(node_type),
    type: text(exception_type),
    message: text(exception_message),
    traceback: Array.isArray(traceback) ? traceback.map((line) => text(line as Json)).join('') : '',
  };
}

function uiWorkflowOf(extraData: Json): string | null {
  const workflow = memberOf(memberOf(extraData, 'extra_pnginfo'), 'workflow');
  return isJsonObject(workflow) ? prettyJson(workflow) : null;
}
