import { Client, Workflow } from '@stable-canvas/comfyui-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import {
  NOT_A_PICTURE,
  formatOf,
  untilRunning,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { endless, flat, growing, loading } from '../support/graphs/workflows.ts';
import { testedUpstream } from '../support/upstreams/tested-upstream.ts';

// @stable-canvas/comfyui-client 1.5.9. It takes every binary frame of its running prompt for a
// result: programs are sent no previews unless they, or the server's settings, ask for them.

type Image = { type: string; data: string | ArrayBuffer; mime?: string };
type Graph = Parameters<Client['enqueue']>[0];

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

let holdover: Holdover;
let client: Client;

const urlsOf = (images: readonly Image[]): string[] =>
  images.flatMap(({ data }) => (typeof data === 'string' ? [data] : []));
const lookAt = async (url: string): Promise<string> =>
  formatOf(await (await fetch(url)).arrayBuffer());
const asGraph = (graph: object): Graph => graph as Graph;

/** The same run as its fluent builder makes it. */
function built(options: { seed: number; prefix: string; steps?: number }): Workflow {
  const workflow = new Workflow();
  const { ReactionDiffusion, SaveImage } = workflow.classes as any;
  const { seed, steps = 12, prefix } = options;
  const size = { width: 64, height: 64 };
  const [image] = ReactionDiffusion({ ...size, seed, steps, feed: 0.055, kill: 0.062 });
  SaveImage({ images: image, filename_prefix: prefix });
  return workflow;
}

function loadingWorkflow(image: string): Workflow {
  const workflow = new Workflow();
  const { LoadImage, SaveImage } = workflow.classes as any;
  const [picture] = LoadImage({ image });
  SaveImage({ images: picture, filename_prefix: 'never' });
  return workflow;
}

async function open(): Promise<void> {
  client = new Client({ api_host: `127.0.0.1:${holdover.port}`, WebSocket });
  await client.connect();
}

/** A run answers so many previews beside its picture. */
function expectPreviews(fewest: number, previews: number): void {
  test(`enqueue answers one link to the saved picture and up to ${previews} previews`, async () => {
    const steps: number[] = [];
    const { images, prompt_id: id } = await client.enqueue(asGraph(growing({ prefix: 'enq' })), {
      progress: ({ value, max }) => void steps.push(value / max),
    });
    const [url] = urlsOf(images);
    expect(url).toBe(
      `http://127.0.0.1:${holdover.port}/view?filename=enq_00001_.png&subfolder=&type=output`,
    );
    expect(await lookAt(url!)).toBe('png 64x64');
    expect(steps[0]).toBe(1 / 12);
    expect(steps.at(-1)).toBe(1);
    const buffers = images.filter(({ type }) => type === 'buff');
    expect(buffers.length).toBeGreaterThanOrEqual(fewest);
    expect(buffers.length).toBeLessThanOrEqual(previews);
    const looks = await Promise.all(buffers.map(({ data }) => formatOf(data as ArrayBuffer)));
    expect(looks.filter((look) => !look.startsWith('jpeg '))).toEqual([]);
    expect((await client.getPromptOutputs(id))['9']).toBeDefined();
  });

  test(`invoke answers one link to the saved picture and up to ${previews} previews`, async () => {
    const { images } = await built({ seed: 21, prefix: 'inv' }).invoke(client);
    expect(urlsOf(images)).toHaveLength(1);
    expect(await lookAt(urlsOf(images)[0]!)).toBe('png 64x64');
    const buffers = images.filter(({ type }) => type === 'buff');
    expect(buffers.length).toBeGreaterThanOrEqual(fewest);
    expect(buffers.length).toBeLessThanOrEqual(previews);
  });
}

describe('with --preview-method auto', () => {
  beforeAll(async () => {
    holdover = await startHoldover({ args: ['--preview-method', 'auto'] });
    await open();
  });
  afterAll(async () => {
    client.close();
    await holdover.dispose();
  });

  // They come by time: a short run has the one of its last step.
  expectPreviews(1, 12);
});

