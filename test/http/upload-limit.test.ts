import { expect, test } from 'vitest';
import { createUploadLimit } from '../../src/http/upload-limit.ts';

type Limit = ReturnType<typeof createUploadLimit>;

/** Begins an upload that ends when it is told to. */
function begin(limit: Limit, user: string) {
  let end = (): void => {};
  const state = { isReceiving: false };
  const done = limit(user, async () => {
    state.isReceiving = true;
    await new Promise<void>((resolve) => (end = resolve));
    return 'received';
  });
  return { state, done, end: () => end() };
}

test('an upload that waits too long is refused and told when to come back', async () => {
  const limit = createUploadLimit({ maxPerUser: 1, maxWaitMs: 10 });
  const first = begin(limit, 'a');
  const late = begin(limit, 'a');
  expect(await late.done).toMatchObject({ ok: false, status: 503, retryAfterSeconds: 5 });
  expect(late.state.isReceiving).toBe(false);
  first.end();
  expect(await first.done).toBe('received');
});

test('an upload that fails gives its slot back', async () => {
  const limit = createUploadLimit({ maxPerUser: 1 });
  await expect(limit('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await limit('a', () => Promise.resolve('received'))).toBe('received');
});
