import type { InputSpec, Value } from '../../nodes/node.ts';
import { type Json, LosslessNumber, stringifyJson } from '../../protocol/json.ts';

/** Longest text shown of one value in an error. */
const MAX_SHOWN_CHARS = 1000;
/** Most values shown of one input in an error. */
const MAX_SHOWN_VALUES = 8;

/** A literal input as nodes see it: an INT beyond a double's reach becomes a bigint. */
export function toValue(json: Json, spec: InputSpec): Value {
  if (!(json instanceof LosslessNumber)) return json as Value;
  const token = json.toString();
  if (spec[0] === 'FLOAT' || !/^-?\d+$/.test(token)) return Number(token);
  return BigInt(token);
}

/** Evaluated inputs as an error report shows them; pixels are named, not printed, long texts are cut. */
export function describeInputs(inputs: ReadonlyMap<string, readonly Value[]>): {
  readonly [name: string]: readonly Json[];
} {
  const entries = [...inputs].map(([name, values]) => [
    name,
    values.slice(0, MAX_SHOWN_VALUES).map(describe),
  ]);
  return Object.fromEntries(entries) as { readonly [name: string]: readonly Json[] };
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
