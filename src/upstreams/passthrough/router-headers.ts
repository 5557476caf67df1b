import { randomUUID } from 'node:crypto';
import { type Bucket, routerHeaders } from '../../protocol/router.ts';
import { type RawHeaders, hasHeader, missingAliases } from './headers.ts';

/** The buckets of an error that names none, as clients of the router read its bare status. */
const BUCKET_OF_STATUS: ReadonlyMap<number, Bucket> = new Map([
  [401, 'unauthorized'],
  [402, 'insufficient_credits'],
  [403, 'forbidden'],
  [404, 'model_not_found'],
  [499, 'client_disconnected'],
  [502, 'provider_error'],
  [503, 'service_unavailable'],
  [504, 'provider_timeout'],
]);

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
  if (status === 429)
    return hasHeader(lines, 'Retry-After') ? 'rate_limited' : 'concurrency_limit_exceeded';
  return BUCKET_OF_STATUS.get(status) ?? (status < 500 ? 'invalid_input' : 'internal_error');
}
