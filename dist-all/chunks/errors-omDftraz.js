import { n as STORAGE_UNAVAILABLE_CODE } from "./storage-errors-D5OCISk9.js";
// src/upstreams/bucket/errors.ts
/**
* A call to a bucket that failed after all its retries. `code` is that of a full disk when the
* bucket has no space, so that callers get the same answer as with a folder.
*/
var BucketError = class extends Error {
	name = "BucketError";
	code;
	answer;
	constructor(message, options) {
		super(message, { cause: options.cause });
		this.answer = options.answer;
		this.code = isFull(options.answer) ? "ENOSPC" : STORAGE_UNAVAILABLE_CODE;
	}
};
/** The bytes of an object do not match its key. */
var WrongBytes = class extends Error {
	name = "WrongBytes";
};
const FULL_CODES = /* @__PURE__ */ new Set([
	"InsufficientStorage",
	"QuotaExceeded",
	"XMinioStorageFull"
]);
function isFull(answer) {
	return answer !== void 0 && (answer.status === 507 || FULL_CODES.has(answer.code));
}
/** The codes of temporary errors, and of errors that damage during the transfer causes. */
const PASSING_CODES = /* @__PURE__ */ new Set([
	"BadDigest",
	"ConditionalRequestConflict",
	"ExistingObjectIsDirectory",
	"InternalError",
	"RequestTimeout",
	"SlowDown",
	"ServiceUnavailable",
	"Throttling",
	"ThrottlingException",
	"TooManyRequests",
	"XAmzContentSHA256Mismatch",
	"OperationAborted"
]);
const PASSING_STATUSES = /* @__PURE__ */ new Set([
	408,
	429,
	500,
	502,
	503,
	504
]);
/** Returns true for a temporary error, after which the call may be repeated. */
function mayPass({ status, code }) {
	return PASSING_STATUSES.has(status) || PASSING_CODES.has(code);
}
const ABSENCE_CODES = /* @__PURE__ */ new Set([
	"",
	"NoSuchKey",
	"NoSuchUpload",
	"NotFound"
]);
/**
* Returns true when an object or an upload does not exist. A missing bucket or user is an error; the answer
* to HEAD does not tell which of these is missing.
*/
function isAbsence({ status, code }) {
	return status === 404 && ABSENCE_CODES.has(code);
}
const CREDENTIAL_CODES = /* @__PURE__ */ new Set([
	"ExpiredToken",
	"ExpiredTokenException",
	"InvalidAccessKeyId",
	"InvalidToken",
	"TokenRefreshRequired",
	"XAdminUserNotFound"
]);
/** Returns true when newer credentials may help. */
function isAboutCredentials({ code }) {
	return CREDENTIAL_CODES.has(code);
}
/** Returns why a bucket refuses, in words for the operator. */
function refusalTextOf(answer) {
	const { status, code, region } = answer;
	if (region !== void 0) return `it is in the region ${region}: set --s3-region ${region}`;
	const known = REASONS.get(code);
	return known === void 0 ? `it answers ${status}${code && ` ${code}`}` : `${known} (${code})`;
}
const REASONS = /* @__PURE__ */ new Map([
	["NoSuchBucket", "there is no such bucket"],
	["AccessDenied", "the credentials do not allow what Holdover needs there"],
	["SignatureDoesNotMatch", "the secret key is wrong"],
	["InvalidAccessKeyId", "the access key is not known there"],
	["XAdminUserNotFound", "the access key is not known there"],
	["ExpiredToken", "the credentials have expired"],
	["RequestTimeTooSkewed", "the clock of this machine is wrong"],
	["AuthorizationHeaderMalformed", "the region or the access key is wrong: see --s3-region"],
	["PermanentRedirect", "it is in another region: see --s3-region"]
]);
export { mayPass as a, isAbsence as i, WrongBytes as n, refusalTextOf as o, isAboutCredentials as r, BucketError as t };
