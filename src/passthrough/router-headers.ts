import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type Bucket, bucketOfStatus, routerHeaders } from '../protocol/router.ts';
import { addAliases } from './headers.ts';

/**
 * Adds the headers that each answer of the router has, as far as this one lacks them: what stands
 * between the service and its router answers without.
 */
export function addRouterHeaders(answer: ServerResponse, status: number): void {
  addAliases(answer);
  const needed = routerHeaders(randomUUID(), status >= 400 ? bucketOf(answer, status) : undefined);
  for (const [name, value] of Object.entries(needed)) {
    if (!answer.hasHeader(name)) answer.setHeader(name, value);
  }
}

/** Of the two buckets of a 429, only one says when to try again. */
function bucketOf(answer: ServerResponse, status: number): Bucket {
  const isRateLimit = status === 429 && answer.hasHeader('Retry-After');
  return isRateLimit ? 'rate_limited' : bucketOfStatus(status);
}
