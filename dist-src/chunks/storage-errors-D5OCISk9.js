// src/lib/storage-errors.ts
const FULL_CODES = /* @__PURE__ */ new Set(["ENOSPC", "EDQUOT"]);
/** SQLITE_FULL, and SQLITE_IOERR_SHMSIZE: no space for the index of its log. */
const SQLITE_FULL_CODES = /* @__PURE__ */ new Set([13, 4874]);
/** The error texts of a Redis whose memory or disk is full. */
const REDIS_FULL_MESSAGE = /^(OOM|MISCONF) /;
const MAX_CAUSES = 8;
/** The text for the caller. */
const STORAGE_FULL = "There is no room left on the storage of this server.";
/**
* True when an error, or one of its causes, means that the disk, the quota or the ledger is full.
*/
function isStorageFull(error) {
	let cause = error;
	for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
		const { code, errcode, message } = cause;
		if (FULL_CODES.has(code) || SQLITE_FULL_CODES.has(errcode) || REDIS_FULL_MESSAGE.test(message)) return true;
		cause = cause.cause;
	}
	return false;
}
/** The `code` of errors that mean that the store of files cannot be reached, or refuses for now. */
const STORAGE_UNAVAILABLE_CODE = "STORAGE_UNAVAILABLE";
/**
* True when an error, or one of its causes, means that the store of files is unavailable for now.
*/
function isStorageUnavailable(error) {
	let cause = error;
	for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
		if (cause.code === "STORAGE_UNAVAILABLE") return true;
		cause = cause.cause;
	}
	return false;
}
const FULL = {
	status: 507,
	code: "insufficient_storage",
	message: STORAGE_FULL
};
const AWAY = {
	status: 503,
	code: "storage_unavailable",
	message: "The storage of this server cannot be reached right now. Please try again.",
	retryAfterSeconds: 5
};
/** Returns the problem; `undefined`: the error is not one of the storage. */
function storageProblem(error) {
	if (isStorageUnavailable(error)) return AWAY;
	return isStorageFull(error) ? FULL : void 0;
}
/** The error texts of the client of Redis, and of a cluster, while a Redis is unavailable. */
const REDIS_AWAY_MESSAGE = /Command timed out|Connection is closed|max retries per request|Failed to refresh slots|^(CLUSTERDOWN|LOADING|TRYAGAIN) /;
/**
* True when an error, or one of its causes, means that a ledger in Redis is unavailable for now.
*/
function isRedisAway(error) {
	let cause = error;
	for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
		if (REDIS_AWAY_MESSAGE.test(cause.message)) return true;
		cause = cause.cause;
	}
	return false;
}
export { isStorageUnavailable as a, isStorageFull as i, STORAGE_UNAVAILABLE_CODE as n, storageProblem as o, isRedisAway as r, STORAGE_FULL as t };
