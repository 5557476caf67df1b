// src/protocol/error-codes.ts
/**
* Every error code of v2: the codes of the contract in its order, then others that services use,
* then those of this server that v1 passes on unchanged.
*
* To add a code, add a row here. A code that this server refuses with is given to `refuse(status,
* code, message)`, which takes no other codes. `upstreams/remote-calls/errors.ts` reads the codes
* of services; the status decides the meaning of a code without a row.
*
* v1 clients read 429 as "subscription not active", so a wait is answered with 503.
*/
const ERROR_CODES = {
	invalid_workflow: {
		v1Status: 400,
		v1Type: "prompt_outputs_failed_validation"
	},
	workflow_format_ui: {
		v1Status: 400,
		v1Type: "invalid_prompt",
		isNotAboutFiles: true
	},
	missing_asset: {
		v1Status: 400,
		v1Type: "prompt_outputs_failed_validation"
	},
	hash_mismatch: {
		v1Status: 500,
		v1Type: "hash_mismatch",
		v1FileStatus: 502
	},
	blob_not_found: {
		v1Status: 404,
		v1Type: "not_found"
	},
	idempotency_key_reuse: {
		v1Status: 500,
		v1Type: "outcome_unknown",
		isNotAboutContent: true,
		isNotAboutFiles: true
	},
	queue_full: {
		v1Status: 503,
		v1Type: "queue_full",
		lacksCapacity: true,
		isOfOneCall: true
	},
	insufficient_credits: {
		v1Status: 402,
		v1Type: "insufficient_credits"
	},
	not_found: {
		v1Status: 404,
		v1Type: "not_found"
	},
	unauthorized: {
		v1Status: 401,
		v1Type: "unauthorized"
	},
	forbidden: {
		v1Status: 403,
		v1Type: "forbidden"
	},
	rate_limited: {
		v1Status: 503,
		v1Type: "rate_limited",
		lacksCapacity: true
	},
	deployment_not_ready: {
		v1Status: 503,
		v1Type: "deployment_not_ready",
		lacksCapacity: true,
		isOfOneCall: true
	},
	deployment_stopped: {
		v1Status: 503,
		v1Type: "deployment_stopped",
		isNotAboutContent: true,
		isNotAboutFiles: true
	},
	upstream_error: {
		v1Status: 500,
		v1Type: "upstream_error"
	},
	upstream_unreachable: {
		v1Status: 503,
		v1Type: "upstream_unreachable",
		v1FileStatus: 502
	},
	sso_required: {
		v1Status: 403,
		v1Type: "sso_required"
	},
	forbidden_origin: {
		v1Status: 403,
		v1Type: "forbidden_origin"
	},
	payload_too_large: {
		v1Status: 400,
		v1Type: "payload_too_large"
	},
	invalid_body: {
		v1Status: 400,
		v1Type: "invalid_prompt"
	},
	invalid_request: {
		v1Status: 400,
		v1Type: "invalid_prompt"
	},
	metadata_not_supported: {
		v1Status: 500,
		v1Type: "metadata_not_supported"
	},
	output_unavailable: {
		v1Status: 404,
		v1Type: "not_found"
	},
	too_many_streams: {
		v1Status: 503,
		v1Type: "too_many_streams",
		isOfOneCall: true
	},
	asset_in_use: {},
	bad_upstream_response: {
		v1Status: 502,
		v1FileStatus: 502
	},
	file_too_large: {},
	insufficient_storage: {},
	internal_error: {},
	invalid_cursor: {},
	invalid_metadata_filter: {},
	metadata_invalid: {},
	method_not_allowed: {},
	range_not_satisfiable: {},
	server_busy: {},
	storage_unavailable: {},
	submit_outcome_unknown: {},
	unsupported_media_type: {}
};
/** Returns the row of a code; `undefined` for a code that only a service knows. */
function errorCodeOf(code) {
	return Object.hasOwn(ERROR_CODES, code) ? ERROR_CODES[code] : void 0;
}
// src/protocol/job-api.ts
const CONTENT_STATUSES = /* @__PURE__ */ new Set([
	400,
	413,
	422
]);
/**
* True when a submission was refused for its content, so that an earlier attempt had the same
* fault.
*/
function isAboutContent({ status, code }) {
	return CONTENT_STATUSES.has(status) && errorCodeOf(code)?.isNotAboutContent !== true;
}
function ok(value) {
	return {
		ok: true,
		value
	};
}
/** True when an error means that the requested resource does not exist, or not any more. */
function isGone({ status }) {
	return status === 404 || status === 410;
}
/**
* Makes an error as v2 answers it. `code` is stable: each one has a row in `ERROR_CODES`. `message`
* is for people.
*/
function v2Error(status, code, message, more = {}) {
	return {
		status,
		code,
		message,
		details: null,
		...more
	};
}
function refuse(...error) {
	return {
		ok: false,
		error: v2Error(...error)
	};
}
export { v2Error as a, refuse as i, isGone as n, errorCodeOf as o, ok as r, isAboutContent as t };
