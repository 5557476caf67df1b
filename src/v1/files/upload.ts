import { readFile, rm } from 'node:fs/promises';
import { posix } from 'node:path';
import type Koa from 'koa';
import type { FileRow, FileStore } from '../../ledger/ledger.ts';
import { spoolBytes } from '../../lib/spool.ts';
import type { Caller } from '../../protocol/job-api.ts';
import { rulesFor } from '../../dialects/dialect.ts';
import { sendJson, requirePrintable } from '../../dialects/errors.ts';
import {
  type FileStoringServices,
  type NewFile,
  contentTypeFor,
  storeUnderFreeName,
  storeAs,
} from '../../files/store-file.ts';
import { toV1FileError } from '../../dialects/file-error.ts';
import { summaryJson } from '../assets/asset-json.ts';
import {
  type AssetCatalog,
  type FileAsset,
  type FileLabels,
  tagsOf,
  newestNamed,
} from '../../files/asset-catalog.ts';
import type { Drawing, Pictures } from '../../files/pictures.ts';
import type { Form } from '../../http/multipart.ts';
import type { V1Request } from '../routes.ts';
import { parseAnnotation, isFileType, splitPath, withinRoot } from '../../files/safe-name.ts';
import type { FormLimits } from '../../http/received-form.ts';
import {
  type UploadRequest,
  readUploadRequest,
  uploadError,
  textField,
  withForm,
} from './upload-form.ts';
import { readImageBytes } from '../../files/asset-content.ts';
import { disconnectSignal } from '../../http/client-connection.ts';
import { parseObject } from '../../protocol/json.ts';
import { toLookupPath } from '../../protocol/v1.ts';

/** Services of the upload routes. */
export type UploadServices = FileStoringServices & {
  readonly uploads: FormLimits;
  readonly pictures: Pictures;
  /** `undefined`: the assets API is switched off. */
  readonly catalog: AssetCatalog | undefined;
};

/** `POST /upload/image`: takes any file, despite the name. */
export async function uploadImage(services: UploadServices, request: V1Request): Promise<void> {
  const { ctx, caller } = request;
  await withForm(services.uploads, request, {
    sentAs: ({ field, filename }) => (field === 'image' ? contentTypeFor(filename) : undefined),
    async work(form, startedOf) {
      const upload = await readUploadRequest(services.files, request, form);
      const started = startedOf(upload.file);
      const file = { ...upload, caller, started, reuse: 'same bytes' } as const;
      await sendStored(services, { ctx, upload }, await storeUpload(services, upload, file));
    },
  });
}

/** `POST /upload/mask`: stores the original picture with the alpha of the mask. */
export async function uploadMask(services: UploadServices, request: V1Request): Promise<void> {
  const { ctx, caller } = request;
  const work = async (form: Form): Promise<void> => {
    const upload = await readUploadRequest(services.files, request, form);
    const text = (await textField(form, 'original_ref')) ?? (await textField(form, 'originalRef'));
    const ref = text === undefined ? undefined : readOriginalRef(text);
    if (ref === undefined) throw uploadError('original_ref must be JSON that names a file.');
    const original = await findOriginal(services.files, request, ref);
    if (original === undefined) throw uploadError('original_ref names a file that does not exist.');
    const signal = disconnectSignal(ctx.res);
    const row = await storeMask(services, { caller, upload, original, signal });
    await sendStored(services, { ctx, upload }, row);
  };
  await withForm(services.uploads, request, { work });
}

type MaskUpload = {
  readonly caller: Caller;
  readonly upload: UploadRequest;
  readonly original: FileRow;
  readonly signal: AbortSignal;
};

async function storeMask(services: UploadServices, mask: MaskUpload): Promise<FileRow> {
  const { caller, upload } = mask;
  const picture = await services.pictures.draw(caller.user, () => readDrawing(services, mask));
  if (!picture.ok) throw uploadError(picture.reason);
  const file = await spoolBytes(picture.bytes, { dir: services.uploads.spoolDir });
  try {
    return await storeUpload(services, upload, { ...upload, file, caller, reuse: 'never' });
  } finally {
    await rm(file.path, { force: true });
  }
}

async function readDrawing(
  services: UploadServices,
  { caller, upload, original, signal }: MaskUpload,
): Promise<Drawing> {
  const bytes = await readImageBytes(services.jobs, { caller, assetId: original.assetId, signal });
  if (!bytes.ok) throw toV1FileError(bytes.error);
  return { how: { as: 'masked' }, files: [bytes.value, await readFile(upload.file.path)] };
}

async function findOriginal(
  files: FileStore,
  { ctx, caller: { user } }: V1Request,
  ref: OriginalRef,
): Promise<FileRow | undefined> {
  for (const text of [ref.filename, ref.subfolder, ref.type])
    requirePrintable(text, 'original_ref');
  const { name, type = ref.type } = parseAnnotation(ref.filename);
  if (!isFileType(type) || name.startsWith('/') || name.includes('..')) return undefined;
  const path = splitPath(toLookupPath(name));
  const subfolder = withinRoot(posix.join(toLookupPath(ref.subfolder), path.folder));
  const named = { type, subfolder: subfolder ?? '', filename: path.name };
  const row = subfolder === undefined ? undefined : await files.get(user, named);
  const ignoresFolders = rulesFor(ctx).subfolder === 'ignored';
  return row === undefined && ignoresFolders ? newestNamed(files, user, named) : row;
}

async function storeUpload(
  services: UploadServices,
  { overwrite }: UploadRequest,
  file: NewFile,
): Promise<FileRow> {
  return overwrite ? await storeAs(services, file) : (await storeUnderFreeName(services, file)).row;
}

async function sendStored(
  { catalog }: UploadServices,
  { ctx, upload }: { readonly ctx: Koa.Context; readonly upload: UploadRequest },
  row: FileRow,
): Promise<void> {
  const { shown, type } = upload;
  const body = { name: shown.folder + row.filename, subfolder: shown.subfolder, type };
  if (catalog === undefined) return sendJson(ctx, body);
  sendJson(ctx, { ...body, asset: summaryJson(await uploadedAsset(catalog, row)) });
}

/** The tags of an upload to each folder, beside those that follow from the folder. */
const UPLOAD_TAGS = {
  input: [],
  output: ['uploaded'],
  temp: ['input', 'uploaded'],
} as const satisfies Record<FileRow['type'], readonly string[]>;

async function uploadedAsset(catalog: AssetCatalog, row: FileRow): Promise<FileAsset> {
  const asset = await catalog.labelled(row);
  const before = tagsOf(asset);
  const tags = UPLOAD_TAGS[row.type].filter((tag) => !before.includes(tag));
  if (tags.length === 0) return asset;
  const withTags = (labels: FileLabels): FileLabels => ({
    ...labels,
    tags: [...(labels.tags ?? []), ...tags],
  });
  return (await catalog.change(row, withTags)) ?? asset;
}

/**
 * The picture that a mask belongs to, as `original_ref` names it. `type` is the text that was sent.
 */
type OriginalRef = {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
};

/**
 * Reads `original_ref`. An absent folder means the root, an absent type means `output`.
 * @internal
 */
export function readOriginalRef(text: string): OriginalRef | undefined {
  const ref = parseObject(text);
  if (ref === undefined) return undefined;
  const { filename, subfolder = '', type = 'output' } = ref;
  if (typeof filename !== 'string' || typeof subfolder !== 'string') return undefined;
  // Any other type has no folder, like an unknown word.
  return { filename, subfolder, type: typeof type === 'string' ? type : '' };
}
