import { readTarget } from './request-target.ts';

/** All paths of v2 are below it. */
export const V2_PREFIX = '/api/v2';

/** Returns the path below which a service has its APIs, without `/api/v2` and a slash at its end. */
export function mountOf(baseUrl: string): string {
  const path = new URL(baseUrl).pathname.replace(/(^|[^/])\/+$/, '$1');
  return path.endsWith(V2_PREFIX) ? path.slice(0, -V2_PREFIX.length) : path;
}

/** v1 has routes under `/v2`, too; their `/api` forms do not belong to v2. */
const V1_ALIASES = /^\/api\/v2\/userdata(\/|$)/;

/**
 * True when v2 answers for a path, if only with a 404: everything below its prefix except v1's
 * routes.
 */
export function isV2Path(path: string): boolean {
  return (path === V2_PREFIX || path.startsWith(`${V2_PREFIX}/`)) && !V1_ALIASES.test(path);
}

const CONTENT = /^\/api\/v2\/assets\/([^/]+)\/content$/;

/** True when a request target addresses the bytes of an asset with a signature, valid or not. */
export function isSignedContent(url: string): boolean {
  const { path, query } = readTarget(url);
  return CONTENT.test(path) && new URLSearchParams(query).has('signature');
}
