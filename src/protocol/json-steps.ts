import { type Json, LosslessNumber, namesInOrder, stringifyJson } from './json.ts';
import type { Steps } from './steps.ts';

/**
 * The most that is written in one step. A value weighs one, and so do each 64 characters of a text.
 */
const WEIGHT_AT_ONCE = 4_000;
const CHARS_A_WEIGHT = 64;
/** The characters of a long text that are written in one step. */
const PIECE_CHARS = 256 * 1024;

/** Writes the text of `stringifyJson` in steps that yield the amount written. */
export function* stringifySteps(value: Json): Steps<string> {
  const pieces: string[] = [];
  yield* write(value, pieces);
  return pieces.length === 1 ? (pieces[0] ?? '') : pieces.join('');
}

function* write(value: Json, pieces: string[]): Steps<void> {
  const weight = jsonWeight(value, WEIGHT_AT_ONCE);
  if (weight <= WEIGHT_AT_ONCE) {
    pieces.push(stringifyJson(value));
    yield weight;
    return;
  }
  // Even the first names of a very large object take long to list.
  yield 2 * WEIGHT_AT_ONCE;
  if (typeof value === 'string') yield* writeText(value, pieces);
  else if (Array.isArray(value)) yield* writeList(value as readonly Json[], pieces);
  else yield* writeObject(value as { readonly [name: string]: Json }, pieces);
}

function* writeText(text: string, pieces: string[]): Steps<void> {
  pieces.push('"');
  for (let start = 0; start < text.length;) {
    let end = Math.min(text.length, start + PIECE_CHARS);
    // A surrogate pair is not split, since its halves would be escaped one by one.
    const last = text.charCodeAt(end - 1);
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--;
    pieces.push(JSON.stringify(text.slice(start, end)).slice(1, -1));
    yield (end - start) / CHARS_A_WEIGHT;
    start = end;
  }
  pieces.push('"');
}

/** Writes a list. Items that weigh little are written together. */
function* writeList(items: readonly Json[], pieces: string[]): Steps<void> {
  pieces.push('[');
  for (let start = 0; start < items.length;) {
    if (start > 0) pieces.push(',');
    let end = start;
    let weight = 0;
    for (; end < items.length && weight <= WEIGHT_AT_ONCE; end++) {
      weight += jsonWeight(items[end] ?? null, WEIGHT_AT_ONCE);
    }
    if (end > start + 1 && weight > WEIGHT_AT_ONCE) end--;
    if (end === start + 1) yield* write(items[start] ?? null, pieces);
    else {
      pieces.push(stringifyJson(items.slice(start, end)).slice(1, -1));
      yield weight;
    }
    start = end;
  }
  pieces.push(']');
}

function* writeObject(members: { readonly [name: string]: Json }, pieces: string[]): Steps<void> {
  let before = '{';
  for (const name of namesInOrder(members)) {
    const member = members[name];
    if (member === undefined) continue;
    pieces.push(`${before}${JSON.stringify(name)}:`);
    before = ',';
    yield* write(member, pieces);
  }
  pieces.push(before === '{' ? '{}' : '}');
}

/** Returns the weight of a value with all its members. Stops counting above `most`. */
export function jsonWeight(value: Json | undefined, most: number): number {
  if (typeof value === 'string') return 1 + value.length / CHARS_A_WEIGHT;
  if (typeof value !== 'object' || value === null || value instanceof LosslessNumber) return 1;
  const members = value as { readonly [name: string]: Json };
  let weight = 1;
  for (const name in members) {
    weight += name.length / CHARS_A_WEIGHT + jsonWeight(members[name], most - weight);
    if (weight > most) break;
  }
  return weight;
}
