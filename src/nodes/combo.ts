import type { JsonObject } from '../protocol/json.ts';

/** Declares an input that is one of several texts, in the newer style. */
export function combo(
  options: readonly string[],
  settings: JsonObject = {},
): readonly ['COMBO', JsonObject] {
  return ['COMBO', { ...settings, multiselect: false, options }];
}
