import { readFileSync } from 'node:fs';
import { packageUrl } from '../lib/package-url.ts';
import { parseJson } from '../protocol/json.ts';
import type { ObjectInfo } from '../protocol/v1.ts';

/**
 * Reads the classes of text-to-image graphs, as a v1 server without a model describes them.
 * Programs read the names of samplers and models from these. A graph with one of them is refused,
 * as such a server refuses it.
 */
export function readModelClasses(): ObjectInfo {
  const text = readFileSync(packageUrl('fixtures/model-classes.json'), 'utf8');
  return parseJson(text) as ObjectInfo;
}
