import { EventEmitter } from 'node:events';
import type Koa from 'koa';
import { expect, test } from 'vitest';
import { promptRoutes } from '../../src/v1/prompt.ts';

/** Submits a prompt; resolves with the milliseconds after its answer when its frames left. */
function createSubmitter() {
  let nowMs = 0;
  let latenessMs = 0;
  let leftAtMs = -1;
  const [route] = promptRoutes({
    acceptor: {
      accept: async () => ({
        promptId: 'p',
        number: 0,
        nodeErrors: {},
        releaseFrames: () => (leftAtMs = nowMs),
      }),
    },
    counter: { next: async () => 0 },
    bodies: { read: async () => ({ ok: true, value: { prompt: {} } }) },
    clock: {
      now: () => nowMs,
      callAfter(ms: number, act: () => void) {
        nowMs += ms + latenessMs;
        act();
      },
    },
  } as unknown as Parameters<typeof promptRoutes>[0]);
  return async (atMs: number, timersAreLateMs = 0): Promise<number> => {
    [nowMs, latenessMs] = [atMs, timersAreLateMs];
    const res = new EventEmitter();
    const ctx = { res, req: { headers: {}, url: '/prompt' }, state: {}, set() {} };
    await route?.handle({
      ctx: ctx as unknown as Koa.Context,
      caller: { user: 'ann' },
      params: {},
      query: new URLSearchParams(),
    });
    res.emit('finish');
    return leftAtMs - atMs;
  };
}

test('frames leave 2 ms after the answer', async () => {
  const submit = createSubmitter();
  expect([await submit(0), await submit(100, 1)]).toEqual([2, 3]);
});

test('and 6 ms later for ten seconds after a timer was late: clients may wait for a processor, too', async () => {
  const submit = createSubmitter();
  expect(await submit(0, 2)).toBe(4 + 8);
  expect(await submit(9000)).toBe(2 + 6);
  expect(await submit(20_000)).toBe(2);
});
