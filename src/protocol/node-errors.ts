import { type Json, type JsonObject, isJsonObject, entriesInOrder, objectInOrder } from './json.ts';
import { pythonRepr } from './python-text.ts';
import type { NodeErrorEntry, NodeErrors, PromptRefusal } from './v1.ts';

/**
 * One entry of `details.node_errors` in the v2 contract. `field` is empty when the error is about
 * the whole node.
 */
export type ContractNodeError = { readonly field: string; readonly reason: string };

/** The reason for a node whose class does not exist. */
export const UNKNOWN_CLASS: ContractNodeError = { field: 'class_type', reason: 'unknown_class' };

/** The reason for a node that names no class. */
export const MISSING_CLASS: ContractNodeError = { field: 'class_type', reason: 'missing_input' };

/** v1's error types with their messages, and the v2 reason with the same meaning. */
const TYPES = {
  required_input_missing: { reason: 'missing_input', message: 'Required input is missing' },
  value_not_in_list: { reason: 'value_not_in_list', message: 'Value not in list' },
  value_smaller_than_min: {
    reason: 'value_smaller_than_min',
    message: 'Value smaller than the minimum',
  },
  value_bigger_than_max: {
    reason: 'value_bigger_than_max',
    message: 'Value bigger than the maximum',
  },
  invalid_input_type: { reason: 'invalid_value', message: 'Failed to convert an input value' },
  return_type_mismatch: {
    reason: 'type_mismatch',
    message: 'Return type mismatch between linked nodes',
  },
  invalid_dynamic_input: { reason: 'invalid_dynamic_input', message: 'Invalid dynamic input' },
  dependency_cycle: { reason: 'dependency_cycle', message: 'Dependency cycle detected' },
  bad_linked_input: {
    reason: 'bad_linked_input',
    message: 'Bad linked input, must be a length-2 list of [node_id, slot_index]',
  },
  exception_during_validation: {
    reason: 'exception_during_validation',
    message: 'Exception when validating node',
  },
  exception_during_inner_validation: {
    reason: 'exception_during_inner_validation',
    message: 'Exception when validating inner node',
  },
} as const satisfies Readonly<Record<string, { reason: string; message: string }>>;

type Type = keyof typeof TYPES;

/** The types by the reasons that services give: that of v2, v1's own type, or `invalid_type`. */
const BY_REASON: ReadonlyMap<string, Type> = new Map<string, Type>([
  ['invalid_type', 'invalid_input_type'],
  ...(Object.keys(TYPES) as Type[]).flatMap((type): [string, Type][] => [
    [type, type],
    [TYPES[type].reason, type],
  ]),
]);

/** v1 prints a count in place of a longer list of options. */
const MAX_LISTED_OPTIONS = 20;

/** Returns one error as v1 lists it. */
export function errorEntry(
  type: Type,
  details: string,
  info: JsonObject,
  message: string = TYPES[type].message,
): NodeErrorEntry {
  return { type, message, details, extra_info: info };
}

/** Returns the body of a refused `POST /prompt`. Clients join its texts and show them to people. */
export function promptRefusal(type: string, message: string, details = ''): PromptRefusal {
  return { error: { type, message, details, extra_info: {} }, node_errors: {} };
}

type NamedInput = { readonly name: string; readonly ownName: string };

/** Returns the error of a required input that a node lacks. v1 cuts the names it is nested in. */
export function missingInputError({ name, ownName }: NamedInput): NodeErrorEntry {
  return errorEntry('required_input_missing', ownName, { input_name: name });
}

/** Returns the error of a dynamic input that is not named as its definition says. */
export function dynamicInputError(input: {
  readonly name: string;
  readonly fault?: string;
}): NodeErrorEntry {
  return errorEntry('invalid_dynamic_input', input.fault ?? '', { input_name: input.name });
}

/** Returns the error of a value that is none of the options, or of which some are none. */
export function notInListError(
  name: string,
  { options, config }: { readonly options: readonly Json[]; readonly config: Json },
  { value, wrong }: { readonly value: Json; readonly wrong: readonly Json[] },
): NodeErrorEntry {
  const isLong = options.length > MAX_LISTED_OPTIONS;
  const list = isLong ? `(list of length ${options.length})` : pythonRepr(options as Json);
  return errorEntry(
    'value_not_in_list',
    `${name}: ${wrong.map(pythonRepr).join(', ')} not in ${list}`,
    {
      input_name: name,
      input_config: isLong ? null : config,
      received_value: value,
    },
  );
}

/**
 * Returns the members of a refusal's `details` that are about nodes: `node_errors` in the
 * contract's form, and v1's own form beside it.
 */
export function nodeErrorDetails(native: NodeErrors): {
  readonly node_errors: Json;
  readonly x_native: Json;
} {
  const entries = entriesInOrder(native).map(
    ([id, { errors }]) => [id, errors.map(toContract)] as const,
  );
  return {
    node_errors: objectInOrder(entries),
    x_native: native,
  };
}

/** Returns v1's type and message for a v2 reason; `undefined` for a reason in free words. */
export function v1ErrorOf(reason: string): Pick<NodeErrorEntry, 'type' | 'message'> | undefined {
  const type = BY_REASON.get(reason);
  return type && { type, message: TYPES[type].message };
}

/** True when the errors of one node are in v1's own form. */
export function isNativeNodeError(value: Json | undefined): value is Json & NodeErrors[string] {
  return (
    isJsonObject(value) && Array.isArray(value.errors) && Array.isArray(value.dependent_outputs)
  );
}

function toContract({ type, details, extra_info: info }: NodeErrorEntry): ContractNodeError {
  const field = typeof info.input_name === 'string' ? info.input_name : '';
  if (Object.hasOwn(TYPES, type)) return { field, reason: TYPES[type as Type].reason };
  // The node itself refused the input: its text says more than its type.
  const isPrefixed = field !== '' && details.startsWith(`${field} - `);
  const reason = isPrefixed ? details.slice(field.length + 3) : details;
  return { field, reason: reason || type };
}
