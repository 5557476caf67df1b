import { BLOB_HASH } from '../../blobs/blob-paths.ts';
import { type FileAsset, fileByHash } from '../../files/asset-catalog.ts';
import { isFileType, safeName } from '../../files/safe-name.ts';
import { type NewFile, storeUnderFreeName } from '../../files/store-file.ts';
import type { FileType } from '../../ledger/ledger.ts';
import { type Json, type JsonObject, parseJsonOrUndefined } from '../../protocol/json.ts';
import { contentName } from '../../protocol/upload-folders.ts';
import type { BodyReader } from '../../http/json-body.ts';
import type { Form } from '../../http/multipart.ts';
import type { UploadServices } from '../files/upload.ts';
import { textField, withForm } from '../files/upload-form.ts';
import type { V1Request } from '../routes.ts';
import { changeLabels, invalidBody, readLabels } from './asset-body.ts';
import { assetError } from './asset-error.ts';
import { splitTags } from './asset-filter.ts';
import type { ShownAssets } from './asset-json.ts';

/** Services of the assets API. */
export type AssetServices = Omit<UploadServices, 'catalog'> &
  ShownAssets & { readonly bodies: BodyReader };

/** An asset that a call made, or found. */
export type StoredAsset = { readonly asset: FileAsset; readonly isNew: boolean };

/** `POST /api/assets`: takes a file, or the hash of bytes that the user has already. */
export async function uploadAsset(
  services: AssetServices,
  request: V1Request,
): Promise<StoredAsset> {
  if (!request.ctx.is('multipart/form-data'))
    throw assetError('UNSUPPORTED_MEDIA_TYPE', 'Use multipart/form-data for uploads.');
  return await withForm(services.uploads, request, {
    async work(form) {
      const body = await labelsInForm(form);
      const part = form.files.find(({ field }) => field === 'file');
      const hash = readHash((await textField(form, 'hash')) ?? null);
      const known = await fileByHash(services.files, request.caller.user, hash);
      if (hash !== undefined && (known || !part))
        return await linkBytes(services, request, { ...body, hash });
      if (!part) throw assetError('MISSING_FILE', 'The form needs a file, or a known hash.');
      if (part.file.sizeBytes === 0) throw assetError('EMPTY_UPLOAD', 'The file is empty.');
      if (hash !== undefined && hash !== part.file.hash)
        throw assetError('HASH_MISMATCH', 'The file has another hash.');
      const file = { ...part.file, filename: part.filename };
      const named = { name: part.filename, ...body };
      return await storeAsset(services, request, { file, body: named });
    },
  });
}

/** `POST /api/assets/from-hash`: makes another asset of bytes that the user has already. */
export async function linkBytes(
  services: AssetServices,
  request: V1Request,
  body: JsonObject,
): Promise<StoredAsset> {
  const { user } = request.caller;
  const hash = readHash(body.hash);
  if (hash === undefined) throw invalidBody('hash is missing.');
  // The service may know the bytes of other users as well, so it is not asked.
  const known = await fileByHash(services.files, user, hash);
  if (known === undefined)
    throw assetError('ASSET_NOT_FOUND', 'You have no asset with this hash.', { hash });
  const file = { sizeBytes: known.sizeBytes, hash, filename: known.filename };
  return await storeAsset(services, request, { file, body });
}

/** Reads `blake3:` and 64 hex digits; `undefined` when there is none. */
export function readHash(value: Json | undefined): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  const hash = typeof value === 'string' ? value.trim().toLowerCase() : '';
  if (BLOB_HASH.test(hash)) return hash;
  throw assetError('INVALID_HASH', 'A hash is "blake3:" and 64 hex digits.');
}

type NewBytes = { readonly file: NamedFile; readonly body: JsonObject };
type NamedFile = NewFile['file'] & { readonly filename: string };

async function storeAsset(
  services: AssetServices,
  { caller }: V1Request,
  { file, body }: NewBytes,
): Promise<StoredAsset> {
  const { catalog } = services;
  const given = await readLabels(body, {
    catalog,
    user: caller.user,
    unknownPreview: () => invalidBody('preview_id names no asset.'),
  });
  const { name = file.filename, tags = [] } = given;
  const { row, isNew } = await storeUnderFreeName(services, {
    caller,
    type: typeOf(tags),
    subfolder: '',
    filename: safeName(name) ?? contentName(file.hash, file.filename),
    file,
    reuse: 'same bytes',
  });
  const hasLabels = name !== row.filename || Object.keys(given).some((label) => label !== 'name');
  if (!hasLabels) return { asset: await catalog.labelled(row), isNew };
  const asset = await changeLabels(catalog, row, (labels) => ({
    ...labels,
    ...given,
    name,
    tags: [...(labels.tags ?? []), ...tags],
  }));
  return { asset, isNew };
}

/** Returns the folder that the tags name. */
function typeOf(tags: readonly string[]): FileType {
  if (tags.includes('models')) throw invalidBody('This server stores no models.');
  if (tags.includes('input')) return 'input';
  return tags.find(isFileType) ?? 'input';
}

async function labelsInForm(form: Form): Promise<JsonObject> {
  const metadata = await textField(form, 'user_metadata');
  const name = await textField(form, 'name');
  const previewId = await textField(form, 'preview_id');
  return {
    tags: (form.fields.get('tags') ?? []).flatMap(tagsInField),
    ...(metadata && { user_metadata: parseJsonOrUndefined(metadata) ?? '' }),
    ...(name && { name: name.trim() }),
    ...(previewId !== undefined && { preview_id: previewId }),
  };
}

/** Reads one field: a JSON list, or a text with commas. */
function tagsInField(text: string): readonly Json[] {
  const list = text.trim().startsWith('[') ? parseJsonOrUndefined(text) : undefined;
  return Array.isArray(list) ? (list as readonly Json[]) : splitTags(text);
}