describe('with default settings, in every mode of waiting', () => {
  beforeAll(async () => {
    holdover = await startHoldover();
    await uploadInput(holdover.url, { bytes: NOT_A_PICTURE, name: 'corrupt.png' });
  });
  afterAll(() => holdover.dispose());
  beforeEach(open);
  afterEach(() => client.close());

  expectPreviews(0, 0);

  test.each([
    ['enqueue', () => client.enqueue(asGraph(growing({ seed: 1 })))],
    [
      'enqueue_polling',
      () => client.enqueue_polling(asGraph(growing({ seed: 2 })), { polling_ms: 50 }),
    ],
    ['runPrompt', () => client.runPrompt(asGraph(growing({ seed: 3 })), { polling_ms: 50 })],
    ['invoke', () => built({ seed: 4, prefix: 'a' }).invoke(client)],
    [
      'invoke_polling',
      () => built({ seed: 5, prefix: 'b' }).invoke_polling(client, { polling_ms: 50 }),
    ],
  ])('%s ends with the picture, also when everything is cached', async (_mode, run) => {
    const first = urlsOf((await run()).images);
    const second = await run();
    expect(first).toHaveLength(1);
    expect(await lookAt(first[0]!)).toBe('png 64x64');
    expect(urlsOf(second.images)).toEqual(first);
    expect(second.images).toHaveLength(1);
  });

  test.each([
    [
      'enqueue',
      () => client.enqueue(asGraph(loading('corrupt.png'))),
      /cannot identify image file/,
    ],
    [
      'enqueue_polling',
      () => client.enqueue_polling(asGraph(loading('corrupt.png')), { polling_ms: 50 }),
      /failed with status: error/,
    ],
    ['invoke', () => loadingWorkflow('corrupt.png').invoke(client), /cannot identify image file/],
  ])('%s rejects when the workflow fails', async (_mode, run, reason) => {
    await expect(run()).rejects.toThrow(reason);
  });

  test('a waiting workflow rejects as interrupted when it interrupts itself', async () => {
    const invoked = built({ seed: 6, prefix: 'never', steps: 10_000 }).instance(client);
    await invoked.enqueue();
    const outcome = expect(invoked.wait()).rejects.toThrow('interrupted');
    await untilRunning(holdover.url);
    await invoked.interrupt();
    await outcome;
    // As with the original, its history is written after the interruption was told.
    await expect
      .poll(() => invoked.query())
      .toEqual({ running: false, pending: false, done: true });
  });

  test('a waiting workflow rejects as interrupted when it is deleted from the queue unstarted', async () => {
    const head = await client._enqueue_prompt(asGraph(endless({ seed: 61 })));
    const invoked = built({ seed: 62, prefix: 'never' }).instance(client);
    await invoked.enqueue();
    expect(await invoked.query()).toMatchObject({ pending: true });
    const outcome = expect(invoked.wait()).rejects.toThrow('interrupted');
    await invoked.interrupt();
    await outcome;
    await client.interrupt(head.prompt_id);
    await client.waitForPrompt(head.prompt_id, 20);
  });

  test('enqueue_polling rejects when another client interrupts the workflow', async () => {
    const outcome = expect(
      client.enqueue_polling(asGraph(endless({ seed: 63 })), { polling_ms: 50 }),
    ).rejects.toThrow('failed with status: error');
    await client.interrupt(await untilRunning(holdover.url));
    await outcome;
  });

  test('a refused workflow rejects with v1’s node_errors parsed from the 400', async () => {
    const graph = asGraph({ '1': { class_type: 'KSampler', inputs: {} } });
    await expect(client.enqueue(graph)).rejects.toMatchObject({
      status: 400,
      json: { error: { type: expect.any(String), message: expect.stringContaining('KSampler') } },
    });
  });

  test('getQueue, getHistory, deleteItem and clearItems show and forget prompts', async () => {
    const { prompt_id: id } = await client.enqueue(asGraph(flat({ color: 1 })));
    await client.waitForPrompt(id, 10);
    const ids = async () => (await client.getHistory(5)).History.map(({ prompt }) => prompt[1]);
    expect(await ids()).toContain(id);
    await client.deleteItem('history', id);
    expect(await ids()).not.toContain(id);
    const { prompt_id: running } = await client._enqueue_prompt(asGraph(endless({ seed: 64 })));
    const { prompt_id: waiting } = await client._enqueue_prompt(asGraph(endless({ seed: 65 })));
    const queue = await client.getQueue();
    expect(queue.Running.map((item: any) => item[1])).toEqual([running]);
    expect(queue.Pending.map((item: any) => item[1])).toEqual([waiting]);
    await client.clearItems('queue');
    await client.waitForPrompt(waiting, 10);
    await client.interrupt();
    await client.waitForPrompt(running, 10);
    await client.clearItems('history');
    expect(await ids()).toEqual([]);
  });

  test('the calls of a start are answered in v1’s shapes', async () => {
    expect(await client.getExtensions()).toEqual([]);
    expect(await client.getEmbeddings()).toEqual([]);
    expect((await client.getSystemStats()).devices).toHaveLength(1);
    expect((await client.getNodeDefs())['SaveImage']!.output_node).toBe(true);
    // A Holdover in front shows what the one behind runs.
    const isEmbedded = testedUpstream() !== 'remote';
    expect((await client.getSamplers()).includes('euler')).toBe(isEmbedded);
    expect(await client.getUserConfig()).toMatchObject({ storage: 'server' });
    expect(await client.getSettings()).toEqual({});
    expect((await client.getModelFolders()).map(({ name }) => name)).toContain('checkpoints');
    expect(await client.getModels('checkpoints')).toEqual([]);
    await client.free({ unload_models: true, free_memory: true });
  });

  test('connect with polling is satisfied by /system_stats and needs no socket', async () => {
    const poller = new Client({ api_host: `127.0.0.1:${holdover.port}`, WebSocket });
    expect(
      await poller.connect({ polling: { enabled: true }, websocket: { enabled: false } }),
    ).toBe(true);
    const { images } = await poller.enqueue_polling(asGraph(growing({ seed: 70 })), {
      polling_ms: 50,
    });
    expect(images).toHaveLength(1);
    poller.close();
  });
});
