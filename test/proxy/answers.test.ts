import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  entryOf,
  interrupt,
  pngOf,
  pngText,
  untilRunning,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, growing, loading } from '../support/graphs/workflows.ts';
import { type Stack, editQueue, notRun, openStack } from './open.ts';

// Holdover fills in parts of answers that the real self-hosted server leaves out.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Less than the server's own 15 s. */
const SOON = { timeout: 8_000, interval: 20 };
const EMPTY = { running: [], pending: [] };
const ALICE = { 'X-API-Key': 'alice' };
const BOB = { 'X-API-Key': 'bob' };

describe.skipIf(notRun !== '')(`answers in front of comfy-api-proxy${notRun}`, () => {
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
    expect(await refusal(unknown)).toEqual([400, 'missing_node_type', "Node ID '#7'"]);
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

  // The server tells of the end of a prompt late, or not at all.
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
    expect(socket.outline(waiting[0] ?? '')).toContain('executing:null');
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

  describe('the server knows no users, and has one input folder: uploads', () => {
    /** Where the engine has alice's file. */
    let path: string;
    beforeAll(async () => {
      await uploadInput(stack.holdover.url, { bytes: await pngOf(), name: 'hers.png' }, ALICE);
      const files = await getJson(`${stack.engine.url}/internal/files/input`);
      path =
        /holdover-[0-9a-f]{16}\/[0-9a-f]{64}\.png/.exec(JSON.stringify(files))?.[0] ??
        (await embedded());
    });

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

  // It has one asset for equal bytes, whichever user sent them.
  async function pictureOf(graph: object, prefix: string): Promise<Buffer> {
    const { url } = stack.holdover;
    const { status, body } = await postPrompt(url, { prompt: graph }, { headers: BOB });
    expect([status, body.error]).toEqual([200, undefined]);
    const entry: any = await vi.waitUntil(() => entryOf(url, body.prompt_id, BOB), {
      timeout: 30_000,
    });
    expect(entry.status.status_str).toBe('success');
    const [file] = entry.outputs['9'].images;
    expect(file.filename).toMatch(prefix);
    const query = new URLSearchParams(file);
    const answer = await fetch(`${url}/view?${query}`, { headers: BOB });
    return Buffer.from(await answer.arrayBuffer());
  }

  test('a picture does not tell what another user called the same bytes, and its graph runs again', async () => {
    const { url } = stack.holdover;
    const bytes = await pngOf();
    await uploadInput(url, { bytes, name: 'secret-project-x.png' }, ALICE);
    await uploadInput(url, { bytes, name: 'holiday (é) 😀.png' }, BOB);
    const picture = await pictureOf(loading('holiday (é) 😀.png', 'made'), 'made');
    expect(picture.toString('latin1')).not.toContain('secret-project');
    const embedded = JSON.parse(pngText(picture, 'prompt') ?? '');
    expect(embedded['3'].inputs.image).toMatch(/^holdover-[0-9a-f]{16}\/[0-9a-f]{64}\.png$/);
    embedded['9'].inputs.filename_prefix = 'again';
    await pictureOf(embedded, 'again');
  });
});
