import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, untilRunning } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, growing } from '../support/graphs/workflows.ts';
import { type Stack, editQueue, notRun, openStack } from './open.ts';

// The engine behind the real self-hosted server goes away: the server answers, and has nothing to say.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const SOON = { timeout: 20_000, interval: 50 };
const EMPTY = { running: [], pending: [] };

describe.skipIf(notRun !== '')(`when the engine behind comfy-api-proxy fails${notRun}`, () => {
  let stack: Stack;
  let fresh: Holdover | undefined;
  beforeAll(async () => {
    stack = await openStack();
  });
  afterAll(async () => {
    await stack?.close();
    await fresh?.dispose();
  });

  const refused = async () => {
    const { status, body } = await postPrompt(stack.holdover.url, { prompt: flat({ color: 3 }) });
    return { status, type: body.error.type, promptId: body.error.extra_info?.prompt_id };
  };

  test('a prompt is refused for certain where the whole list lacks it, and nothing is left', async () => {
    await stack.front.down();
    expect(await refused()).toMatchObject({ status: 502, type: 'upstream_unavailable' });
    expect([await stack.remaining(), await stack.queue()]).toEqual([0, EMPTY]);
    await stack.front.up();
    expect(await getJson(`${stack.holdover.url}/history`)).toEqual({});
  });

  test('a prompt whose outcome the server cannot tell is given up within seconds', async () => {
    const ran = await stack.post(flat({ color: 4 }));
    await expect.poll(() => entryOf(stack.holdover.url, ran), SOON).toBeDefined();
    await stack.front.down();
    const { status, type, promptId } = await refused();
    expect([status, type]).toEqual([500, 'submit_outcome_unknown']);
    await expect.poll(() => stack.queue(), SOON).toEqual(EMPTY);
    expect((await entryOf(stack.holdover.url, promptId)).status.status_str).toBe('error');
    await stack.front.up();
  });

  test('one that is deleted meanwhile has ended when the call is answered', async () => {
    await stack.front.down();
    const { promptId } = await refused();
    expect((await editQueue(stack.holdover, { delete: [promptId] })).status).toBe(200);
    expect([await stack.remaining(), await stack.queue()]).toEqual([0, EMPTY]);
    expect(await entryOf(stack.holdover.url, promptId)).toBeDefined();
    await stack.front.up();
  });

  test('a file is refused with 502 and the reason, not with 500', async () => {
    const id = await stack.post(flat({ color: 9, prefix: 'there' }));
    await expect.poll(() => entryOf(stack.holdover.url, id), SOON).toBeDefined();
    const view = () => fetch(`${stack.holdover.url}/view?filename=there_00001_.png`);
    expect((await view()).status).toBe(200);
    await stack.front.down();
    const answer = await view();
    expect(answer.status).toBe(502);
    expect(await answer.text()).toMatch(/engine behind it/);
    await stack.front.up();
    expect((await view()).status).toBe(200);
  });

  test('an engine that died ends what ran, and what waited is sent again', async () => {
    const { holdover, engine } = stack;
    const head = await stack.post(endless({ seed: 5 }));
    expect(await untilRunning(holdover.url)).toBe(head);
    const waiting = [await stack.post(flat({ color: 1 })), await stack.post(flat({ color: 2 }))];
    await expect.poll(() => stack.queue()).toEqual({ running: [head], pending: waiting });

    await stack.front.down();
    await engine.kill9();
    fresh = await startHoldover({ upstream: 'embedded', port: engine.port });
    await stack.front.up();

    for (const id of waiting) {
      await expect.poll(() => entryOf(holdover.url, id), { timeout: 60_000 }).toBeDefined();
      expect((await entryOf(holdover.url, id)).status.status_str).toBe('success');
    }
    await expect.poll(() => entryOf(holdover.url, head), { timeout: 30_000 }).toBeDefined();
    expect((await entryOf(holdover.url, head)).status.status_str).toBe('error');
    expect(await stack.queue()).toEqual({ running: [], pending: [] });
  }, 120_000);

  // `POST /api/jobs/{id}/cancel` is new: the server answers 200 to every cancel all the same.
  test('an older engine: a prompt that was not cancelled stays in the queue, runs, and the log says why, once', async () => {
    const { holdover } = stack;
    stack.front.answer('POST', /^\/api\/jobs\//, (_, res) => void res.writeHead(404).end());
    const head = await stack.post(growing({ steps: 80, prefix: 'head' }));
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
