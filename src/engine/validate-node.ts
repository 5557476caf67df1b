import type { InputSpec, NodeDef } from '../nodes/node.ts';
import { type Json, type JsonObject, isJsonObject } from '../wire/json.ts';
import { pythonRepr, pythonStr } from '../wire/python-text.ts';
import type { NodeErrorEntry } from '../wire/v1.ts';
import { coerce, compareNumbers, numberText } from './coerce.ts';

/** What validation found at one node: its own errors, or the exception that cut it short. */
export type Verdict = {
  readonly errors: NodeErrorEntry[];
  /** Literals as coerced, by input. */
  readonly coerced: { readonly [input: string]: Json };
  /** Nodes it takes values from, through links that fit, and the input each hangs on. */
  readonly links: readonly {
    readonly input: string;
    readonly spec: InputSpec;
    readonly link: readonly [string, number];
  }[];
  readonly thrown?: { readonly type: string; readonly message: string };
};

type Graph = { readonly [id: string]: Json };

/** v1 prints longer option lists as a count. */
const LONG_LIST = 20;

/** Checks the inputs of one node, its linked nodes aside, in the order they are declared. */
export function judgeNode(id: string, graph: Graph, nodes: ReadonlyMap<string, NodeDef>): Verdict {
  const node = graph[id] as JsonObject;
  const def = nodes.get(classOf(node));
  const draft = {
    errors: [] as NodeErrorEntry[],
    coerced: {} as { [input: string]: Json },
    links: [] as Verdict['links'][number][],
  };
  const inputs = node['inputs'];
  if (!isJsonObject(inputs) || !def)
    return { ...draft, thrown: { type: 'KeyError', message: "'inputs'" } };
  for (const { input, spec, required } of declared(def)) {
    if (!Object.hasOwn(inputs, input)) {
      if (required)
        draft.errors.push(
          entry('required_input_missing', 'Required input is missing', input, {
            input_name: input,
          }),
        );
      continue;
    }
    const value = inputs[input] as Json;
    const found = Array.isArray(value)
      ? judgeLink(input, spec, value as readonly Json[], { graph, nodes })
      : judgeLiteral(input, spec, value, def);
    if ('thrown' in found) return { ...draft, thrown: found.thrown };
    if ('error' in found) draft.errors.push(found.error);
    else if ('link' in found) draft.links.push({ input, spec, link: found.link });
    else draft.coerced[input] = found.value;
  }
  draft.errors.push(...customErrors(def, inputs));
  return draft;
}

/** `[type, options]`, always with options: v1 shows `{}` where a node declared none. */
export function configOf([type, options = {}]: InputSpec): Json {
  return [type as Json, options];
}

export function entry(
  type: string,
  message: string,
  details: string,
  info: JsonObject,
): NodeErrorEntry {
  return { type, message, details, extra_info: info };
}

type Found =
  | { readonly error: NodeErrorEntry }
  | { readonly link: readonly [string, number] }
  | { readonly value: Json }
  | { readonly thrown: { readonly type: string; readonly message: string } };

function* declared(def: NodeDef): Generator<{ input: string; spec: InputSpec; required: boolean }> {
  for (const [input, spec] of Object.entries(def.required)) yield { input, spec, required: true };
  for (const [input, spec] of Object.entries(def.optional ?? {}))
    yield { input, spec, required: false };
}

function judgeLink(
  input: string,
  spec: InputSpec,
  value: readonly Json[],
  { graph, nodes }: { graph: Graph; nodes: ReadonlyMap<string, NodeDef> },
): Found {
  const info = { input_name: input, input_config: configOf(spec) };
  if (value.length !== 2) {
    const message = 'Bad linked input, must be a length-2 list of [node_id, slot_index]';
    return {
      error: entry('bad_linked_input', message, input, { ...info, received_value: value as Json }),
    };
  }
  const [from = null, slot = null] = value;
  const source =
    typeof from === 'string' && Object.hasOwn(graph, from)
      ? (graph[from] as JsonObject)
      : undefined;
  const def = source && nodes.get(classOf(source));
  if (!def) return { thrown: { type: 'KeyError', message: pythonRepr(from) } };
  if (typeof slot !== 'number' || !Number.isInteger(slot)) {
    return { thrown: { type: 'TypeError', message: 'tuple indices must be integers or slices' } };
  }
  // Python counts negative slots from the end; the original runs them.
  const received = def.outputs.at(slot)?.type;
  if (received === undefined)
    return { thrown: { type: 'IndexError', message: 'tuple index out of range' } };
  if (fits(received, spec[0])) return { link: [from as string, slot] };
  const wanted = typeof spec[0] === 'string' ? spec[0] : pythonRepr(spec[0] as Json);
  const details = `${input}, received_type(${received}) mismatch input_type(${wanted})`;
  const more = { ...info, received_type: received, linked_node: [from, slot] };
  return {
    error: entry(
      'return_type_mismatch',
      'Return type mismatch between linked nodes',
      details,
      more,
    ),
  };
}

