import { STORAGE_UNAVAILABLE_CODE } from '../../lib/storage-errors.ts';

/** The members of an error of the AWS SDK that say why a call failed. */
type SdkError = Error & {
  readonly code?: string;
  /** Absent in errors that have nothing to do with an answer or a connection, such as those of a local file. */
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number };
};

/**
 * A call to a bucket that failed after all its retries. `code` is that of a full disk when the
 * bucket has no space, so that callers get the same answer as with a folder. The error of the SDK
 * is not its cause: it has parts of the signed request.
 */
export class BucketError extends Error {
  override readonly name = 'BucketError';
  readonly code: string;
  /** An object or an upload does not exist. */
  readonly isAbsence: boolean;
  /** An object that had to be new exists. */
  readonly isConflict: boolean;
  /** An earlier attempt may have succeeded with its answer lost. */
  readonly isRepeated: boolean;

  constructor(message: string, { name, $metadata }: Partial<SdkError> = {}) {
    super(message);
    const { httpStatusCode, attempts = 1 } = $metadata ?? {};
    const isFull = httpStatusCode === 507 || FULL_NAMES.has(name);
    this.code = isFull ? 'ENOSPC' : STORAGE_UNAVAILABLE_CODE;
    this.isAbsence = httpStatusCode === 404 && ABSENCE_NAMES.has(name);
    this.isConflict = httpStatusCode === 412;
    this.isRepeated = attempts > 1;
  }
}

const FULL_NAMES: ReadonlySet<unknown> = new Set(['QuotaExceeded', 'XMinioStorageFull']);

/** A missing bucket or user is an error; the answer to HEAD does not tell which of these is missing. */
const ABSENCE_NAMES: ReadonlySet<unknown> = new Set(['NoSuchKey', 'NoSuchUpload', 'NotFound']);

/** Returns the error to throw for an error of a call. */
export function toBucketError(cause: unknown, call: string): unknown {
  const error = cause as SdkError;
  const { name, message, code = name, $metadata } = error;
  const text = `${message.split('\n')[0]} (${code})`;
  if (name === 'CredentialsProviderError')
    return new BucketError(`there are ${NO_CREDENTIALS}: ${text}`);
  if ($metadata === undefined) return cause;
  const status = $metadata.httpStatusCode;
  if (status === undefined) return new BucketError(`${call} had no answer: ${text}`);
  return new BucketError(`${call} was refused with ${status}: ${text}`, error);
}

const NO_CREDENTIALS =
  'no credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role)';
