import { type Json, parseJson, stringifyJson } from '../wire/json.ts';

/**
 * A value that can be put away as its text and comes back when somebody looks: thousands of prompts
 * may wait, and a text is a fraction of what it says, and nothing for the collector to walk through.
 */
export type Kept<T> = { value: T | undefined; json: string | undefined };

/** `json`: its text, where it was written already. */
export function keep<T>(value: T, json?: string): Kept<T> {
  return { value, json };
}

export function valueOf<T>(kept: Kept<T>): T {
  kept.value ??= parseJson(kept.json ?? 'null') as T;
  return kept.value;
}

export function replace<T>(kept: Kept<T>, value: T): void {
  if (value === kept.value) return;
  kept.value = value;
  kept.json = undefined;
}

/** Keeps the text of a value that was written meanwhile, unless the value is another one by now. */
export function note<T>(kept: Kept<T>, value: T, json: string): void {
  if (kept.value === value) kept.json = json;
}

/** Compact, every number as it was read. */
export function jsonOf(kept: Kept<unknown>): string {
  return kept.json ?? stringifyJson(kept.value as Json);
}

export function putAway(kept: Kept<unknown>): void {
  kept.json = jsonOf(kept);
  kept.value = undefined;
}
