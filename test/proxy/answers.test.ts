import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf } from '../support/clients/client-helpers.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { flat, growing } from '../support/graphs/workflows.ts';
import { type Stack, notRun, openStack } from './open.ts';

// Holdover fills in parts of answers that the real self-hosted server leaves out.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(notRun !== '')(`answers in front of comfy-api-proxy${notRun}`, () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await openStack();
  });
  afterAll(() => stack?.close());

  const refusal = async (graph: object) => {
    const { status, body } = await postPrompt(stack.holdover.url, { prompt: graph });
    return [status, body.error?.type, body.error?.details];
  };
  const run = async (graph: object): Promise<any> => {
    const id = await stack.post(graph);
    return vi.waitUntil(() => entryOf(stack.holdover.url, id), { timeout: 30_000 });
  };

  test('messages of the engine have their types again', async () => {
    const color = {
      class_type: 'EmptyImage',
      inputs: { width: 8, height: 8, batch_size: 1, color: 0 },
    };
    expect(await refusal({ '1': color })).toEqual([400, 'prompt_no_outputs', '']);
    const unknown = { '7': { class_type: 'NoSuchNode', inputs: {} } };
    expect(await refusal(unknown)).toEqual([400, 'invalid_prompt', "Node ID '#7'"]);
  });

  test('a prompt that is good in part runs, and its other output is reported', async () => {
    const graph = { ...flat({ prefix: 'part' }), '99': { class_type: 'SaveImage', inputs: {} } };
    const { status, body } = await postPrompt(stack.holdover.url, { prompt: graph });
    expect(status).toBe(200);
    expect(Object.keys(body.node_errors)).toEqual(['99']);
    expect(body.node_errors['99'].errors.map(({ type }: any) => type)).toContain(
      'required_input_missing',
    );
    const { url } = stack.holdover;
    const entry: any = await vi.waitUntil(() => entryOf(url, body.prompt_id), { timeout: 30_000 });
    expect(entry.prompt[4]).toEqual(['9']);
  });

  test('a rerun from the cache keeps the name of its file', async () => {
    const graph = growing({ seed: 77, prefix: 'kept-name' });
    const names = [];
    for (let i = 0; i < 2; i++) names.push((await run(graph)).outputs['9'].images[0].filename);
    const view = await fetch(`${stack.holdover.url}/view?filename=${names[1]}`);
    expect([new Set(names).size, view.status]).toEqual([1, 200]);
  });

  test('an animated picture says that it moves', async () => {
    const graph = {
      ...flat({ prefix: 'still' }),
      '5': {
        class_type: 'SaveAnimatedWEBP',
        inputs: {
          images: ['1', 0],
          filename_prefix: 'moves',
          fps: 6,
          lossless: true,
          quality: 80,
          method: 'default',
        },
      },
    };
    const { outputs } = await run(graph);
    expect(outputs['5'].animated).toEqual([true]);
    expect(outputs['9'].animated).toBeUndefined();
  });
});
