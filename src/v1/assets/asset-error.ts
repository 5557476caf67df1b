import { V1Error } from '../../dialects/errors.ts';
import type { JsonObject } from '../../protocol/json.ts';

/** The codes of the assets API, with their statuses. Clients branch on them. */
const STATUS_OF_CODE = {
  ASSET_NOT_FOUND: 404,
  CONFLICT: 409,
  EMPTY_UPLOAD: 400,
  HASH_MISMATCH: 400,
  INVALID_BODY: 400,
  INVALID_CURSOR: 400,
  INVALID_HASH: 400,
  INVALID_JSON: 400,
  INVALID_QUERY: 400,
  INVALID_TAG_FILTER: 400,
  MISSING_FILE: 400,
  SERVICE_DISABLED: 503,
  SYSTEM_TAG_FORBIDDEN: 400,
  UNSUPPORTED_MEDIA_TYPE: 415,
  UNSUPPORTED_PARAM: 400,
} as const satisfies { readonly [code: string]: number };

/** Returns an error of the assets API, whose bodies have a form of their own. */
export function assetError(
  code: keyof typeof STATUS_OF_CODE,
  message: string,
  details: JsonObject = {},
): V1Error {
  const localBody = { error: { code, message, details } };
  return new V1Error(STATUS_OF_CODE[code], { code, message, localBody });
}

export function assetNotFound(id: string): V1Error {
  return assetError('ASSET_NOT_FOUND', 'There is no such asset.', { id });
}
