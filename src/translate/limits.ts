import type { Json } from '../wire/json.ts';
import { pythonJson } from '../wire/python-json.ts';

/** Common WebSocket libraries refuse frames over 1 MiB; each open-ended part gets less than that. */
const PART_CHARS = 64 * 1024;
const LIST_CHARS = 128 * 1024;
const VALUE_CHARS = 8 * 1024;
const OUTPUT_CHARS = 768 * 1024;
const CUT = '… (shortened)';

/** Text short enough for a frame even if every character must be escaped. */
export function shortText(text: string): string {
  return cut(text, PART_CHARS);
}

/** The first lines that fit, and a word about the rest. */
export function shortLines(lines: readonly string[]): readonly string[] {
  const kept = whileFits(lines, PART_CHARS, (line) => pythonJson(line).length);
  if (kept.length === lines.length) return lines;
  return kept.length === 0 ? [shortText(lines[0] ?? '')] : [...kept, `${CUT}\n`];
}

/** As many ids as fit into a frame. */
export function shortIds(ids: readonly string[]): readonly string[] {
  return whileFits(ids, LIST_CHARS, (id) => pythonJson(id).length + 2);
}

/** Inputs of a node with long values shortened and, past the limit, left out. */
export function shortInputs(inputs: { readonly [name: string]: readonly Json[] }): {
  readonly [name: string]: readonly Json[];
} {
  const entries = Object.entries(inputs).map(
    ([name, values]) => [name, whileFits(values, VALUE_CHARS * 4, sizeOf).map(shortValue)] as const,
  );
  return Object.fromEntries(
    whileFits(entries, PART_CHARS, ([name, values]) => sizeOf([name, values])),
  );
}

/** What a node shows, with its texts cut only when the whole would break a client's frame limit. */
export function frameOutput(output: { readonly [key: string]: readonly Json[] }): {
  readonly [key: string]: readonly Json[];
} {
  if (sizeOf(output) <= OUTPUT_CHARS) return output;
  const entries = Object.entries(output).map(([key, items]) => [
    key,
    whileFits(items.map(shortValue), LIST_CHARS, sizeOf),
  ]);
  return Object.fromEntries(entries);
}

/** The newest entries that fit, in their order. */
export function newestThatFit<T>(items: readonly T[], size: (item: T) => number): readonly T[] {
  return whileFits(items.toReversed(), 4 * LIST_CHARS, size).toReversed();
}

function shortValue(value: Json): Json {
  if (typeof value === 'string') return cut(value, VALUE_CHARS);
  const text = pythonJson(value);
  return text.length <= VALUE_CHARS ? value : cut(text, VALUE_CHARS);
}

function cut(text: string, maxChars: number): string {
  if (pythonJson(text.slice(0, maxChars)).length <= maxChars && text.length <= maxChars)
    return text;
  // One character costs at most six when it is escaped.
  return `${text.slice(0, Math.floor(maxChars / 6))}${CUT}`;
}

function whileFits<T>(
  items: readonly T[],
  budget: number,
  size: (item: T) => number,
): readonly T[] {
  let left = budget;
  const end = items.findIndex((item) => (left -= size(item)) < 0);
  return end < 0 ? items : items.slice(0, end);
}

function sizeOf(value: Json): number {
  return pythonJson(value).length;
}
