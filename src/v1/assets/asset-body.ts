import type Koa from 'koa';
import type { AssetCatalog, FileAsset, FileLabels } from '../../files/asset-catalog.ts';
import type { BodyReader } from '../../http/json-body.ts';
import { hasControlCharacter } from '../../protocol/control-characters.ts';
import { type Json, type JsonObject, isGiven, isJsonObject } from '../../protocol/json.ts';
import { readJsonOrUndefined } from '../routing/body.ts';
import { assetError } from './asset-error.ts';
import { splitTags } from './asset-filter.ts';

const MAX_NAME_CHARS = 512;
/** A tag that the original server manages itself. */
const SYSTEM_TAG = 'missing';

export async function readAssetBody(ctx: Koa.Context, bodies: BodyReader): Promise<JsonObject> {
  const body = await readJsonOrUndefined(ctx, bodies);
  if (body === undefined) throw assetError('INVALID_JSON', 'The body must be JSON.');
  if (!isJsonObject(body)) throw invalidBody('The body must be a JSON object.');
  return body;
}

type LabelReading = {
  readonly catalog: AssetCatalog;
  readonly user: string;
  /** Returns the error of a `preview_id` that names no asset. */
  readonly unknownPreview: (id: string) => Error;
};

/** Reads the labels in a body or a form. An absent label, and `null`, have no member in the result. */
export async function readLabels(body: JsonObject, reading: LabelReading): Promise<FileLabels> {
  const { name, tags, user_metadata: metadata, preview_id: previewId } = body;
  if (isGiven(name) && !isLabelText(name))
    throw invalidBody('name must be a short text without a control character.');
  if (isGiven(metadata) && !isJsonObject(metadata))
    throw invalidBody('user_metadata must be a JSON object.');
  if (isGiven(previewId)) await requireAsset(previewId, reading);
  return {
    ...(isGiven(name) && { name: name as string }),
    ...(isGiven(tags) && { tags: readTags(tags) }),
    ...(isGiven(metadata) && { metadata }),
    ...(isGiven(previewId) && { previewId: previewId as string }),
  };
}

/** Reads a list of tags, or a text with commas. */
export function readTags(value: Json | undefined): readonly string[] {
  const listed = typeof value === 'string' ? splitTags(value) : value;
  const isList = Array.isArray(listed) && (listed as readonly Json[]).every(isLabelText);
  if (!isList) throw invalidBody('tags must be a list of short texts without a control character.');
  const tags = (listed as readonly string[]).map((tag) => tag.trim()).filter((tag) => tag !== '');
  if (!tags.includes(SYSTEM_TAG)) return [...new Set(tags)];
  const message = 'This tag is set by the server.';
  throw assetError('SYSTEM_TAG_FORBIDDEN', message, { tag: SYSTEM_TAG });
}

export function invalidBody(message: string): Error {
  return assetError('INVALID_BODY', message);
}

export async function changeLabels(
  catalog: AssetCatalog,
  row: FileAsset['row'],
  changed: (labels: FileLabels) => FileLabels,
): Promise<FileAsset> {
  const asset = await catalog.change(row, changed);
  if (asset === undefined) throw invalidBody('There is no room for these labels.');
  return asset;
}

async function requireAsset(
  id: Json,
  { catalog, user, unknownPreview }: LabelReading,
): Promise<void> {
  if (typeof id !== 'string') throw invalidBody('preview_id must be the id of an asset.');
  if (!(await catalog.find(user, id))) throw unknownPreview(id);
}

function isLabelText(value: Json): boolean {
  return typeof value === 'string' && value.length <= MAX_NAME_CHARS && !hasControlCharacter(value);
}
