import { expect, test } from 'vitest';
import { apiOf } from '../../src/console/traffic/recorded-call.ts';

test.each([
  ['/prompt', 'v1'],
  ['/models/loras', 'v1'],
  ['/api/v2/jobs?limit=1', 'v2'],
  ['/api/v2x', 'v1'],
  ['/api/v2/userdata?path=workflows', 'v1'],
  ['/v1/models', 'other'],
  ['/v2/models/local/digest', 'other'],
  ['/readyz?x', 'other'],
  ['/', 'other'],
] as const)('%s is a path of %s', (target, api) => {
  expect(apiOf(target)).toBe(api);
});
