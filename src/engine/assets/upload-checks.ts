import { hasControlCharacter, hasHalfCharacter } from '../../protocol/control-characters.ts';
import { type AssetUpload, refuse, type Result } from '../../protocol/job-api.ts';

const MIN_EXPIRES_IN_S = 60;
const MAX_EXPIRES_IN_S = 604_800;
const MAX_FILE_PATH_CHARS = 1024;

/** Returns why an upload is refused, if it is. Nothing has been stored before this check. */
export function checkUpload(upload: AssetUpload): Result<never> | undefined {
  const { expectedHash, file } = upload;
  if (expectedHash !== undefined && expectedHash.toLowerCase() !== file.hash) {
    return refuse(409, 'hash_mismatch', 'the bytes do not have the expected hash');
  }
  return checkPathAndLifetime(upload);
}

/** Returns why a record with this path and lifetime is refused, if it is. */
export function checkPathAndLifetime(asset: {
  filePath?: string;
  expiresInSeconds?: number;
}): Result<never> | undefined {
  const { filePath, expiresInSeconds: seconds } = asset;
  if (filePath !== undefined && !isRelativePath(filePath))
    return invalid(
      'file_path must be a relative path without special segments and broken characters',
    );
  if (seconds === undefined) return undefined;
  if (Number.isInteger(seconds) && seconds >= MIN_EXPIRES_IN_S && seconds <= MAX_EXPIRES_IN_S)
    return undefined;
  const range = `${MIN_EXPIRES_IN_S} to ${MAX_EXPIRES_IN_S}`;
  return invalid(`expires_in must be a whole number of seconds from ${range}`);
}

function invalid(message: string): Result<never> {
  return refuse(422, 'invalid_request', message);
}

/**
 * True for a relative path. Some systems use the backslash as a separator, so it is refused like
 * the special segments.
 */
function isRelativePath(filePath: string): boolean {
  if (filePath.length > MAX_FILE_PATH_CHARS || filePath.includes('\\')) return false;
  // U+FFFD stands for bytes that are not UTF-8.
  const isBroken = hasHalfCharacter(filePath) || filePath.includes('\ufffd');
  if (isBroken || hasControlCharacter(filePath)) return false;
  return filePath.split('/').every((segment) => !['', '.', '..'].includes(segment));
}
