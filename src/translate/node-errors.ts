import { type Json, type JsonObject, isJsonObject } from '../wire/json.ts';
import type { NodeErrorEntry, NodeErrors, PromptRefusal } from '../wire/v1.ts';
import type { Graph } from '../wire/v2.ts';
import { classOf, dependents } from './graph.ts';

/** What the caller knows of a refused submission. */
export type MissingContext = {
  /** Output nodes that were to be executed. */
  readonly outputs?: readonly string[];
  /** Inputs whose file names were replaced, and by which asset. */
  readonly placed?: readonly {
    readonly nodeId: string;
    readonly input: string;
    readonly value: string;
    readonly assetId: string;
  }[];
};

type Entry = { readonly field: string; readonly reason: string };

/** v2's reasons in v1's words; one nobody has seen is a custom refusal in its own words. */
const REASONS = {
  missing_input: { type: 'required_input_missing', message: 'Required input is missing' },
  required_input_missing: { type: 'required_input_missing', message: 'Required input is missing' },
  value_not_in_list: { type: 'value_not_in_list', message: 'Value not in list' },
  invalid_value: { type: 'invalid_input_type', message: 'Failed to convert an input value' },
  invalid_type: { type: 'invalid_input_type', message: 'Failed to convert an input value' },
  type_mismatch: {
    type: 'return_type_mismatch',
    message: 'Return type mismatch between linked nodes',
  },
} as const satisfies Readonly<Record<string, { readonly type: string; readonly message: string }>>;

/** v2 shows node errors in v1's own shape, passed through, or as lists of `{field, reason}`. */
export function toNodeErrors(
  value: Json | undefined,
  graph: Graph,
  outputs: readonly string[],
): NodeErrors {
  if (!isJsonObject(value)) return {};
  const entries = Object.entries(value).flatMap(([id, node]) => {
    if (isNative(node)) return [[id, node] as const];
    const errors = entriesOf(node).map(toEntry);
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
    entriesOf(value[key]).some(({ reason }) => reason === 'unknown_class'),
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
  const placed = (context.placed ?? []).filter(({ assetId }) => !missing || missing.has(assetId));
  const about = { graph, outputs: context.outputs ?? [] };
  const byNode = new Map<string, NodeErrorEntry[]>();
  for (const file of placed) {
    byNode.set(file.nodeId, [...(byNode.get(file.nodeId) ?? []), missingFile(file)]);
  }
  const entries = [...byNode].map(([id, errors]) => [id, nodeError(id, errors, about)] as const);
  return Object.fromEntries(entries);
}

function missingFile({
  input,
  value,
}: {
  readonly input: string;
  readonly value: string;
}): NodeErrorEntry {
  return {
    type: 'custom_validation_failed',
    message: 'Custom validation failed for node',
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

function toEntry({ field, reason }: Entry): NodeErrorEntry {
  const extra_info = field === '' ? {} : { input_name: field };
  if (Object.hasOwn(REASONS, reason))
    return { ...REASONS[reason as keyof typeof REASONS], details: field, extra_info };
  const details = field === '' ? reason : `${field} - ${reason}`;
  return {
    type: 'custom_validation_failed',
    message: 'Custom validation failed for node',
    details,
    extra_info,
  };
}

function isNative(value: Json): value is JsonObject & NodeErrors[string] {
  return (
    isJsonObject(value) && Array.isArray(value.errors) && Array.isArray(value.dependent_outputs)
  );
}

function entriesOf(value: Json | undefined): readonly Entry[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isJsonObject).map(({ field, reason }) => ({
    field: typeof field === 'string' ? field : '',
    reason: typeof reason === 'string' ? reason : 'refused',
  }));
}
