import { expect, test } from 'vitest';
import { createUploadQuota } from '../../src/http/upload-quota.ts';

const MB = 1024 * 1024;

/** Starts work that ends when told to. */
function begin(quota: ReturnType<typeof createUploadQuota>, user: string, megabytes: number) {
  let end = (): void => {};
  const state = { isInside: false };
  const work = async (): Promise<void> => {
    state.isInside = true;
    await new Promise<void>((resolve) => (end = resolve));
  };
  const done = quota.withRoom({ user, bytes: megabytes * MB }, work);
  done.catch(() => {});
  return { state, done, end: () => end() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('bodies beyond the room wait, and come in as soon as one leaves', async () => {
  const quota = createUploadQuota({ maxBytes: 10 * MB, maxPerUser: 8 });
  const first = begin(quota, 'a', 6);
  const second = begin(quota, 'b', 6);
  const small = begin(quota, 'c', 4);
  await settled();
  expect([first, second, small].map(({ state }) => state.isInside)).toEqual([true, false, true]);
  first.end();
  await first.done;
  await settled();
  expect(second.state.isInside).toBe(true);
});

test('a user with many on the way waits for them; the others do not', async () => {
  const quota = createUploadQuota({ maxBytes: 10 * MB, maxPerUser: 2 });
  const many = [1, 2, 3].map(() => begin(quota, 'a', 1));
  const other = begin(quota, 'b', 1);
  await settled();
  expect(many.map(({ state }) => state.isInside)).toEqual([true, true, false]);
  expect(other.state.isInside).toBe(true);
});

test('an upload that waits too long is refused with 503 and reported when to come back', async () => {
  const quota = createUploadQuota({ maxBytes: 10 * MB, maxPerUser: 8, maxWaitMs: 10 });
  begin(quota, 'a', 8);
  const late = begin(quota, 'b', 8);
  await expect(late.done).rejects.toMatchObject({
    status: 503,
    headers: { 'Retry-After': expect.any(String) },
  });
  expect(late.state.isInside).toBe(false);
});

test('one larger than all the room comes in alone', async () => {
  const quota = createUploadQuota({ maxBytes: 10 * MB, maxPerUser: 8 });
  const huge = begin(quota, 'a', 20);
  const next = begin(quota, 'b', 1);
  await settled();
  expect([huge.state.isInside, next.state.isInside]).toEqual([true, false]);
});

test('work that fails gives its room back', async () => {
  const quota = createUploadQuota({ maxBytes: MB, maxPerUser: 1 });
  const failing = quota.withRoom({ user: 'a', bytes: MB }, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  await quota.withRoom({ user: 'a', bytes: MB }, async () => {});
});
