import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf } from '../support/clients/client-helpers.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';
import { type Stack, editQueue, notRun, openStack } from './open.ts';

// The engine behind the real self-hosted server goes away: the server answers, and has nothing to say.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const SOON = { timeout: 20_000, interval: 50 };
const EMPTY = { running: [], pending: [] };

describe.skipIf(notRun !== '')(`while the engine behind comfy-api-proxy is down${notRun}`, () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await openStack();
  });
  afterAll(() => stack?.close());

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
});
