import { ComfyUIClient } from 'comfy-ui-client';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  NOT_A_PICTURE,
  interrupt,
  formatOf,
  pngOf,
  untilRunning,
} from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { endless, flat, growing, loading } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

// comfy-ui-client 0.1.2: waits for `executing` with node null, then reads the history at once.

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const holdover = useHoldover();
let client: ComfyUIClient;

beforeAll(async () => {
  client = new ComfyUIClient(`127.0.0.1:${holdover.port}`, 'comfy-ui-client');
  await client.connect();
});
afterAll(() => client.disconnect());

const blobLook = async (blob: Blob): Promise<string> => formatOf(await blob.arrayBuffer());

test('getImages runs a workflow with previews and answers its pictures, not its previews', async () => {
  const images = await client.getImages(growing({ prefix: 'cuc' }) as never);
  expect(Object.keys(images)).toEqual(['9']);
  expect(images['9']!.map(({ image }) => image)).toMatchObject([
    { filename: 'cuc_00001_.png', subfolder: '', type: 'output' },
  ]);
  expect(await blobLook(images['9']![0]!.blob)).toBe('png 64x64');
});

test('getImages answers the same files again when everything is cached', async () => {
  const graph = growing({ prefix: 'cuc-cached', seed: 8 });
  const first = await client.getImages(graph as never);
  const second = await client.getImages(graph as never);
  expect(second['9']![0]!.image).toEqual(first['9']![0]!.image);
  const bytes = async (run: typeof first) => Buffer.from(await run['9']![0]!.blob.arrayBuffer());
  expect((await bytes(second)).equals(await bytes(first))).toBe(true);
});

test('getImages never misses the end of a workflow that is over at once', async () => {
  const graph = flat({ prefix: 'cuc-quick', color: 0x010203 });
  for (let round = 0; round < 25; round++) {
    expect(Object.keys(await client.getImages(graph as never))).toEqual(['9']);
  }
});

test('getImages ends without pictures when the workflow fails, and the history says why', async () => {
  await client.uploadImage(NOT_A_PICTURE, 'cuc-corrupt.png');
  expect(await client.getImages(loading('cuc-corrupt.png') as never)).toEqual({});
  const entries = Object.values(await client.getHistory()) as any[];
  const { status } = entries.at(-1);
  expect(status.status_str).toBe('error');
  expect(status.messages.at(-1)[0]).toBe('execution_error');
  expect(status.messages.at(-1)[1]).toMatchObject({ node_id: '3', node_type: 'LoadImage' });
});

test('getImages ends without pictures when the workflow is interrupted', async () => {
  const running = client.getImages(endless() as never);
  const promptId = await untilRunning(holdover.url);
  // Its own `interrupt` parses the empty answer and throws, as it does against the original.
  await expect(client.interrupt()).rejects.toThrow('JSON');
  expect(await running).toEqual({});
  const { status } = (await client.getHistory(promptId))[promptId] as any;
  expect(status.messages.at(-1)[0]).toBe('execution_interrupted');
});

test('queuePrompt throws v1’s error object when the workflow is refused', async () => {
  const graph = { '1': { class_type: 'KSampler', inputs: {} } };
  await expect(client.queuePrompt(graph)).rejects.toThrow(/"error":.*KSampler.*"node_errors"/s);
});

test('queuePrompt, getQueue, getPrompt and getHistory agree about one prompt', async () => {
  const { prompt_id: id, number, node_errors } = await client.queuePrompt(endless() as never);
  expect({ number: Number.isInteger(number), node_errors }).toEqual({
    number: true,
    node_errors: {},
  });
  const { queue_running: running, queue_pending: pending } = await client.getQueue();
  expect((running as any[]).map((item) => item[1])).toEqual([id]);
  expect(pending).toEqual([]);
  expect(await client.getPrompt()).toEqual({ exec_info: { queue_remaining: 1 } });
  expect(await client.getHistory(id)).toEqual({});
  await interrupt(holdover.url);
});

test('saveImages writes what was generated', async () => {
  const directory = await runFolder('cuc');
  const images = await client.getImages(flat({ prefix: 'cuc-saved', color: 0xff0000 }) as never);
  await client.saveImages(images, directory);
  expect(await formatOf(await readFile(join(directory, 'cuc-saved_00001_.png')))).toBe('png 20x12');
});

test('uploadImage, uploadMask and getImage keep what they are given', async () => {
  const bytes = await pngOf();
  const uploaded = await client.uploadImage(bytes, 'cuc-in.png', true);
  expect(uploaded).toMatchObject({ name: 'cuc-in.png', subfolder: '', type: 'input' });
  const seen = await client.getImage('cuc-in.png', '', 'input');
  expect(seen.type).toBe('image/png');
  expect(Buffer.from(await seen.arrayBuffer()).equals(bytes)).toBe(true);
  const original = { filename: 'cuc-in.png', subfolder: '', type: 'input' };
  const mask = await client.uploadMask(await pngOf(), 'cuc-mask.png', original);
  expect(mask).toMatchObject({ name: 'cuc-mask.png', type: 'input' });
  expect(await blobLook(await client.getImage(mask.name, mask.subfolder, mask.type))).toBe(
    'png 30x20',
  );
});

test('editHistory forgets a prompt, although the client chokes on the empty answer', async () => {
  await client.getImages(flat({ prefix: 'cuc-forgotten', color: 0x00ff00 }) as never);
  const id = Object.keys(await client.getHistory()).at(-1)!;
  await expect(client.editHistory({ delete: [id] })).rejects.toThrow('JSON');
  expect(await client.getHistory(id)).toEqual({});
});

test('getEmbeddings, getExtensions, getSystemStats and getObjectInfo answer in v1’s shapes', async () => {
  expect(await client.getEmbeddings()).toEqual([]);
  expect(await client.getExtensions()).toEqual([]);
  expect((await client.getSystemStats()).devices).toHaveLength(1);
  expect(Object.keys(await client.getObjectInfo('SaveImage'))).toEqual(['SaveImage']);
  expect(Object.keys(await client.getObjectInfo())).toContain('ReactionDiffusion');
});
