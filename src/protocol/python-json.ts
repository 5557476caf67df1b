import { LosslessNumber, type Json, entriesInOrder, isList } from './json.ts';
import { inAscii } from './python-json-text.ts';

/**
 * Returns the text that Python's `json.dumps` writes and v1 puts into saved files: `, ` and `: `
 * between items, characters outside ASCII as `\uXXXX`, numbers as they were read.
 */
export function pythonJson(value: Json): string {
  if (typeof value === 'string') return inAscii(JSON.stringify(value));
  if (typeof value === 'number') return pythonNumber(value);
  if (value === null || typeof value === 'boolean') return String(value);
  if (value instanceof LosslessNumber) return value.toString();
  if (isList(value)) return `[${value.map(pythonJson).join(', ')}]`;
  const items = entriesInOrder(value).map(
    ([key, item]) => `${inAscii(JSON.stringify(key))}: ${pythonJson(item)}`,
  );
  return `{${items.join(', ')}}`;
}

/** Returns a FLOAT as Python's `str()` shows it: `3.0`, `1e+16`, `1e-05`, `nan`. */
export function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const magnitude = Math.abs(value);
  if (magnitude >= 1e16 || magnitude < 1e-4) return pythonExponent(value.toExponential());
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

/** Writes an exponent of at least two digits. */
export function pythonExponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

/**
 * Writes a number. One that reads as an integer shows no fraction; v1 would keep `5.0`, while
 * Holdover reads it as 5.
 */
function pythonNumber(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : pythonFloat(value);
}
