import {
  type Json,
  type JsonObject,
  isJsonObject,
  objectInOrder,
  stringifyJson,
} from '../protocol/json.ts';
import { stringifySteps } from '../protocol/json-steps.ts';
import type { Steps } from '../protocol/steps.ts';
import type { HistoryEntry, NodeOutput, QueueItem } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { displayNode } from './graph.ts';
import type { ProgressState } from './progress-state.ts';
import { endOfStoredEntry } from './stored-history-entry.ts';
import { historyStatus } from './status.ts';

/** The submitted prompt as `/queue` and `/history` show it, without secrets. */
export type Submitted = {
  readonly number: number;
  readonly promptId: string;
  readonly graph: Graph;
  readonly extraData: JsonObject;
  readonly targets: readonly string[];
};

/**
 * Returns v1's history entry of a prompt that has ended.
 * @internal
 */
export function historyEntry(state: ProgressState, submitted: Submitted): HistoryEntry {
  const shown = [...state.sentOutputs].filter(
    (entry): entry is [string, NodeOutput] => entry[1] !== null,
  );
  // Clients take the first node and expect files there.
  const outputs = [...shown.filter(hasFiles), ...shown.filter((entry) => !hasFiles(entry))];
  const outcome = state.outcome ?? 'lost';
  return {
    prompt: queueItem(submitted),
    outputs: objectInOrder(outputs),
    status: {
      status_str: historyStatus(outcome),
      completed: outcome === 'succeeded',
      messages: state.messages,
    },
    meta: objectInOrder(
      outputs.map(([nodeId]) => [nodeId, metaOf(nodeId, submitted.graph)] as const),
    ),
  };
}

function hasFiles([, output]: readonly [string, NodeOutput]): boolean {
  const items = Object.values(output).flatMap((list) => (Array.isArray(list) ? list : []));
  return items.some((item) => isJsonObject(item) && typeof item.filename === 'string');
}

/** The texts of graph and extra data as JSON. */
export type SubmittedTexts = { readonly graphJson: string; readonly extraDataJson: string };

/** Writes the history entry as the text that is stored, in steps. */
export function* historySteps(
  state: ProgressState,
  submitted: Submitted,
  { graphJson, extraDataJson }: SubmittedTexts,
): Steps<string> {
  const { outputs, status, meta } = historyEntry(state, submitted);
  const { number, promptId, targets } = submitted;
  const tuple = [stringifyJson(number), stringifyJson(promptId), graphJson, extraDataJson];
  const members = [
    `"prompt":[${tuple.join(',')},${stringifyJson(targets)}]`,
    `"outputs":${yield* stringifySteps(outputs as Json)}`,
    `"status":${stringifyJson(status)}`,
    `"meta":${yield* stringifySteps(meta as Json)}`,
  ];
  return `{${members.join(',')}${endOfStoredEntry(state.error)}`;
}

/** Makes v1's 5-tuple. */
function queueItem({ number, promptId, graph, extraData, targets }: Submitted): QueueItem {
  return [number, promptId, graph as Json, extraData, targets];
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
  const id = at(at(at(extraData, 'extra_pnginfo'), 'workflow'), 'id');
  return typeof id === 'string' ? { workflow_id: id } : {};
}

function at(value: Json | undefined, key: string): Json | undefined {
  const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
  return isObject ? (value as JsonObject)[key] : undefined;
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
