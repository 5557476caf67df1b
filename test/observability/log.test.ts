import { expect, test } from 'vitest';
import { serializeError } from '../../src/observability/log.ts';

test('the log of an error has its text, its code and its place, and no command of Redis, no call', () => {
  const args = ['script', 'a text of a user'];
  const error = Object.assign(new TypeError('refused'), {
    code: 'EREFUSED',
    command: { name: 'eval', args },
    emitter: { headers: args },
    target: { headers: args },
  });
  const logged = serializeError(error);
  expect(logged).toMatchObject({ type: 'TypeError', message: 'refused', code: 'EREFUSED' });
  expect(logged).toHaveProperty('stack');
  expect(JSON.stringify(logged)).not.toContain('a text of a user');
});

test.each(['a text', undefined, null])('a rejection with %s is logged as it is', (thrown) => {
  expect(serializeError(thrown)).toBe(thrown);
});
