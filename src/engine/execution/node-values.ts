import type { InputSpec, Inputs, Value } from '../../nodes/node.ts';
import { type Json, LosslessNumber, stringifyJson } from '../../protocol/json.ts';

/** The longest text that an error shows of one value. */
const MAX_SHOWN_CHARS = 1000;

/**
 * Converts a literal input to the value that nodes see. An INT beyond a double's range becomes a
 * bigint, and the text of a FLOAT its infinity or NaN.
 */
export function toValue(json: Json, spec: InputSpec): Value {
  if (spec[0] === 'FLOAT' && typeof json === 'string') return Number(json);
  if (!(json instanceof LosslessNumber)) return json as Value;
  const token = json.toString();
  if (spec[0] === 'FLOAT' || !/^-?\d+$/.test(token)) return Number(token);
  return BigInt(token);
}

/**
 * Describes evaluated inputs for an error report: pixels are named, not printed, and long texts are
 * cut.
 */
export function describeInputs(inputs: Inputs): { readonly [name: string]: readonly Json[] } {
  const entries = Object.entries(inputs).map(([name, value]) => [name, [describe(value)]] as const);
  return Object.fromEntries(entries);
}

function describe(value: Value): Json {
  if (typeof value === 'bigint') return new LosslessNumber(value.toString());
  if (typeof value === 'string') return value.slice(0, MAX_SHOWN_CHARS);
  if (typeof value !== 'object' || value === null) return finiteOrText(value);
  if (value.kind === 'image') {
    return `IMAGE of shape [${value.batch}, ${value.height}, ${value.width}, ${value.channels}]`;
  }
  if (value.kind === 'mask')
    return `MASK of shape [${value.batch}, ${value.height}, ${value.width}]`;
  return stringifyJson(value as Json).slice(0, MAX_SHOWN_CHARS);
}

function finiteOrText(value: number | boolean | null): Json {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
