import { randomUUID } from 'node:crypto';
import { type Bucket, MODEL_PATHS, isRouterPath, routerHeaders } from '../protocol/router.ts';
import { readTarget } from '../protocol/request-target.ts';

const BUCKETS: { readonly [status: number]: Bucket } = {
  400: 'invalid_input',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'model_not_found',
  408: 'invalid_input',
  413: 'invalid_input',
  417: 'invalid_input',
  431: 'invalid_input',
  500: 'internal_error',
  503: 'service_unavailable',
  507: 'service_unavailable',
};

/** Of the paths of models only: without a service, a partner's path is any unknown path of v1. */
const MODEL_BUCKETS: typeof BUCKETS = { 405: 'invalid_input' };

/**
 * Returns headers and body for a call that is refused before the model router has seen it, in the
 * router's form. `undefined` when the path or the status does not belong to the router.
 */
export function routerRefusal(path: string, status: number, detail: string) {
  const bucket = BUCKETS[status] ?? (MODEL_PATHS.test(path) ? MODEL_BUCKETS[status] : undefined);
  if (bucket === undefined || !isRouterPath(path)) return undefined;
  const headers = {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    ...routerHeaders(randomUUID(), bucket),
  };
  return { headers, body: JSON.stringify({ detail, error_type: bucket }) };
}

/** True when a request target, which may be an absolute URL, belongs to the router. */
export function isRouterTarget(url = ''): boolean {
  return isRouterPath(readTarget(url).path);
}
