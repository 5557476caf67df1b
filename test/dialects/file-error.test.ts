import { describe, expect, test } from 'vitest';
import { toV1FileError } from '../../src/dialects/file-error.ts';

describe('a v2 refusal about a file', () => {
  test.each([
    [422, 'invalid_request', 400],
    [429, 'rate_limited', 503],
    [501, 'not_implemented', 502],
    [507, 'insufficient_storage', 507],
    [500, 'upstream_error', 502],
    [999, 'upstream_error', 502],
    [409, 'hash_mismatch', 502],
    [429, 'subscription_inactive', 429],
    [403, 'inactive_subscription', 429],
    [422, 'deployment_stopped', 400],
  ])('%i %s is %i', (status, code, v1Status) => {
    const error = { status, code, message: 'no', details: null };
    expect(toV1FileError(error)).toMatchObject({ status: v1Status, fault: { code } });
  });
});
