import { type Json, parseJson, stringifyJson } from '../protocol/json.ts';

/**
 * A value that can be unloaded to its JSON and is parsed again when it is read. Thousands of
 * prompts may wait: JSON takes a fraction of the memory, and no work of the garbage collector.
 */
export type LazyJson<T> = { value: T | undefined; json: string | undefined };

/** `json`: the JSON of the value, if it exists already. */
export function createLazyJson<T>(value: T | undefined, json?: string): LazyJson<T> {
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

/** Stores the JSON of a value, unless the value was replaced meanwhile. */
export function rememberJson<T>(lazy: LazyJson<T>, value: T, json: string): void {
  if (lazy.value === value) lazy.json = json;
}

/** Returns compact JSON, with every number as it was read. */
export function toJsonText(lazy: LazyJson<unknown>): string {
  return lazy.json ?? stringifyJson(lazy.value as Json);
}

export function unload(lazy: LazyJson<unknown>): void {
  lazy.json = toJsonText(lazy);
  lazy.value = undefined;
}
