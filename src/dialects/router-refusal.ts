import { randomUUID } from 'node:crypto';
import { MODEL_PATHS, bucketOfStatus, isRouterPath, routerHeaders } from '../protocol/router.ts';
import { readTarget } from '../protocol/request-target.ts';

/**
 * Returns headers and body for a call that is refused before the model router has seen it, in the
 * router's form. `undefined` when the call does not belong to the router. Without a service, a
 * partner's path is any unknown path of v1, and so is the method that is not allowed there.
 */
export function routerRefusal(
  path: string,
  status: number,
  detail: string,
): { readonly headers: Readonly<Record<string, string>>; readonly body: string } | undefined {
  if (!isRouterPath(path) || (status === 405 && !MODEL_PATHS.test(path))) return undefined;
  const bucket = bucketOfStatus(status);
  const headers = {
    'Content-Type': 'application/json',
    ...routerHeaders(randomUUID(), bucket),
  };
  return { headers, body: JSON.stringify({ detail, error_type: bucket }) };
}

/** True when a request target, which may be an absolute URL, belongs to the router. */
export function isRouterTarget(url = ''): boolean {
  return isRouterPath(readTarget(url).path);
}