function classOf(node: JsonObject): string {
  const name = node['class_type'];
  return typeof name === 'string' ? name : '';
}

/** `*` fits everything; a comma list fits when one of its types does. */
function fits(received: string, wanted: string | readonly string[]): boolean {
  if (typeof wanted !== 'string') return false;
  if (received === wanted || received === '*' || wanted === '*') return true;
  const types = wanted.split(',').map((type) => type.trim());
  return received.split(',').some((type) => types.includes(type.trim()));
}

function judgeLiteral(input: string, spec: InputSpec, given: Json, def: NodeDef): Found {
  const [type, options = {}] = spec;
  const info = { input_name: input, input_config: configOf(spec) };
  const coerced = coerce(type as Json, given);
  if (!coerced.ok) {
    const details = `${input}, ${pythonStr(given)}, ${coerced.reason}`;
    const more = { ...info, received_value: given, exception_message: coerced.reason };
    return {
      error: entry(
        'invalid_input_type',
        `Failed to convert an input value to a ${String(type)} value`,
        details,
        more,
      ),
    };
  }
  // A file chooser's list is not checked: whether the file is there is.
  if (def.fileInputs?.includes(input)) return { value: coerced.value };
  const error =
    limitError(input, spec, coerced.value) ?? listError(input, type, options, coerced.value);
  return error ? { error } : { value: coerced.value };
}

function limitError(input: string, spec: InputSpec, value: Json): NodeErrorEntry | undefined {
  const [type, { min, max } = {} as JsonObject] = spec;
  if (type !== 'INT' && type !== 'FLOAT') return undefined;
  const info = { input_name: input, input_config: configOf(spec), received_value: value };
  const shown = numberText(type, value);
  if (min !== undefined && compareNumbers(value, min) < 0) {
    return entry(
      'value_smaller_than_min',
      `Value ${shown} smaller than min of ${numberText(type, min)}`,
      input,
      info,
    );
  }
  if (max !== undefined && compareNumbers(value, max) > 0) {
    return entry(
      'value_bigger_than_max',
      `Value ${shown} bigger than max of ${numberText(type, max)}`,
      input,
      info,
    );
  }
  return undefined;
}

/** Only legacy lists are checked: the original leaves the newer `COMBO` to the node. */
function listError(
  input: string,
  type: InputSpec[0],
  options: JsonObject,
  value: Json,
): NodeErrorEntry | undefined {
  if (typeof type === 'string' || type.some((option) => option === value)) return undefined;
  const isLong = type.length > LONG_LIST;
  const list = isLong ? `(list of length ${type.length})` : pythonRepr(type as Json);
  const config: Json = isLong ? null : [type as Json, options];
  const info = { input_name: input, input_config: config, received_value: value };
  return entry(
    'value_not_in_list',
    'Value not in list',
    `${input}: ${quoteText(value)} not in ${list}`,
    info,
  );
}

/** v1 puts the value in quotes whatever it is. */
function quoteText(value: Json): string {
  return `'${pythonStr(value)}'`;
}

function customErrors(def: NodeDef, inputs: JsonObject): NodeErrorEntry[] {
  const reason = def.validate?.(inputs);
  if (reason === undefined) return [];
  const [input = ''] = Object.keys(def.required);
  const details = reason === '' ? input : `${input} - ${reason}`;
  return [
    entry('custom_validation_failed', 'Custom validation failed for node', details, {
      input_name: input,
    }),
  ];
}
