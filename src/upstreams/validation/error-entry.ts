import type { InputSpec } from '../../nodes/node.ts';
import type { Json, JsonObject } from '../../protocol/json.ts';
import type { NodeErrorEntry } from '../../protocol/v1.ts';

/** An API-format workflow whose nodes are not checked yet. */
export type RawGraph = { readonly [id: string]: Json };

/** The result of validating one input. */
export type InputValidation =
  | { readonly error: NodeErrorEntry }
  | { readonly link: readonly [string, number] }
  | { readonly value: Json }
  | { readonly thrown: { readonly type: string; readonly message: string } };

/** `[type, options]`, always with options: v1 shows `{}` where a node declared none. */
export function inputConfig([type, options = {}]: InputSpec): Json {
  return [type as Json, options];
}

/** One error as v1 lists it. */
export function errorEntry(
  type: string,
  message: string,
  details: string,
  info: JsonObject,
): NodeErrorEntry {
  return { type, message, details, extra_info: info };
}
