/**
 * One error code of v2: its meaning for this server, and its answer in v1. Without members, the
 * code is a final refusal.
 */
type ErrorCode = {
  /**
   * The answer to `POST /prompt`. If both are absent, v1 clients get the code as `error.type`, and
   * most statuses unchanged. With `lacksCapacity`, they are the answer when the outbox is full;
   * else the prompt waits, and its client gets 200.
   */
  readonly v1Status?: number;
  readonly v1Type?: string;
  /**
   * The answer to `/view` and `/upload/*`. Absent: the status of v2, with few exceptions
   * (`dialects/file-error.ts`).
   */
  readonly v1FileStatus?: number;
  /**
   * With status 429: there is no capacity now, but there may be some later. The prompt waits in the
   * outbox.
   */
  readonly lacksCapacity?: true;
  /**
   * With status 429: only calls of the same kind have to wait. Every other 429 pauses the account.
   */
  readonly isOfOneCall?: true;
  /**
   * With status 400, 413 or 422: the code says nothing about the workflow, so another attempt may
   * succeed.
   */
  readonly isNotAboutContent?: true;
  /** With status 422: other names for the files would not change the refusal. */
  readonly isNotAboutFiles?: true;
  /** No retry can succeed until an operator has acted: clients are not told when to try again. */
  readonly needsOperator?: true;
};

/**
 * Every error code of v2: the codes of the contract in its order, then others that services use,
 * then those of this server that v1 passes on unchanged.
 *
 * To add a code, add a row here. A code that this server refuses with is given to `refuse(status,
 * code, message)`, which takes no other codes. `remote/calls/errors.ts` reads the codes
 * of services; the status decides the meaning of a code without a row.
 *
 * v1 clients read 429 as "subscription not active", so a wait is answered with 503.
 */
const ERROR_CODES = {
  invalid_workflow: { v1Status: 400, v1Type: 'prompt_outputs_failed_validation' },
  workflow_format_ui: { v1Status: 400, v1Type: 'invalid_prompt', isNotAboutFiles: true },
  missing_asset: { v1Status: 400, v1Type: 'prompt_outputs_failed_validation' },
  // The upload was damaged between this server and v2; the client sent it correctly.
  hash_mismatch: { v1Status: 500, v1Type: 'hash_mismatch', v1FileStatus: 502 },
  blob_not_found: { v1Status: 404, v1Type: 'not_found' },
  // This server chose the key, so the client did nothing wrong, and it is unknown if the job
  // exists.
  idempotency_key_reuse: {
    v1Status: 500,
    v1Type: 'outcome_unknown',
    isNotAboutContent: true,
    isNotAboutFiles: true,
  },
  queue_full: { v1Status: 503, v1Type: 'queue_full', lacksCapacity: true, isOfOneCall: true },
  insufficient_credits: { v1Status: 402, v1Type: 'insufficient_credits' },
  not_found: { v1Status: 404, v1Type: 'not_found' },
  unauthorized: { v1Status: 401, v1Type: 'unauthorized' },
  forbidden: { v1Status: 403, v1Type: 'forbidden' },
  rate_limited: { v1Status: 503, v1Type: 'rate_limited', lacksCapacity: true },
  deployment_not_ready: {
    v1Status: 503,
    v1Type: 'deployment_not_ready',
    lacksCapacity: true,
    isOfOneCall: true,
  },
  deployment_stopped: {
    v1Status: 400,
    v1Type: 'deployment_stopped',
    needsOperator: true,
    isNotAboutContent: true,
    isNotAboutFiles: true,
  },
  upstream_error: { v1Status: 500, v1Type: 'upstream_error' },
  upstream_unreachable: { v1Status: 503, v1Type: 'upstream_unreachable', v1FileStatus: 502 },
  sso_required: { v1Status: 403, v1Type: 'sso_required' },
  forbidden_origin: { v1Status: 403, v1Type: 'forbidden_origin' },
  payload_too_large: { v1Status: 400, v1Type: 'payload_too_large' },
  invalid_body: { v1Status: 400, v1Type: 'invalid_prompt' },
  invalid_request: { v1Status: 400, v1Type: 'invalid_prompt' },
  metadata_not_supported: { v1Status: 500, v1Type: 'metadata_not_supported' },
  output_unavailable: { v1Status: 404, v1Type: 'not_found' },
  too_many_streams: { v1Status: 503, v1Type: 'too_many_streams', isOfOneCall: true },
  asset_in_use: {},
  // Another program answered, or the service broke its contract.
  bad_upstream_response: { v1Status: 502, v1FileStatus: 502 },
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
  unsupported_media_type: {},
} as const satisfies Readonly<Record<string, ErrorCode>>;

/** A code with which this server refuses. */
export type V2ErrorCode = keyof typeof ERROR_CODES;

/** Returns the row of a code; `undefined` for a code that only a service knows. */
export function errorCodeOf(code: string): ErrorCode | undefined {
  return Object.hasOwn(ERROR_CODES, code) ? ERROR_CODES[code as V2ErrorCode] : undefined;
}
