import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, untilRunning } from '../support/clients/client-helpers.ts';
import { flat, lasting } from '../support/graphs/workflows.ts';
import { type Stack, editQueue, notRun, openStack } from './open.ts';

// An engine without `POST /api/jobs/{id}/cancel`: the server answers 200 to every cancel all the same.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(notRun !== '')(`an older engine behind comfy-api-proxy${notRun}`, () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await openStack();
    stack.front.answer('POST', /^\/api\/jobs\//, (_, res) => void res.writeHead(404).end());
  });
  afterAll(() => stack?.close());

  test('a prompt that was not cancelled stays in the queue, runs, and the log says why, once', async () => {
    const { holdover } = stack;
    const head = await stack.post(lasting({ prefix: 'head' }));
    expect(await untilRunning(holdover.url)).toBe(head);
    const waiting = [await stack.post(flat({ color: 21 })), await stack.post(flat({ color: 22 }))];
    expect((await editQueue(holdover, { delete: waiting })).status).toBe(200);
    expect(await stack.queue()).toEqual({ running: [head], pending: waiting });
    expect(await stack.remaining()).toBe(3);
    for (const id of [head, ...waiting]) {
      const entry = await vi.waitUntil(() => entryOf(holdover.url, id), { timeout: 40_000 });
      expect(entry.status.status_str).toBe('success');
    }
    expect(holdover.log().split('upstream.cancel_ignored')).toHaveLength(2);
  });
});
