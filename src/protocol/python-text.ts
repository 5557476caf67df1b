import { type Json, LosslessNumber, isJsonObject } from './json.ts';
import { pythonFloat } from './python-json.ts';

/**
 * Returns a JSON value as Python's `str()` shows it, which is how v1 writes values into its
 * messages.
 */
export function pythonStr(value: Json): string {
  return typeof value === 'string' ? value : pythonRepr(value);
}

/** Returns a JSON value as Python's `repr()` shows it: `'text'`, `True`, `None`, `['a', 1]`. */
export function pythonRepr(value: Json): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number')
    return Number.isInteger(value) ? String(value) : pythonFloat(value);
  if (value instanceof LosslessNumber)
    return /^-?\d+$/.test(value.value) ? value.value : pythonFloat(Number(value.value));
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(pythonRepr).join(', ')}]`;
  const items = Object.entries(value).map(([key, item]) => `${quoted(key)}: ${pythonRepr(item)}`);
  return `{${items.join(', ')}}`;
}

/** Returns the name of the Python type that a JSON value becomes. */
export function pythonType(value: Json): string {
  if (value === null) return 'NoneType';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return 'str';
  if (typeof value === 'number' || value instanceof LosslessNumber) {
    return /^-?\d+$/.test(String(value)) ? 'int' : 'float';
  }
  return Array.isArray(value) ? 'list' : 'dict';
}

/**
 * Reads a float as Python's `float()` does, with blanks around it and single underscores between
 * digits. `undefined`: the text is none.
 */
export function readPythonFloat(text: string): number | undefined {
  const trimmed = text.trim().replaceAll(/(?<=\d)_(?=\d)/g, '');
  if (/^[+-]?nan$/i.test(trimmed)) return Number.NaN;
  if (/^[+-]?inf(inity)?$/i.test(trimmed)) return trimmed.startsWith('-') ? -Infinity : Infinity;
  // `Number` reads `0x10`, `0b1` and `0o7`, too; Python does not.
  const number = trimmed === '' || /^0[box]/i.test(trimmed) ? Number.NaN : Number(trimmed);
  return Number.isNaN(number) ? undefined : number;
}

/**
 * True for a value that Python counts as true. Empty texts, lists and objects are false; the text
 * "false" is true.
 */
export function isTruthyInPython(value: Json | undefined): boolean {
  if (value === null || value === undefined || value === false) return false;
  if (typeof value === 'string') return value !== '';
  if (Array.isArray(value)) return value.length > 0;
  if (isJsonObject(value)) return Object.keys(value).length > 0;
  // Compared as text: `valueOf()` throws for a number that does not fit a double.
  return Number(pythonRepr(value)) !== 0;
}

/** Quotes a text with single quotes, unless it has single quotes and no double ones. */
function quoted(text: string): string {
  const escaped = text
    .replaceAll('\\', '\\\\')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t');
  if (text.includes("'") && !text.includes('"')) return `"${escaped}"`;
  return `'${escaped.replaceAll("'", "\\'")}'`;
}
