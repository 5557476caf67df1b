import { type Json, type JsonObject } from '../protocol/json.ts';
import { errorEntry, notInListError } from '../protocol/node-errors.ts';
import { pythonFloat } from '../protocol/python-json.ts';
import { pythonStr, readPythonFloat } from '../protocol/python-text.ts';
import { comboOptions, type NodeErrorEntry } from '../protocol/v1.ts';
import { shownValue } from './shown-value.ts';

/** The declaration of an input: v1 shows `{}` where a node declared no options. */
export type DeclaredSpec = readonly [type: Json, options: JsonObject];

/** Checks a number against the limits of its input. */
export function limitError(
  name: string,
  spec: DeclaredSpec,
  value: Json,
): NodeErrorEntry | undefined {
  const [type, { min, max }] = spec;
  if (type !== 'INT' && type !== 'FLOAT') return undefined;
  const isSmaller = min !== undefined && compareNumbers(value, min) < 0;
  const limit = isSmaller ? min : max;
  if (limit === undefined || (!isSmaller && compareNumbers(value, limit) <= 0)) return undefined;
  const code = isSmaller ? 'value_smaller_than_min' : 'value_bigger_than_max';
  const relation = isSmaller ? 'smaller than min' : 'bigger than max';
  const message = `Value ${numberText(type, value)} ${relation} of ${numberText(type, limit)}`;
  const info = { input_name: name, input_config: spec, received_value: value };
  return errorEntry(code, name, info, message);
}

/**
 * Checks a value against the options of a combo, or each value of a multiselect one. `isAllowed`
 * tells which values outside of the list are good, too.
 */
export function listError(
  name: string,
  spec: DeclaredSpec,
  value: Json,
  isAllowed: (one: Json) => boolean = () => false,
): NodeErrorEntry | undefined {
  const options = comboOptions(spec);
  if (options === undefined) return undefined;
  const values = spec[1].multiselect === true && Array.isArray(value) ? value : [value];
  const wrong = values.filter((one: Json) => !options.includes(one) && !isAllowed(one));
  if (wrong.length === 0) return undefined;
  const shown = { value: shownValue(value), wrong: shownValue(wrong) as readonly Json[] };
  return notInListError(name, { options, config: spec }, shown);
}

/** Compares two numbers: -1, 0 or 1. Exact for integers beyond a double. */
function compareNumbers(a: Json, b: Json): number {
  const areSmall = Number.isSafeInteger(a) && Number.isSafeInteger(b);
  const [left, right] = areSmall ? [Number(a), Number(b)] : [exactNumber(a), exactNumber(b)];
  return left < right ? -1 : Number(left > right);
}

function exactNumber(value: Json): number | bigint {
  const text = pythonStr(value);
  return /^-?\d+$/.test(text) ? BigInt(text) : (readPythonFloat(text) ?? Number.NaN);
}

/** Returns a limit or value as v1 prints it: floats keep their decimal point. */
function numberText(type: 'INT' | 'FLOAT', value: Json): string {
  return type === 'FLOAT' ? pythonFloat(Number(exactNumber(value))) : pythonStr(value);
}
