import { expect, test } from 'vitest';
import { bucketOfStatus } from '../../src/protocol/router.ts';
import { routerRefusal } from '../../src/dialects/router-refusal.ts';

test.each([
  [400, 'invalid_input'],
  [402, 'insufficient_credits'],
  [422, 'invalid_input'],
  [429, 'concurrency_limit_exceeded'],
  [499, 'client_disconnected'],
  [502, 'provider_error'],
  [504, 'provider_timeout'],
  [507, 'service_unavailable'],
  [520, 'internal_error'],
])('an error %i has the bucket %s', (status, bucket) =>
  expect(bucketOfStatus(status)).toBe(bucket),
);

test('a wrong method is the router’s on the paths of models only', () => {
  expect(routerRefusal('/v1/models', 405, 'why')?.body).toContain('"invalid_input"');
  expect(routerRefusal('/proxy/p', 405, 'why')).toBeUndefined();
  expect(routerRefusal('/prompt', 503, 'why')).toBeUndefined();
});
