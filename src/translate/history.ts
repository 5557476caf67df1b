import {
  type Json,
  type JsonObject,
  isJsonObject,
  objectInOrder,
  stringifyJson,
  mapParts,
  memberOf,
} from '../protocol/json.ts';
import { stringifySteps } from '../protocol/json-steps.ts';
import type { Steps } from '../protocol/steps.ts';
import type { HistoryEntry, NodeOutput } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { displayNode } from './graph.ts';
import type { ProgressState } from './progress/progress-state.ts';
import { endOfStoredEntry } from './stored-history-entry.ts';

/** The submitted prompt as `/queue` and `/history` show it, without secrets. */
export type Submitted = {
  readonly number: number;
  readonly promptId: string;
  readonly graph: Graph;
  readonly extraData: JsonObject;
  readonly targets: readonly string[];
};

/** The texts of graph and extra data as JSON. */
export type SubmittedTexts = { readonly graphJson: string; readonly extraDataJson: string };

/** Writes v1's history entry of a prompt that has ended as the text that is stored, in steps. */
export function* historySteps(
  state: ProgressState,
  { number, promptId, graph, targets }: Submitted,
  { graphJson, extraDataJson }: SubmittedTexts,
): Steps<string> {
  const shown = [...state.sentOutputs].filter(
    (entry): entry is [string, NodeOutput] => entry[1] !== null,
  );
  // Clients take the first node and expect files there.
  const outputs = [...shown.filter(hasFiles), ...shown.filter((entry) => !hasFiles(entry))];
  const meta = outputs.map(([nodeId]) => [nodeId, metaOf(nodeId, graph)] as const);
  const completed = state.outcome === 'succeeded';
  const status: HistoryEntry['status'] = {
    // v1 has only two words. Its messages show an interruption.
    status_str: completed ? 'success' : 'error',
    completed,
    messages: state.messages,
  };
  const tuple = [stringifyJson(number), stringifyJson(promptId), graphJson, extraDataJson];
  const members = [
    `"prompt":[${tuple.join(',')},${stringifyJson(targets)}]`,
    `"outputs":${yield* stringifySteps(objectInOrder(outputs) as Json)}`,
    `"status":${stringifyJson(status)}`,
    `"meta":${yield* stringifySteps(objectInOrder(meta) as Json)}`,
  ];
  return `{${members.join(',')}${endOfStoredEntry(state.error)}`;
}

function hasFiles([, output]: readonly [string, NodeOutput]): boolean {
  const items = Object.values(output).flatMap((list) => (Array.isArray(list) ? list : []));
  return items.some((item) => isJsonObject(item) && typeof item.filename === 'string');
}

/** Returns an item of `GET /api/history_v2`: its `prompt` is an object without the graph. */
export function historyV2Item(row: { readonly createdAtMs: number }, entry: HistoryEntry): Json {
  const [priority, promptId, , extraData] = entry.prompt;
  const { outputs, status, meta } = entry;
  return {
    prompt_id: promptId,
    create_time: row.createdAtMs,
    ...workflowIdOf(extraData),
    prompt: { priority, prompt_id: promptId, extra_data: extraData },
    outputs,
    status,
    meta,
  };
}

/** Returns the value under the id in `GET /api/history_v2/{id}`. */
export function historyV2Detail(entry: HistoryEntry): Json {
  const [priority, promptId, graph, extraData, targets] = entry.prompt;
  const { outputs, status, meta } = entry;
  return {
    prompt: {
      priority,
      prompt_id: promptId,
      prompt: graph,
      extra_data: extraData,
      outputs_to_execute: targets,
    },
    outputs,
    status,
    meta,
  };
}

/** Returns `{workflow_id}` if the front end sent its graph along. */
export function workflowIdOf(extraData: Json): { readonly workflow_id?: string } {
  const id = memberOf(memberOf(memberOf(extraData, 'extra_pnginfo'), 'workflow'), 'id');
  return typeof id === 'string' ? { workflow_id: id } : {};
}

function metaOf(nodeId: string, graph: Graph): HistoryEntry['meta'][string] {
  const display = displayNode(graph, nodeId) ?? nodeId;
  return {
    node_id: nodeId,
    display_node: display,
    parent_node: display === nodeId ? null : display,
    real_node_id: display,
  };
}

/** Shorter texts stay whole; of longer ones the beginning is kept. */
const WHOLE_CHARS = 1000;
const START_CHARS = 100;
const LEFT_OUT = 'The graph of this prompt is larger than history keeps; it is left out.';

/**
 * Returns the prompt as history shows it when graph and extra data take more than `limitBytes` as
 * JSON: with long texts shortened and, if that is still too much, without both.
 */
export function withinLimit(
  submitted: Submitted,
  { sizeBytes, limitBytes }: { readonly sizeBytes: number; readonly limitBytes: number },
): Submitted {
  if (sizeBytes <= limitBytes) return submitted;
  const graph = shortenTexts(submitted.graph as Json) as Graph;
  const extraData = shortenTexts(submitted.extraData) as JsonObject;
  const remainingBytes = Buffer.byteLength(stringifyJson([graph as Json, extraData]));
  if (remainingBytes <= limitBytes) return { ...submitted, graph, extraData };
  return { ...submitted, graph: {}, extraData: { holdover_left_out: LEFT_OUT } };
}

function shortenTexts(value: Json): Json {
  return typeof value === 'string' ? shortText(value) : mapParts(value, shortenTexts);
}

function shortText(text: string): string {
  if (text.length <= WHOLE_CHARS) return text;
  // Removes half a surrogate pair at the end.
  const start = text.slice(0, START_CHARS).replace(/[\uD800-\uDBFF]$/, '');
  return `${start}… (${text.length - start.length} more characters are left out of the history)`;
}
