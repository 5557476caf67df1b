import { type Json, type JsonObject, isJsonObject } from '../protocol/json.ts';
import {
  type ContractNodeError,
  UNKNOWN_CLASS,
  isNativeNodeError,
  v1ErrorOf,
} from '../protocol/node-errors.ts';
import type { NodeErrorEntry, NodeErrors, PromptRefusal } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { classOf, dependents, linkSource, nodeOf } from './graph.ts';

/** Facts about a refused submission that only the caller knows. */
export type MissingContext = {
  /** Output nodes that were to be executed. */
  readonly outputs?: readonly string[];
  /** Inputs whose file names were replaced, and by which asset. */
  readonly resolvedFiles?: readonly {
    readonly nodeId: string;
    readonly input: string;
    readonly value: string;
    readonly assetId: string;
  }[];
};

/**
 * v1's `node_errors` of a refusal, from its `details`: complete in `x_native`, passed through in
 * `node_errors` by some services, or as the contract's lists of `{field, reason}`.
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
  const entries = Object.entries(contractErrors).flatMap(([id, node]) => {
    if (isNativeNodeError(node)) return [[id, node] as const];
    const errors = entriesOf(node).map((error) => toEntry(error, inputsOf(graph, id)));
    return errors.length === 0 ? [] : [[id, nodeError(id, errors, { graph, outputs })] as const];
  });
  return Object.fromEntries(entries);
}

/** An unknown class is no matter of one node in v1: the whole prompt is refused. */
export function unknownClass(
  value: Json | undefined,
  graph: Graph,
): PromptRefusal['error'] | undefined {
  if (!isJsonObject(value)) return undefined;
  const id = Object.keys(value).find((key) =>
    entriesOf(value[key]).some(({ reason }) => reason === UNKNOWN_CLASS.reason),
  );
  if (id === undefined) return undefined;
  return {
    type: 'invalid_prompt',
    message: `Cannot execute because node ${classOf(graph, id)} does not exist.`,
    details: `Node ID '#${id}'`,
    extra_info: {},
  };
}

/** Assets v2 cannot find, as v1's loaders complain of missing files, at the inputs that named them. */
export function missingFiles(
  details: JsonObject,
  graph: Graph,
  context: MissingContext,
): NodeErrors {
  const missing = Array.isArray(details.missing_ids) ? new Set(details.missing_ids) : undefined;
  const resolvedFiles = (context.resolvedFiles ?? []).filter(
    ({ assetId }) => !missing || missing.has(assetId),
  );
  const about = { graph, outputs: context.outputs ?? [] };
  const byNode = new Map<string, NodeErrorEntry[]>();
  for (const file of resolvedFiles) {
    const errors = byNode.get(file.nodeId);
    if (errors) errors.push(missingFile(file));
    else byNode.set(file.nodeId, [missingFile(file)]);
  }
  const entries = [...byNode].map(([id, errors]) => [id, nodeError(id, errors, about)] as const);
  return Object.fromEntries(entries);
}

/** A node's refusal in its own words. */
const OWN_REFUSAL = {
  type: 'custom_validation_failed',
  message: 'Custom validation failed for node',
} as const;

function missingFile({
  input,
  value,
}: {
  readonly input: string;
  readonly value: string;
}): NodeErrorEntry {
  return {
    ...OWN_REFUSAL,
    details: `${input} - Invalid image file: ${value}`,
    extra_info: { input_name: input },
  };
}

function nodeError(
  id: string,
  errors: readonly NodeErrorEntry[],
  { graph, outputs }: { readonly graph: Graph; readonly outputs: readonly string[] },
): NodeErrors[string] {
  return {
    errors,
    dependent_outputs: dependents(graph, id, outputs),
    class_type: classOf(graph, id),
  };
}

function toEntry({ field, reason }: ContractNodeError, inputs: JsonObject): NodeErrorEntry {
  const value = Object.hasOwn(inputs, field) ? inputs[field] : undefined;
  const known = v1ErrorOf(reason);
  if (!known) {
    const details = field === '' ? reason : `${field} - ${reason}`;
    const extra_info = field === '' ? {} : { input_name: field };
    return { ...OWN_REFUSAL, details, extra_info };
  }
  const isReported = value !== undefined && linkSource(value) === undefined;
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
