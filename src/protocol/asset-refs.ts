import { type Json, type JsonObject, isJsonObject, mapParts } from './json.ts';

/** True for an object in the place of a file: an `AssetRef` with any content in `info`. */
export function isAssetRef(value: Json | undefined): boolean {
  return isJsonObject(value) && value['__type'] === 'core/ASSET';
}

/** Returns a text in the `info` of a reference. */
export function assetRefText(ref: Json, name: 'id' | 'hash' | 'file_path'): string | undefined {
  const info = isAssetRef(ref) ? (ref as JsonObject)['info'] : undefined;
  const text = isJsonObject(info) ? info[name] : undefined;
  return typeof text === 'string' ? text : undefined;
}

/** Adds the references in a value to a list; returns how many values it has searched. */
export function findAssetRefs(value: Json, found: JsonObject[]): number {
  if (!Array.isArray(value) && !isJsonObject(value)) return 1;
  if (isAssetRef(value)) {
    found.push(value as JsonObject);
    return 1;
  }
  let values = 1;
  for (const item of Object.values(value) as readonly Json[]) values += findAssetRefs(item, found);
  return values;
}

/** Returns the value with its references replaced. */
export function mapAssetRefs(value: Json, change: (ref: JsonObject) => Json): Json {
  if (isAssetRef(value)) return change(value as JsonObject);
  return mapParts(value, (part) => mapAssetRefs(part, change));
}
