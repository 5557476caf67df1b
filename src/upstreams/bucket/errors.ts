import { STORAGE_UNAVAILABLE_CODE } from '../../lib/storage-errors.ts';

/** A refusal of a bucket. */
export type BucketAnswer = {
  readonly status: number;
  /** The code of the error as S3 names it; an empty text when the answer has none. */
  readonly code: string;
  /** The region in which the bucket says it is. */
  readonly region?: string | undefined;
  /** The time of the bucket's clock. */
  readonly date?: string;
};

/**
 * A call to a bucket that failed after all its retries. `code` is that of a full disk when the
 * bucket has no space, so that callers get the same answer as with a folder.
 */
export class BucketError extends Error {
  override readonly name = 'BucketError';
  readonly code: string;
  readonly answer: BucketAnswer | undefined;

  constructor(message: string, options: { readonly answer?: BucketAnswer; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.answer = options.answer;
    this.code = isFull(options.answer) ? 'ENOSPC' : STORAGE_UNAVAILABLE_CODE;
  }
}

/** The bytes of an object do not match its key. */
export class WrongBytes extends Error {
  override readonly name = 'WrongBytes';
}

const FULL_CODES: ReadonlySet<string> = new Set([
  'InsufficientStorage',
  'QuotaExceeded',
  'XMinioStorageFull',
]);

function isFull(answer: BucketAnswer | undefined): boolean {
  return answer !== undefined && (answer.status === 507 || FULL_CODES.has(answer.code));
}

/** The codes of temporary errors, and of errors that damage during the transfer causes. */
const PASSING_CODES: ReadonlySet<string> = new Set([
  'BadDigest',
  // Another call for the same key was in progress.
  'ConditionalRequestConflict',
  // versitygw sends this for a key that is not a folder: another call has just removed the last
  // object of its folder.
  'ExistingObjectIsDirectory',
  'InternalError',
  'RequestTimeout',
  'SlowDown',
  'ServiceUnavailable',
  'Throttling',
  'ThrottlingException',
  'TooManyRequests',
  'XAmzContentSHA256Mismatch',
  'OperationAborted',
]);
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Returns true for a temporary error, after which the call may be repeated. */
export function mayPass({ status, code }: BucketAnswer): boolean {
  return PASSING_STATUSES.has(status) || PASSING_CODES.has(code);
}

const ABSENCE_CODES: ReadonlySet<string> = new Set(['', 'NoSuchKey', 'NoSuchUpload', 'NotFound']);

/**
 * Returns true when an object or an upload does not exist. A missing bucket or user is an error; the answer
 * to HEAD does not tell which of these is missing.
 */
export function isAbsence({ status, code }: BucketAnswer): boolean {
  return status === 404 && ABSENCE_CODES.has(code);
}

const CREDENTIAL_CODES: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidAccessKeyId',
  'InvalidToken',
  'TokenRefreshRequired',
  'XAdminUserNotFound',
]);

/** Returns true when newer credentials may help. */
export function isAboutCredentials({ code }: BucketAnswer): boolean {
  return CREDENTIAL_CODES.has(code);
}

/** Returns why a bucket refuses, in words for the operator. */
export function refusalTextOf(answer: BucketAnswer): string {
  const { status, code, region } = answer;
  if (region !== undefined) return `it is in the region ${region}: set AWS_REGION=${region}`;
  const known = REASONS.get(code);
  return known === undefined ? `it answers ${status}${code && ` ${code}`}` : `${known} (${code})`;
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['NoSuchBucket', 'there is no such bucket'],
  ['AccessDenied', 'the credentials do not allow what Holdover needs there'],
  ['SignatureDoesNotMatch', 'the secret key is wrong'],
  ['InvalidAccessKeyId', 'the access key is not known there'],
  ['XAdminUserNotFound', 'the access key is not known there'],
  ['ExpiredToken', 'the credentials have expired'],
  ['RequestTimeTooSkewed', 'the clock of this machine is wrong'],
  ['AuthorizationHeaderMalformed', 'the region or the access key is wrong: see AWS_REGION'],
  ['PermanentRedirect', 'it is in another region: see AWS_REGION'],
]);
