import { type Json, isJsonObject, stringifyJson } from '../wire/json.ts';
import type { Graph } from '../wire/v2.ts';
import type { Facts } from './facts.ts';

/** Whether a workflow names a file by a reference that could also be written as its path. */
export function hasFileRefs(value: Json): boolean {
  if (Array.isArray(value)) return (value as readonly Json[]).some(hasFileRefs);
  if (!isJsonObject(value)) return false;
  return filePathOf(value) !== undefined || Object.values(value).some(hasFileRefs);
}

/** The workflow as an upstream of this kind wants its files named. */
export function inAssetMode(workflow: Graph, mode: Facts['assetMode']): Graph {
  return mode === 'string' ? (withPaths(workflow) as Graph) : workflow;
}

/**
 * Whether two workflows are the same submission. One server keeps the names it put in place of
 * file references, so a reference and a text count as equal.
 */
export function isSameWorkflow(sent: Json, kept: Json): boolean {
  if (isFileRef(sent)) return typeof kept === 'string' || isFileRef(kept);
  if (Array.isArray(sent)) {
    const items = sent as readonly Json[];
    return (
      Array.isArray(kept) &&
      kept.length === items.length &&
      items.every((item, i) => isSameWorkflow(item, (kept as readonly Json[])[i] ?? null))
    );
  }
  if (!isJsonObject(sent)) return stringifyJson(sent) === stringifyJson(kept);
  if (!isJsonObject(kept)) return false;
  const keys = Object.keys(sent);
  return (
    keys.length === Object.keys(kept).length &&
    keys.every((key) => key in kept && isSameWorkflow(sent[key] ?? null, kept[key] ?? null))
  );
}

function withPaths(value: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map(withPaths);
  if (!isJsonObject(value)) return value;
  const filePath = filePathOf(value);
  if (filePath !== undefined) return filePath;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withPaths(item)]));
}

function isFileRef(value: Json): boolean {
  return isJsonObject(value) && value['__type'] === 'core/ASSET';
}

function filePathOf(value: Json): string | undefined {
  if (!isJsonObject(value) || value['__type'] !== 'core/ASSET') return undefined;
  const { info } = value;
  const filePath = isJsonObject(info) ? info['file_path'] : undefined;
  return typeof filePath === 'string' ? filePath : undefined;
}
