const FULL_CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);
/** SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: no space for the index of its log. */
const SQLITE_FULL_CODES: ReadonlySet<unknown> = new Set([13, 4874]);
/** The error texts of a Redis whose memory or disk is full. */
const REDIS_FULL_MESSAGE = /^(OOM|MISCONF) /;
const MAX_CAUSES = 8;

/** The text for the caller. */
export const STORAGE_FULL = 'There is no room left on the storage of this server.';

/** True when this holds for an error or one of its causes. */
function isCausedBy(error: unknown, isCause: (cause: Error) => boolean): boolean {
  let cause = error;
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
    if (isCause(cause)) return true;
    cause = cause.cause;
  }
  return false;
}

/** True when an error means that the disk, the quota or the ledger is full. */
export function isStorageFull(error: unknown): boolean {
  return isCausedBy(error, (cause) => {
    const { code, errcode, message } = cause as { code?: unknown; errcode?: unknown } & Error;
    return (
      FULL_CODES.has(code) || SQLITE_FULL_CODES.has(errcode) || REDIS_FULL_MESSAGE.test(message)
    );
  });
}

/** The `code` of errors that mean that the store of files cannot be reached, or refuses for now. */
export const STORAGE_UNAVAILABLE_CODE: string = 'STORAGE_UNAVAILABLE';

/** True when an error means that the store of files is unavailable for now. */
export function isStorageUnavailable(error: unknown): boolean {
  return isCausedBy(
    error,
    (cause) => (cause as { code?: unknown }).code === STORAGE_UNAVAILABLE_CODE,
  );
}

/** An error of the storage as it is reported to a caller. */
type StorageProblem = {
  readonly status: number;
  readonly code: 'insufficient_storage' | 'storage_unavailable';
  readonly message: string;
  readonly retryAfterSeconds?: number;
};

const FULL: StorageProblem = { status: 507, code: 'insufficient_storage', message: STORAGE_FULL };
const AWAY: StorageProblem = {
  status: 503,
  code: 'storage_unavailable',
  message: 'The storage of this server cannot be reached right now. Please try again.',
  retryAfterSeconds: 5,
};

/** Returns the problem; `undefined`: the error is not one of the storage. */
export function storageProblem(error: unknown): StorageProblem | undefined {
  if (isStorageUnavailable(error)) return AWAY;
  return isStorageFull(error) ? FULL : undefined;
}

/** The error texts of Redis and of its client while Redis is unavailable. */
const REDIS_AWAY_MESSAGE =
  /Command timed out|Connection is closed|max retries per request|^LOADING /;

/** True when an error means that a ledger in Redis is unavailable for now. */
export function isRedisAway(error: unknown): boolean {
  return isCausedBy(error, ({ message }) => REDIS_AWAY_MESSAGE.test(message));
}
