import { type Json, type JsonObject, mapParts, stringifyJson } from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import type { Submitted } from './history.ts';

/** Shorter texts stay whole; of longer ones the beginning is kept. */
const WHOLE_CHARS = 1000;
const START_CHARS = 100;
const LEFT_OUT = 'The graph of this prompt is larger than history keeps; it is left out.';

/**
 * Returns the prompt as history shows it when graph and extra data take more than `limitBytes` as
 * JSON: with long texts shortened and, if that is still too much, without both.
 */
export function withinLimit(
  submitted: Submitted,
  { sizeBytes, limitBytes }: { readonly sizeBytes: number; readonly limitBytes: number },
): Submitted {
  if (sizeBytes <= limitBytes) return submitted;
  const graph = shortenTexts(submitted.graph as Json) as Graph;
  const extraData = shortenTexts(submitted.extraData) as JsonObject;
  const remainingBytes = Buffer.byteLength(stringifyJson([graph as Json, extraData]));
  if (remainingBytes <= limitBytes) return { ...submitted, graph, extraData };
  return { ...submitted, graph: {}, extraData: { holdover_left_out: LEFT_OUT } };
}

function shortenTexts(value: Json): Json {
  return typeof value === 'string' ? shortText(value) : mapParts(value, shortenTexts);
}

function shortText(text: string): string {
  if (text.length <= WHOLE_CHARS) return text;
  // Removes half a surrogate pair at the end.
  const start = text.slice(0, START_CHARS).replace(/[\uD800-\uDBFF]$/, '');
  return `${start}… (${text.length - start.length} more characters are left out of the history)`;
}
