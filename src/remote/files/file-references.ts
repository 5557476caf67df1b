import { posix } from 'node:path';
import { assetRefText, isAssetRef, mapAssetRefs } from '../../protocol/asset-refs.ts';
import type { SubmitRequest } from '../../protocol/job-api.ts';
import { type Json, type JsonObject, isSameJson } from '../../protocol/json.ts';
import type { AssetRef, Graph } from '../../protocol/v2.ts';
import { type EngineFile, engineFileOf } from '../../protocol/engine-file.ts';
import type { UpstreamCapabilities } from '../capabilities.ts';

/** True when a submission has a file reference that could also be written as a path. */
export function hasFileRefs({ workflow }: SubmitRequest): boolean {
  return someRef(workflow, (ref) => filePathOf(ref) !== undefined);
}

/**
 * Returns the workflow with its files named as an upstream of this kind requires; the same object if
 * it names none.
 */
export function inAssetMode(workflow: Graph, mode: UpstreamCapabilities['assetMode']): Graph {
  const engineReferenceOf = (ref: Json) =>
    engineNameOf(ref) ?? (mode === 'string' ? filePathOf(ref) : undefined);
  return mapRefs(workflow, (ref) => engineReferenceOf(ref) ?? ref) as Graph;
}

/** Returns the workflow with `change` applied to the info of each file reference, if it has any. */
export function mapFileRefs(
  workflow: Graph,
  change: (info: AssetRef['info']) => AssetRef['info'],
): Graph {
  return mapRefs(workflow, (ref) => {
    const id = assetRefText(ref, 'id');
    if (id === undefined) return ref;
    const [hash, filePath] = [assetRefText(ref, 'hash'), assetRefText(ref, 'file_path')];
    const info = change({
      id,
      ...(hash !== undefined && { hash }),
      ...(filePath !== undefined && { file_path: filePath }),
    });
    return { ...(ref as JsonObject), info };
  }) as Graph;
}

/**
 * True when two workflows are the same submission. One server stores the names with which it
 * replaced file references, so a reference and a text count as equal.
 */
export function isSameWorkflow(sent: Json, stored: Json): boolean {
  return isSameJson(sent, stored, (one, other) =>
    isAssetRef(one) ? typeof other === 'string' || isAssetRef(other) : undefined,
  );
}

/** Changes the references. Most workflows name no file; they stay the same object. */
function mapRefs(workflow: Json, change: (ref: Json) => Json): Json {
  return someRef(workflow, isAssetRef) ? mapAssetRefs(workflow, change) : workflow;
}

/** True when a reference matches. Builds no list of members, since graphs are large. */
function someRef(value: Json, matches: (value: Json) => boolean): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value))
    return (value as readonly Json[]).some((item) => someRef(item, matches));
  if (matches(value)) return true;
  const members = value as JsonObject;
  for (const name in members) if (someRef(members[name] ?? null, matches)) return true;
  return false;
}

/**
 * Returns the engine's name of an output. The self-hosted server itself would replace an output's
 * id with the bare name.
 */
function engineNameOf(ref: Json): string | undefined {
  const file = engineFileOf(assetRefText(ref, 'id') ?? '');
  return file && annotatedName(file);
}

function filePathOf(value: Json): string | undefined {
  return assetRefText(value, 'file_path');
}

/**
 * Returns the name with its folder: without the folder a v1 engine would search among the uploads.
 */
function annotatedName({ name, subfolder, type }: EngineFile): string {
  return `${posix.join(subfolder, name)} [${type}]`;
}
