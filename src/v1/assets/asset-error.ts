import { V1Error } from '../../dialects/errors.ts';
import type { JsonObject } from '../../protocol/json.ts';

/** The statuses of codes whose status is not 400. Clients branch on the codes. */
const STATUS_OF_CODE: { readonly [code: string]: number } = {
  ASSET_NOT_FOUND: 404,
  CONFLICT: 409,
  SERVICE_DISABLED: 503,
  UNSUPPORTED_MEDIA_TYPE: 415,
};

/** Returns an error of the assets API, whose bodies have a form of their own. */
export function assetError(code: string, message: string, details: JsonObject = {}): V1Error {
  const localBody = { error: { code, message, details } };
  return new V1Error(STATUS_OF_CODE[code] ?? 400, { code, message, localBody });
}

export function assetNotFound(id: string): V1Error {
  return assetError('ASSET_NOT_FOUND', 'There is no such asset.', { id });
}
