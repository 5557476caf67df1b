import type { Json, JsonObject } from './json.ts';

/**
 * The closed set of error buckets, in the contract's order, with the status of each answer.
 * `client_disconnected` is written to the audit record only: there is no client left to receive it.
 */
export const BUCKET_STATUS = {
  invalid_input: 400,
  content_policy_violation: 400,
  provider_error: 502,
  provider_timeout: 504,
  insufficient_credits: 402,
  model_not_found: 404,
  unauthorized: 401,
  forbidden: 403,
  concurrency_limit_exceeded: 429,
  client_disconnected: 499,
  internal_error: 500,
  deadline_exceeded: 504,
  not_enabled: 403,
  service_unavailable: 503,
  rate_limited: 429,
} as const;

/** Why a call was not answered with a result. */
export type Bucket = keyof typeof BUCKET_STATUS;

/** The buckets of errors by their status, as clients read a bare status. */
const BUCKET_OF_STATUS: { readonly [status: number]: Bucket } = {
  401: 'unauthorized',
  402: 'insufficient_credits',
  403: 'forbidden',
  404: 'model_not_found',
  429: 'concurrency_limit_exceeded',
  499: 'client_disconnected',
  502: 'provider_error',
  503: 'service_unavailable',
  504: 'provider_timeout',
  // A full disk clears without any change by the caller, as a 503 does.
  507: 'service_unavailable',
};

/** Returns the bucket of an error that names none. */
export function bucketOfStatus(status: number): Bucket {
  return BUCKET_OF_STATUS[status] ?? (status < 500 ? 'invalid_input' : 'internal_error');
}

/** Paths of models: the contract uses `/v1`, today's clients use `/v2`. */
export const MODEL_PATHS = /^\/v[12]\/models(?=\/|$)/;

/** Paths of partners beside them: what they answer is the partners' own. */
export const PARTNER_PATHS = /^\/proxy\//;

/** True when a path belongs to the router: a model's, or a partner's. */
export function isRouterPath(path: string): boolean {
  return MODEL_PATHS.test(path) || PARTNER_PATHS.test(path);
}

/**
 * Returns the headers of every answer, under the contract's name and the one that clients read.
 * With a bucket, the answer is an error: on a 422 only this header names the bucket.
 */
export function routerHeaders(requestId: string, bucket?: Bucket): { [name: string]: string } {
  const ids = { 'X-Service-Request-Id': requestId, 'X-Comfy-Request-Id': requestId };
  if (bucket === undefined) return ids;
  return { ...ids, 'X-Service-Error-Type': bucket, 'X-Comfy-Error-Type': bucket };
}

/** One offending field of a 422; `type` is an open vocabulary, `loc` starts with `body`. */
export type ValidationDetail = {
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly type: string;
  readonly ctx?: JsonObject;
  readonly input?: Json;
};

/** The billing facts of a model. Any value but `no` may mean that a refused call is charged. */
export type ModelBilling = { readonly charges_on_policy_rejection: string };

/** A model as the catalog lists it. */
export type ModelEntry = {
  readonly id: string;
  readonly provider: string;
  readonly model: string;
  readonly billing: ModelBilling;
};

/** One page of the catalog. */
export type ModelPage = {
  readonly data: readonly ModelEntry[];
  readonly has_more: boolean;
  readonly next_cursor?: string;
  readonly limit: number;
};

/** Pattern of both segments of a model id. */
export const MODEL_SEGMENT = /^[a-z0-9]+([._-][a-z0-9]+)*$/;
/** Longest first segment of a model id. */
export const MAX_PROVIDER_CHARS = 64;
/** Longest second segment of a model id. */
export const MAX_MODEL_CHARS = 128;
