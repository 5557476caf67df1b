import { readTarget } from './request-target.ts';

const PREFIX = '/api/v2';

/** v1 has routes under `/v2`, too; their `/api` forms do not belong to v2. */
const V1_ALIASES = /^\/api\/v2\/userdata(\/|$)/;

/**
 * True when v2 answers for a path, if only with a 404: everything below its prefix except v1's
 * routes.
 */
export function isV2Path(path: string): boolean {
  return (path === PREFIX || path.startsWith(`${PREFIX}/`)) && !V1_ALIASES.test(path);
}

const CONTENT = /^\/api\/v2\/assets\/([^/]+)\/content$/;

/** True when a request target addresses the bytes of an asset with a signature, valid or not. */
export function isSignedContent(url: string): boolean {
  const { path, query } = readTarget(url);
  return CONTENT.test(path) && new URLSearchParams(query).has('signature');
}
