import { describe, expect, test } from 'vitest';
import { bucketOfStatus } from '../../src/protocol/router.ts';
import { routerRefusal } from '../../src/dialects/router-refusal.ts';

const BUCKETS = [
  [400, 'invalid_input'],
  [402, 'insufficient_credits'],
  [429, 'concurrency_limit_exceeded'],
  [499, 'client_disconnected'],
  [500, 'internal_error'],
  [502, 'provider_error'],
  [503, 'service_unavailable'],
  [504, 'provider_timeout'],
  [507, 'service_unavailable'],
] as const;

describe.each(BUCKETS)('an error %i', (status, bucket) => {
  test(`has the bucket ${bucket}`, () => expect(bucketOfStatus(status)).toBe(bucket));

  test.each(['/v1/models/p/m', '/v2/models', '/proxy/p'])('is refused with it on %s', (path) => {
    const { headers, body } = routerRefusal(path, status, 'why') ?? {};
    expect(JSON.parse(body ?? '')).toEqual({ detail: 'why', error_type: bucket });
    expect(headers).toMatchObject({
      'X-Service-Error-Type': bucket,
      'X-Comfy-Error-Type': bucket,
    });
  });
});

test.each([418, 422, 451])('an unknown %i is an error of the call', (status) =>
  expect(bucketOfStatus(status)).toBe('invalid_input'),
);

test.each([501, 520, 599])('an unknown %i is an error of the service', (status) =>
  expect(bucketOfStatus(status)).toBe('internal_error'),
);

test('a wrong method is the router’s on the paths of models only', () => {
  expect(routerRefusal('/v1/models', 405, 'why')?.body).toContain('"invalid_input"');
  expect(routerRefusal('/proxy/p', 405, 'why')).toBeUndefined();
  expect(routerRefusal('/prompt', 503, 'why')).toBeUndefined();
});
