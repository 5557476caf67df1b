import { randomUUID } from 'node:crypto';
import { type Bucket, bucketOfStatus, routerHeaders } from '../protocol/router.ts';
import { type RawHeaders, hasHeader, missingAliases } from './headers.ts';

/**
 * The headers that each answer of the router has, as far as this one lacks them: what stands
 * between the service and its router answers without.
 */
export function missingRouterHeaders(lines: RawHeaders, status: number): RawHeaders {
  const aliases = missingAliases(lines);
  const stated = [...lines, ...aliases];
  const needed = routerHeaders(randomUUID(), status >= 400 ? bucketOf(status, lines) : undefined);
  const missing = Object.entries(needed).filter(([name]) => !hasHeader(stated, name));
  return [...aliases, ...missing.flat()];
}

/** Of the two buckets of a 429, only one says when to try again. */
function bucketOf(status: number, lines: RawHeaders): Bucket {
  const isRateLimit = status === 429 && hasHeader(lines, 'Retry-After');
  return isRateLimit ? 'rate_limited' : bucketOfStatus(status);
}
