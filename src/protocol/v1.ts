import { type Json, type JsonObject, isJsonObject } from './json.ts';

/** A file as `/history`, `executed` and `/view` name it. */
export type FileRef = {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: 'input' | 'output' | 'temp';
  /** The id in the assets API, unless that is switched off. */
  readonly id?: string;
};

/** `executed.output`, and one entry of `outputs` in history: lists by key. */
export type NodeOutput = { readonly [key: string]: readonly Json[] };

/** A node of a prompt. The display node is the submitted one. */
export type NodeIds = {
  readonly node_id: string;
  readonly prompt_id: string;
  readonly display_node_id: string;
  readonly parent_node_id: string | null;
  readonly real_node_id: string;
};

export type NodeState = NodeIds & {
  readonly value: number;
  readonly max: number;
  readonly state: 'running' | 'finished';
  /** Only the hosted service sends it. */
  readonly class_type?: string;
};

type Message<Type, Data> = { readonly type: Type; readonly data: Data };

/** `timestamp` is in milliseconds since 1970. */
type OfPrompt = { readonly prompt_id: string; readonly timestamp: number };

/** The node at which a prompt stopped. */
type Stopped = OfPrompt & {
  readonly node_id: string;
  readonly node_type: string;
  readonly executed: readonly string[];
};

type ErrorFacts = {
  readonly exception_message: string;
  readonly exception_type: string;
  readonly traceback: readonly string[];
  readonly current_inputs: { readonly [name: string]: readonly Json[] };
  readonly current_outputs: readonly string[];
};

type Executing =
  | { readonly node: string; readonly display_node: string; readonly prompt_id: string }
  | { readonly node: null; readonly prompt_id: string }
  /** The short form that a reconnecting socket gets. */
  | { readonly node: string };

type Executed = {
  readonly node: string;
  readonly display_node: string;
  readonly output: NodeOutput | null;
  readonly prompt_id: string;
};

type Step = {
  readonly value: number;
  readonly max: number;
  readonly prompt_id: string;
  readonly node: string;
};

type NodeStates = {
  readonly prompt_id: string;
  readonly nodes: { readonly [nodeId: string]: NodeState };
};

type QueueStatus = {
  readonly status: { readonly exec_info: { readonly queue_remaining: number } };
  readonly sid?: string;
};

/** Every JSON message of v1's WebSocket; `type` is the first key on the wire. */
export type V1Message =
  | Message<'status', QueueStatus>
  | Message<'execution_start' | 'execution_success', OfPrompt>
  | Message<'execution_cached', OfPrompt & { readonly nodes: readonly string[] }>
  | Message<'executing', Executing>
  | Message<'progress_state', NodeStates>
  | Message<'progress', Step>
  | Message<'executed', Executed>
  | Message<'execution_error', Stopped & ErrorFacts>
  | Message<'execution_interrupted', Stopped>
  | Message<'notification', { readonly value: string; readonly id?: string }>
  | Message<'feature_flags' | 'logs', JsonObject>;

/** `[number, prompt_id, prompt, extra_data, outputs_to_execute]` */
type QueueItem = readonly [number, string, Json, Json, readonly string[]];

/** The messages that history stores: start, cached, then exactly one end. */
export type HistoryMessage = readonly [V1Message['type'], V1Message['data']];

export type HistoryEntry = {
  readonly prompt: QueueItem;
  readonly outputs: { readonly [nodeId: string]: NodeOutput };
  readonly status: {
    readonly status_str: 'success' | 'error';
    readonly completed: boolean;
    readonly messages: readonly HistoryMessage[];
  };
  readonly meta: {
    readonly [nodeId: string]: {
      readonly node_id: string;
      readonly display_node: string;
      readonly parent_node: string | null;
      readonly real_node_id: string;
    };
  };
};

/** One error in a v1 validation answer. */
export type NodeErrorEntry = {
  readonly type: string;
  readonly message: string;
  readonly details: string;
  readonly extra_info: JsonObject;
};

export type NodeErrors = {
  readonly [nodeId: string]: {
    readonly errors: readonly NodeErrorEntry[];
    readonly dependent_outputs: readonly string[];
    readonly class_type: string;
  };
};

/** Body of every failing `POST /prompt`. */
export type PromptRefusal = {
  readonly error: NodeErrorEntry;
  readonly node_errors: NodeErrors;
};

/** The longest file name that common file systems accept. */
export const MAX_NAME_BYTES = 255;
/** The longest path of folders that `/view` and the other routes accept. */
export const MAX_FOLDER_BYTES = 1024;

/**
 * v1's name of a file in an input. Its folder stands in brackets at the end, unless it is `input`.
 */
export const ANNOTATED_NAME = /^(.*) \[(input|output|temp)\]$/s;
/**
 * Returns a path as it is looked up. Clients on Windows write backslashes, and no stored name ends
 * in a blank.
 */
export function toLookupPath(path: string): string {
  return path.replaceAll('\\', '/').replaceAll(/(?<! ) +(?=\/|$)/g, '');
}

/** A longer text is not read as a name: pictures are sent as texts, too. */
export const MAX_NAME_CHARS = 4096;

/** The ten status words of `GET /api/job/{id}/status`. */
export type StatusWord =
  | 'success'
  | 'error'
  | 'non_retryable_error'
  | 'lost'
  | 'cancelled'
  | 'submitted'
  | 'queued_waiting'
  | 'preparing'
  | 'executing'
  | 'cancel_requested';

/** `/object_info`: class name → definition in v1's shape. */
export type ObjectInfo = { readonly [className: string]: ClassInfo };

export type ClassInfo = {
  readonly input: { readonly [group: string]: { readonly [name: string]: Json } };
  readonly input_order: { readonly [group: string]: readonly string[] };
  readonly output: readonly Json[];
  readonly output_is_list: readonly boolean[];
  readonly output_name: readonly string[];
  readonly name: string;
  readonly display_name: string | null;
  readonly description: string;
  readonly python_module: string;
  readonly category: string;
  readonly output_node: boolean;
  readonly [more: string]: Json;
};

/**
 * Returns the options of a combo input; `undefined` for another input. An older combo is its list of
 * options; a newer one says `COMBO` and has the list among its settings.
 */
export function comboOptions(spec: Json | undefined): readonly Json[] | undefined {
  const [type, settings] = Array.isArray(spec) ? (spec as readonly Json[]) : [];
  if (Array.isArray(type)) return type;
  const options = type === 'COMBO' && isJsonObject(settings) ? settings.options : undefined;
  return Array.isArray(options) ? options : undefined;
}
