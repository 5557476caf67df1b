import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, interrupt, untilRunning } from '../support/clients/client-helpers.ts';
import { type Recorder, connect, getJson } from '../support/clients/v1-client.ts';
import { endless, flat } from '../support/graphs/workflows.ts';
import { type Stack, editQueue, notRun, openStack } from './open.ts';

// How prompts end in front of the real self-hosted server, which tells of it late or not at all.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Less than the server's own 15 s. */
const SOON = { timeout: 8_000, interval: 20 };
const EMPTY = { running: [], pending: [] };

describe.skipIf(notRun !== '')(`the end of a prompt, in front of comfy-api-proxy${notRun}`, () => {
  let stack: Stack;
  let socket: Recorder;
  beforeAll(async () => {
    stack = await openStack();
    socket = await connect(stack.holdover.wsUrl, { clientId: 'stacked' });
  });
  afterAll(async () => {
    await socket?.close();
    await stack?.close();
  });

  const wordsOf = async (id: string) =>
    (await entryOf(stack.holdover.url, id))?.status.messages.map(([type]: [string]) => type);

  test('a waiting prompt that is deleted has ended when the call is answered', async () => {
    const { holdover } = stack;
    const head = await stack.post(endless({ seed: 11 }));
    expect(await untilRunning(holdover.url)).toBe(head);
    const waiting = [await stack.post(flat({ color: 1 })), await stack.post(flat({ color: 2 }))];
    waiting.forEach((id) => stack.front.forgetSilently(id));
    expect((await editQueue(holdover, { delete: [waiting[0]] })).status).toBe(200);
    expect(await wordsOf(waiting[0] ?? '')).toEqual(['execution_interrupted']);
    expect(await stack.remaining()).toBe(2);
    expect((await editQueue(holdover, { clear: true })).status).toBe(200);
    expect(await wordsOf(waiting[1] ?? '')).toEqual(['execution_interrupted']);
    expect([await stack.remaining(), await stack.queue()]).toEqual([
      1,
      { running: [head], pending: [] },
    ]);
    await interrupt(holdover.url);
    await expect.poll(() => stack.remaining(), SOON).toBe(0);
    expect(await stack.queue()).toEqual(EMPTY);
    expect((await getJson(`${stack.engine.url}/queue`)).queue_pending).toEqual([]);
    expect(socket.outline(waiting[0] ?? '').at(-1)).toBe('executing:null');
  });

  test('an end that the server’s stream misses is received long before its next keep-alive', async () => {
    const { front, holdover } = stack;
    let letThrough = (): void => {};
    front.holdSockets(new Promise<void>((resolve) => (letThrough = resolve)));
    const id = await stack.post(flat({ color: 77, prefix: 'missed' }));
    try {
      await expect
        .poll(() => socket.outline(id).slice(-2), SOON)
        .toEqual(['execution_success', 'executing:null']);
    } finally {
      letThrough();
    }
    expect((await entryOf(holdover.url, id)).status.status_str).toBe('success');
  });
});
