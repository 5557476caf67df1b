import { type Json, parseJson, stringifyJson } from '../protocol/json.ts';

/**
 * A value that can be put away as its text and comes back when somebody looks: thousands of prompts
 * may wait, and a text is a fraction of what it says, and nothing for the collector to walk through.
 */
export type LazyJson<T> = { value: T | undefined; json: string | undefined };

/** `json`: its text, where it was written already. */
export function createLazyJson<T>(value: T, json?: string): LazyJson<T> {
  return { value, json };
}

export function readValue<T>(lazy: LazyJson<T>): T {
  lazy.value ??= parseJson(lazy.json ?? 'null') as T;
  return lazy.value;
}

export function setValue<T>(lazy: LazyJson<T>, value: T): void {
  if (value === lazy.value) return;
  lazy.value = value;
  lazy.json = undefined;
}

/** Keeps the text of a value that was written meanwhile, unless the value is another one by now. */
export function rememberJson<T>(lazy: LazyJson<T>, value: T, json: string): void {
  if (lazy.value === value) lazy.json = json;
}

/** Compact, every number as it was read. */
export function toJsonText(lazy: LazyJson<unknown>): string {
  return lazy.json ?? stringifyJson(lazy.value as Json);
}

export function unload(lazy: LazyJson<unknown>): void {
  lazy.json = toJsonText(lazy);
  lazy.value = undefined;
}
