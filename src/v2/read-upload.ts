import { BLOB_HASH } from '../blobs/blob-paths.ts';
import type { Form } from '../http/multipart.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { type AssetUpload, type JobApi, type Result, ok, refuse } from '../protocol/job-api.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import { refuseControlCharacter } from './read-body.ts';
import { badField } from './reply.ts';

const MEDIA_TYPE = /^[\w.+-]{1,64}\/[\w.+-]{1,64}(\s*;[\x20-\x7e]{0,128})?$/;

type FromHash = Parameters<JobApi['assetFromHash']>[1];

/** Reads the body of `POST /assets/from-hash`. */
export function readFromHash(body: JsonObject): Result<FromHash> {
  const { hash } = body;
  const unprintable = ['hash', 'file_path', 'tags'].find((name) =>
    hasControlCharacters(body[name]),
  );
  if (unprintable !== undefined) return refuseControlCharacter(unprintable);
  // Clients send null for a field they leave out.
  const { file_path: filePath, tags, expires_in: expiresIn } = withoutNulls(body);
  if (typeof hash !== 'string' || !BLOB_HASH.test(hash)) {
    return badField('"hash" must be blake3:<64 hex digits>.');
  }
  if (!isOptional(filePath, (value) => typeof value === 'string'))
    return badField('"file_path" must be a string.');
  if (!isOptional(tags, isTexts)) return badField('"tags" must be a list of strings.');
  if (!isOptional(expiresIn, (value) => typeof value === 'number')) {
    return badField('"expires_in" must be a number of seconds.');
  }
  return ok({
    hash,
    ...(filePath !== undefined && { filePath }),
    ...(tags && { tags }),
    ...(expiresIn !== undefined && { expiresInSeconds: expiresIn }),
  });
}

/** Reads the form of `POST /assets`. */
export function readUpload({ fields, files }: Form): Result<AssetUpload> {
  const [file] = files;
  const unprintable = [...fields].find(([name, values]) => hasControlCharacters([name, ...values]));
  if (unprintable) return refuseControlCharacter(unprintable[0]);
  if (!file || files.length > 1 || file.field !== 'file')
    return badField('Send exactly one file, in the field "file".');
  const contentType = soleField(fields, 'content_type');
  if (contentType === undefined || !MEDIA_TYPE.test(contentType))
    return badField('"content_type" must be a media type.');
  const filePath = soleField(fields, 'file_path');
  if (filePath === undefined || filePath === '') return badField('"file_path" is required.');
  const expectedHash = soleField(fields, 'expected_hash')?.toLowerCase();
  if (expectedHash !== undefined && !BLOB_HASH.test(expectedHash)) {
    // No bytes have this hash, so the contract's answer to a hash that differs from that of the
    // bytes fits.
    const message = '"expected_hash" must be blake3:<64 hex digits>: no bytes have this one.';
    return refuse(409, 'hash_mismatch', message);
  }
  const expiresIn = soleField(fields, 'expires_in');
  if (expiresIn !== undefined && !/^\d{1,9}$/.test(expiresIn)) {
    return badField('"expires_in" must be a whole number of seconds.');
  }
  const tags = fields.get('tags');
  return ok({
    file: file.file,
    contentType,
    filePath,
    ...(tags && { tags }),
    ...(expectedHash !== undefined && { expectedHash }),
    ...(expiresIn !== undefined && { expiresInSeconds: Number(expiresIn) }),
  });
}

/** Returns the value of a field. When a field is sent twice, the last value counts. */
function soleField(fields: Form['fields'], name: string): string | undefined {
  return fields.get(name)?.at(-1);
}

function withoutNulls(body: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

function isOptional<T extends Json>(
  value: Json | undefined,
  is: (value: Json) => value is T,
): value is T | undefined {
  return value === undefined || is(value);
}

function hasControlCharacters(value: Json | readonly string[] | undefined): boolean {
  if (Array.isArray(value)) return value.some((item) => hasControlCharacters(item as Json));
  return typeof value === 'string' && hasControlCharacter(value);
}

function isTexts(value: Json): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
