import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { loading } from '../support/graphs/workflows.ts';
import { type Stack, notRun, openStack } from './open.ts';

// The real self-hosted server knows no users: what all of them upload lies in one input folder.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ALICE = { 'X-API-Key': 'alice' };
const BOB = { 'X-API-Key': 'bob' };

describe.skipIf(notRun !== '')(`uploads behind comfy-api-proxy${notRun}`, () => {
  let stack: Stack;
  /** Where the engine has alice's file. */
  let path: string;

  beforeAll(async () => {
    stack = await openStack();
    await uploadInput(stack.holdover.url, { bytes: await pngOf(), name: 'hers.png' }, ALICE);
    const files = await getJson(`${stack.engine.url}/internal/files/input`);
    path =
      /holdover-[0-9a-f]{16}\/[0-9a-f]{64}\.png/.exec(JSON.stringify(files))?.[0] ??
      (await embedded());
  });
  afterAll(() => stack?.close());

  /** As a picture made of it tells, where the engine lists no folders. */
  async function embedded(): Promise<string> {
    const { url } = stack.holdover;
    const sent = { prompt: loading('hers.png', 'made') };
    const { body } = await postPrompt(url, sent, { headers: ALICE });
    await vi.waitUntil(() => entryOf(url, body.prompt_id, ALICE), { timeout: 30_000 });
    const answer = await fetch(`${stack.engine.url}/view?filename=made_00001_.png`);
    const text = Buffer.from(await answer.arrayBuffer()).toString('latin1');
    return /holdover-[0-9a-f]{16}\/[0-9a-f]{64}\.png/.exec(text)?.[0] ?? 'none';
  }

  test('are read by a prompt of their owner, by that path too', async () => {
    expect(path).not.toBe('none');
    const sent = { prompt: loading(path, 'own') };
    const { status } = await postPrompt(stack.holdover.url, sent, { headers: ALICE });
    expect(status).toBe(200);
  });

  test('and by no other user’s, however the path is written', async () => {
    const [folder = '', name = ''] = path.split('/');
    for (const value of [
      path,
      `${path} [input]`,
      `./${path}`,
      `x/../${path}`,
      `${folder}\\${name}`,
      `${folder}%2F${name}`,
      `${folder}//${name}`,
      path.toUpperCase(),
    ]) {
      const sent = { prompt: loading(value, 'stolen') };
      const { status, body } = await postPrompt(stack.holdover.url, sent, { headers: BOB });
      expect([value, status, body.error.type]).toEqual([
        value,
        400,
        'prompt_outputs_failed_validation',
      ]);
    }
    expect(await getJson(`${stack.holdover.url}/history`, BOB)).toEqual({});
  });
});
