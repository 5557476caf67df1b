import { isAssetRef } from '../../protocol/asset-refs.ts';
import { type Json, LosslessNumber } from '../../protocol/json.ts';
import {
  pythonRepr,
  pythonStr,
  isTruthyInPython,
  pythonType,
  readPythonFloat,
} from '../../protocol/python-text.ts';
import { unwrap } from '../../translate/graph.ts';
import { shownText } from '../../translate/shown-value.ts';

/** A literal as v1's validation converts it, or the text of Python's error. */
export type Coerced =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly reason: string };

/** The types that v1 converts. Any other literal stays unchanged. */
const COERCIONS = new Map<Json, (value: Json) => Coerced>([
  ['INT', toInt],
  ['FLOAT', toFloat],
  ['STRING', (value) => ({ ok: true, value: pythonStr(value) })],
  ['BOOLEAN', (value) => ({ ok: true, value: isTruthyInPython(value) })],
]);

/** Python has the same limit: the time to parse an integer grows with the square of its length. */
const MAX_INT_DIGITS = 4300;
const TOO_MANY_DIGITS = `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion`;

/** Applies v1's conversion for a declared type. References to files are not changed. */
export function coerce(type: Json, value: Json): Coerced {
  const plain = unwrap(value);
  if (isAssetRef(plain)) return { ok: true, value: plain };
  return COERCIONS.get(type)?.(plain) ?? { ok: true, value: plain };
}

function toInt(value: Json): Coerced {
  if (typeof value === 'boolean') return { ok: true, value: Number(value) };
  if (typeof value === 'string') return intFromText(value);
  if (typeof value !== 'number' && !(value instanceof LosslessNumber)) {
    const found = pythonType(value);
    return refuseValue(
      `int() argument must be a string, a bytes-like object or a real number, not '${found}'`,
    );
  }
  const text = String(value);
  if (text.length > MAX_INT_DIGITS) return refuseValue(TOO_MANY_DIGITS);
  if (/^-?\d+$/.test(text)) return { ok: true, value: toJsonInteger(text) };
  const number = Number(text);
  if (Number.isNaN(number)) return refuseValue('cannot convert float NaN to integer');
  if (!Number.isFinite(number)) return refuseValue('cannot convert float infinity to integer');
  return { ok: true, value: toJsonInteger(BigInt(Math.trunc(number)).toString()) };
}

/** Reads an integer as Python does, with blanks around it and single underscores between digits. */
function intFromText(text: string): Coerced {
  if (text.length > MAX_INT_DIGITS) return refuseValue(TOO_MANY_DIGITS);
  const trimmed = text.trim();
  return /^[+-]?\d+(_\d+)*$/.test(trimmed)
    ? {
        ok: true,
        value: toJsonInteger(BigInt(trimmed.replaceAll('_', '').replace(/^\+/, '')).toString()),
      }
    : refuseValue(`invalid literal for int() with base 10: ${pythonRepr(shownText(text))}`);
}

/** Converts to a float. JSON has no infinity and no NaN, so these become their texts. */
function toFloat(value: Json): Coerced {
  if (typeof value === 'boolean') return { ok: true, value: Number(value) };
  if (typeof value === 'object' && !(value instanceof LosslessNumber)) {
    return refuseValue(
      `float() argument must be a string or a real number, not '${pythonType(value)}'`,
    );
  }
  const text = String(value);
  const number = readPythonFloat(text);
  if (number === undefined)
    return refuseValue(`could not convert string to float: ${pythonRepr(shownText(text))}`);
  const exact = typeof value === 'string' ? number : value;
  return { ok: true, value: Number.isFinite(number) ? exact : String(number) };
}

function toJsonInteger(text: string): Json {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : new LosslessNumber(text);
}

function refuseValue(reason: string): Coerced {
  return { ok: false, reason };
}
