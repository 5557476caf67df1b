import type { InputSpec, NodeDef } from '../../nodes/node.ts';
import { isAssetRef } from '../../protocol/asset-refs.ts';
import { type Json, type JsonObject, isJsonObject } from '../../protocol/json.ts';
import { pythonStr, pythonType } from '../../protocol/python-text.ts';
import type { NodeErrorEntry } from '../../protocol/v1.ts';
import type { Graph, GraphNode } from '../../protocol/v2.ts';
import { errorEntry, missingInputError } from '../../protocol/node-errors.ts';
import { declaredInputs } from '../../translate/declared-inputs.ts';
import { linkOf, unwrap } from '../../translate/graph.ts';
import { missingFile } from '../../translate/node-errors.ts';
import { limitError, listError } from '../../translate/value-errors.ts';
import { coerce } from './coerce-literal.ts';
import { shownValue } from '../../translate/shown-value.ts';
import { type InputValidation, type Thrown, inputConfig, validateLink } from './validate-link.ts';

/**
 * The result of validating one node: its own errors, or the exception that ended the validation.
 */
export type NodeValidation = {
  readonly errors: NodeErrorEntry[];
  /** The coerced literals, by input. */
  readonly coerced: { readonly [input: string]: Json };
  /** The valid links of the node: the source of each, and the input it belongs to. */
  readonly links: readonly {
    readonly input: string;
    readonly spec: InputSpec;
    readonly link: readonly [string, number];
  }[];
  readonly thrown?: Thrown;
};

/** The existing classes, and the known facts about the files that a graph names. */
export type ValidationContext = {
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /** The unknown files by node. */
  readonly unknownFiles: ReadonlyMap<string, readonly UnknownFile[]>;
};

/** A name in a file input without a file. */
export type UnknownFile = { readonly input: string; readonly value: string };

/**
 * Checks the inputs of one node in the order of their declaration. Linked nodes are not checked.
 * The classes of all nodes exist.
 */
export function validateNode(id: string, graph: Graph, context: ValidationContext): NodeValidation {
  const node = graph[id] as GraphNode;
  const { nodes, unknownFiles } = context;
  const def = nodes.get(node.class_type) as NodeDef;
  const validation = {
    errors: [] as NodeErrorEntry[],
    coerced: {} as { [input: string]: Json },
    links: [] as NodeValidation['links'][number][],
  };
  const read = readInputs(node.inputs as Json | undefined);
  if ('thrown' in read) return { ...validation, ...read };
  const { inputs } = read;
  for (const declared of declaredInputs(def, inputs)) {
    const { name: input, spec } = declared;
    if (!Object.hasOwn(inputs, input)) {
      if (declared.required) validation.errors.push(missingInputError(declared));
      continue;
    }
    const value = inputs[input] as Json;
    const literal = Array.isArray(value) ? { value } : validateLiteral(input, spec, value, def);
    // A wrapped list in the form of a link becomes a link: execution sees no difference.
    const isLink = Array.isArray(value) || ('value' in literal && linkOf(literal.value));
    const found = isLink
      ? validateLink(input, spec, unwrap(value) as readonly Json[], { graph, nodes })
      : literal;
    if ('thrown' in found) return { ...validation, thrown: found.thrown };
    if ('error' in found) validation.errors.push(found.error);
    else if ('link' in found) {
      validation.links.push({ input, spec, link: found.link });
      validation.coerced[input] = unwrap(value);
    } else validation.coerced[input] = found.value;
  }
  const thrown = fileFault(def, inputs);
  if (thrown) return { ...validation, thrown };
  for (const file of unknownFiles.get(id) ?? []) validation.errors.push(missingFile(file));
  return validation;
}

/**
 * Reads the inputs. v1 tests if a name is in the inputs: a list or a text has none, and on `null`
 * the test fails.
 */
function readInputs(
  inputs: Json | undefined,
): { readonly inputs: JsonObject } | { readonly thrown: Thrown } {
  if (isJsonObject(inputs)) return { inputs };
  if (typeof inputs === 'string' || Array.isArray(inputs)) return { inputs: {} };
  const message =
    inputs === undefined ? "'inputs'" : `argument of type '${pythonType(inputs)}' is not iterable`;
  return { thrown: { type: inputs === undefined ? 'KeyError' : 'TypeError', message } };
}

/**
 * Returns the error of a file input that is not a text. v1 searches for a loader's file whatever
 * the value is, so such a value ends the validation.
 */
function fileFault(def: NodeDef, inputs: JsonObject): Thrown | undefined {
  for (const input of def.fileInputs ?? []) {
    if (!Object.hasOwn(inputs, input)) continue;
    const value = unwrap(inputs[input] ?? null);
    if (typeof value === 'string' || isAssetRef(value)) continue;
    // The value of a link is not known yet.
    const type = pythonType(linkOf(value) ? null : value);
    return { type: 'AttributeError', message: `'${type}' object has no attribute 'endswith'` };
  }
  return undefined;
}

function validateLiteral(
  input: string,
  spec: InputSpec,
  given: Json,
  def: NodeDef,
): InputValidation {
  const [type] = spec;
  const declared = inputConfig(spec);
  const coerced = coerce(type as Json, given);
  if (!coerced.ok) {
    const shown = shownValue(unwrap(given));
    const details = `${input}, ${pythonStr(shown)}, ${coerced.reason}`;
    const more = { received_value: shown, exception_message: coerced.reason };
    const info = { input_name: input, input_config: declared, ...more };
    const message = `Failed to convert an input value to a ${String(type)} value`;
    return { error: errorEntry('invalid_input_type', details, info, message) };
  }
  // For a file input the existence of the file is checked, not the option list.
  if (def.fileInputs?.includes(input)) return { value: coerced.value };
  const error =
    limitError(input, declared, coerced.value) ?? listError(input, declared, coerced.value);
  return error ? { error } : { value: coerced.value };
}
