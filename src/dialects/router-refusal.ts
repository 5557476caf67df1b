import { randomUUID } from 'node:crypto';
import { type Bucket, isRouterPath, routerHeaders } from '../protocol/router.ts';
import { readTarget } from '../protocol/request-target.ts';

/** A call that is refused before the router has seen it, in the router's words. */
export type RouterRefusal = {
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
};

const REFUSALS: { readonly [status: number]: readonly [Bucket, detail: string] } = {
  400: ['invalid_input', 'The call is for another host, or does not say for which.'],
  401: ['unauthorized', 'A valid key is needed: X-API-Key, or Authorization: Bearer.'],
  403: ['forbidden', 'Calls of other sites, or to a name that is not of this server, are refused.'],
  408: ['invalid_input', 'The rest of the body did not come in time.'],
  413: ['invalid_input', 'The call is too large.'],
  417: ['invalid_input', 'The only expectation that can be met is 100-continue.'],
  431: ['invalid_input', 'There are too many headers.'],
  500: ['internal_error', 'The server could not serve this call.'],
  507: ['service_unavailable', 'There is no room left on the storage of this server.'],
};

/**
 * The answer to a refused call of the router's paths, with the default text unless `statedDetail`
 * is given; `undefined` when the path or the status is not one of these.
 */
export function routerRefusal(
  url: string | undefined,
  status: number,
  statedDetail?: string,
): RouterRefusal | undefined {
  const [bucket, defaultDetail] = REFUSALS[status] ?? [];
  const detail = statedDetail ?? defaultDetail;
  if (bucket === undefined || !isRouterTarget(url)) return undefined;
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
