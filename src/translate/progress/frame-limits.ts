import { type Json, LosslessNumber } from '../../protocol/json.ts';

/**
 * The limit of each part of a frame that has no other one: common WebSocket libraries refuse frames
 * over 1 MiB.
 */
const PART_CHARS = 64 * 1024;
const LIST_CHARS = 128 * 1024;
const STATE_CHARS = 512 * 1024;
const VALUE_CHARS = 16 * 1024;
const OUTPUT_CHARS = 768 * 1024;
const SHORTENED_MARK = '… (shortened)';

type Values = { readonly [name: string]: readonly Json[] };

/** Shortens a text so that it fits into a frame even if every character must be escaped. */
export function shortText(text: string): string {
  return shorten(text, PART_CHARS);
}

/** Returns the first lines that fit, and a word about the rest. */
export function shortLines(lines: readonly string[]): readonly string[] {
  const kept = takeWhileFits(lines, PART_CHARS, costOf);
  if (kept.length === lines.length) return lines;
  return [...(kept.length === 0 ? [shortText(lines[0] ?? '')] : kept), `${SHORTENED_MARK}\n`];
}

/** Returns as many ids as fit into a frame. */
export function shortIds(ids: readonly string[]): readonly string[] {
  return takeWhileFits(ids, LIST_CHARS, costOf);
}

/** Returns the inputs of a node with long values shortened and, past the limit, left out. */
export function shortInputs(inputs: Values): Values {
  const entries = Object.entries(inputs).map(
    ([name, values]) => [name, values.map(shortValue)] as const,
  );
  return Object.fromEntries(takeWhileFits(entries, PART_CHARS, costOf));
}

/**
 * Returns the output of a node. Its texts are cut only when the whole would exceed a client's frame
 * limit.
 */
export function frameOutput(output: Values): Values {
  if (costOf(output, OUTPUT_CHARS) <= OUTPUT_CHARS) return output;
  const entries = Object.entries(output).map(
    ([key, items]) => [key, takeWhileFits(items.map(shortValue), LIST_CHARS, costOf)] as const,
  );
  return Object.fromEntries(takeWhileFits(entries, OUTPUT_CHARS, costOf));
}

/** Returns the newest entries that fit, in their order. */
export function newestThatFit<T>(items: readonly T[], size: (item: T) => number): readonly T[] {
  return takeWhileFits(items.toReversed(), STATE_CHARS, size).toReversed();
}

function shortValue(value: Json): Json {
  if (costOf(value, VALUE_CHARS) <= VALUE_CHARS) return value;
  return typeof value === 'string' ? shorten(value, VALUE_CHARS) : SHORTENED_MARK;
}

/** Shortens a text. One character takes at most six when it is escaped. */
function shorten(text: string, maxChars: number): string {
  return costOf(text, maxChars) <= maxChars
    ? text
    : `${text.slice(0, Math.floor(maxChars / 6))}${SHORTENED_MARK}`;
}

function takeWhileFits<T>(
  items: readonly T[],
  budget: number,
  size: (item: T, budget: number) => number,
): readonly T[] {
  let left = budget;
  const end = items.findIndex((item) => {
    left -= size(item, left);
    return left < 0;
  });
  return end < 0 ? items : items.slice(0, end);
}

/** Returns an upper bound of the length as JSON. Stops counting above the budget. */
function costOf(value: Json, budget: number): number {
  if (typeof value === 'string') return textCost(value, budget);
  if (typeof value !== 'object' || value === null) return 26;
  if (value instanceof LosslessNumber) return value.toString().length + 2;
  const parts: readonly Json[] = Array.isArray(value) ? value : Object.entries(value).flat();
  let cost = 2;
  for (const part of parts) {
    cost += costOf(part, budget - cost) + 2;
    if (cost > budget) return cost;
  }
  return cost;
}

function textCost(text: string, budget: number): number {
  let cost = 4;
  for (let i = 0; i < text.length && cost <= budget; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code > 0x7e) cost += 6;
    else cost += code === 0x22 || code === 0x5c ? 2 : 1;
  }
  return cost;
}
