import {
  type Json,
  type JsonObject,
  isJsonObject,
  entriesInOrder,
  namesInOrder,
  objectInOrder,
} from '../protocol/json.ts';
import {
  type ContractNodeError,
  UNKNOWN_CLASS,
  isNativeNodeError,
  v1ErrorOf,
} from '../protocol/node-errors.ts';
import { pythonStr } from '../protocol/python-text.ts';
import type { NodeErrorEntry, NodeErrors, PromptRefusal } from '../protocol/v1.ts';
import { shownText, shownValue } from './shown-value.ts';
import { runSteps } from '../protocol/steps.ts';
import type { Graph } from '../protocol/v2.ts';
import { addTo, classOf, dependentOutputs, linkOf, nodeOf } from './graph.ts';

/** Facts about a refused submission that only the caller knows. */
export type MissingContext = {
  /** The output nodes that were to be executed. */
  readonly outputs?: readonly string[];
  /** The inputs whose file names were replaced, and the asset that replaced each. */
  readonly resolvedFiles?: readonly {
    readonly nodeId: string;
    readonly input: string;
    readonly value: string;
    readonly assetId: string;
  }[];
};

/**
 * Returns v1's `node_errors` of a refusal, from its `details`. They are complete in `x_native`;
 * some services pass them through in `node_errors`; else they are the contract's lists of `{field,
 * reason}`.
 */
export function toNodeErrors(
  { node_errors: contractErrors, x_native: native }: JsonObject,
  graph: Graph,
  outputs: readonly string[],
): NodeErrors {
  if (isJsonObject(native) && Object.values(native).every(isNativeNodeError)) {
    return native as unknown as NodeErrors;
  }
  if (!isJsonObject(contractErrors) || unknownClass(contractErrors, graph)) return {};
  const all = Object.entries(contractErrors);
  const errorsByNode = new Map<string, NodeErrorEntry[]>();
  for (const [id, node] of all) {
    for (const error of isNativeNodeError(node) ? [] : entriesOf(node))
      addTo(errorsByNode, id, toEntry(error, inputsOf(graph, id)));
  }
  const own = nodeErrorsOf(errorsByNode, graph, outputs);
  const entries = all.flatMap(([id, node]) => {
    const shown = isNativeNodeError(node) ? node : own[id];
    return shown === undefined ? [] : [[id, shown] as const];
  });
  return errorsInOrder(entries, graph);
}

/** Refuses the whole prompt for an unknown class, as v1 does: v1 does not assign it to one node. */
export function unknownClass(
  value: Json | undefined,
  graph: Graph,
): PromptRefusal['error'] | undefined {
  if (!isJsonObject(value)) return undefined;
  const id = namesInOrder(value).find((key) =>
    entriesOf(value[key]).some(({ reason }) => reason === UNKNOWN_CLASS.reason),
  );
  if (id === undefined) return undefined;
  return missingNodeError(id, nodeOf(graph, id));
}

/**
 * Returns v1's refusal of a prompt for a node whose class is not installed, or that names none. The
 * title is the one that the editor shows.
 */
export function missingNodeError(id: string, node: Json | undefined): NodeErrorEntry {
  const { class_type, _meta: meta } = isJsonObject(node) ? node : ({} as JsonObject);
  const name = class_type && shownValue(class_type);
  const given = isJsonObject(meta) ? meta.title : undefined;
  const title = given === undefined ? (name ?? null) : shownValue(given);
  const shown = { node_id: id, class_type: name ?? null, node_title: title };
  const message =
    name === undefined
      ? `Node '${title ? pythonStr(title) : `ID #${id}`}' has no class_type. The workflow may be corrupted or a custom node is missing.`
      : `Node '${pythonStr(title)}' not found. The custom node may not be installed.`;
  return { type: 'missing_node_type', message, details: `Node ID '#${id}'`, extra_info: shown };
}

/**
 * Reports assets that v2 cannot find as v1's loaders report missing files, at the inputs that named
 * them.
 */
export function missingFiles(
  details: JsonObject,
  graph: Graph,
  context: MissingContext,
): NodeErrors {
  const missing = Array.isArray(details.missing_ids) ? new Set(details.missing_ids) : undefined;
  const resolvedFiles = (context.resolvedFiles ?? []).filter(
    ({ assetId }) => !missing || missing.has(assetId),
  );
  const errorsByNode = new Map<string, NodeErrorEntry[]>();
  for (const file of resolvedFiles) addTo(errorsByNode, file.nodeId, missingFile(file));
  return nodeErrorsOf(errorsByNode, graph, context.outputs ?? []);
}

/** Returns v1's error for a loader whose file is missing. */
export function missingFile(file: {
  readonly input: string;
  readonly value: string;
}): NodeErrorEntry {
  return ownRefusal(`${file.input} - Invalid image file: ${shownText(file.value)}`, file.input);
}

/** Returns the v1 error of a node that refuses an input itself; `''`: it names none. */
function ownRefusal(details: string, input: string): NodeErrorEntry {
  const info = input === '' ? {} : { input_name: input };
  const message = 'Custom validation failed for node';
  return { type: 'custom_validation_failed', message, details, extra_info: info };
}

/** Returns the errors with their nodes in the order of the graph. */
export function errorsInOrder(
  errors: Iterable<readonly [string, NodeErrors[string]]>,
  graph: Graph,
): NodeErrors {
  const places = new Map(entriesInOrder(graph).map(([id], place) => [id, place]));
  const placeOf = (id: string): number => places.get(id) ?? Infinity;
  return objectInOrder([...errors].toSorted(([a], [b]) => placeOf(a) - placeOf(b) || 0));
}

/** Returns the errors of the nodes in v1's form. */
export function nodeErrorsOf(
  errorsByNode: ReadonlyMap<string, readonly NodeErrorEntry[]>,
  graph: Graph,
  outputs: readonly string[],
): NodeErrors {
  const dependents = runSteps(dependentOutputs(graph, outputs, new Set(errorsByNode.keys())));
  const entries = [...errorsByNode].map(([id, errors]) => {
    const dependent_outputs = dependents.get(id) ?? [];
    return [id, { errors, dependent_outputs, class_type: classOf(graph, id) }] as const;
  });
  return errorsInOrder(entries, graph);
}

function toEntry({ field, reason }: ContractNodeError, inputs: JsonObject): NodeErrorEntry {
  const value = Object.hasOwn(inputs, field) ? inputs[field] : undefined;
  const known = v1ErrorOf(reason);
  if (!known) return ownRefusal(field === '' ? reason : `${field} - ${reason}`, field);
  const isReported = value !== undefined && linkOf(value) === undefined;
  const extra_info = {
    ...(field !== '' && { input_name: field }),
    ...(isReported && { received_value: value }),
  };
  return { ...known, details: field, extra_info };
}

function inputsOf(graph: Graph, id: string): JsonObject {
  const inputs = nodeOf(graph, id)?.inputs as Json | undefined;
  return isJsonObject(inputs) ? inputs : {};
}

function entriesOf(value: Json | undefined): readonly ContractNodeError[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isJsonObject).map(({ field, reason }) => ({
    field: typeof field === 'string' ? field : '',
    reason: typeof reason === 'string' ? reason : 'refused',
  }));
}
