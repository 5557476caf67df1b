import { CallWrapper, ComfyApi, PromptBuilder } from '@saintno/comfyui-sdk';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import {
  NOT_A_PICTURE,
  formatOf,
  pngOf,
  untilRunning,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { endless, flat, growing, loading } from '../support/graphs/workflows.ts';

// @saintno/comfyui-sdk 0.3.1: looks for its prompt in /queue and /history on every status frame,
// and reports it as missing when it is in neither.

type Told = {
  readonly result: any;
  readonly failure: Error | undefined;
  readonly promptId: string | undefined;
  readonly previews: Blob[];
  readonly steps: string[];
};

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

let holdover: Holdover;
let api: ComfyApi;

async function openApi(options: object = {}): Promise<ComfyApi> {
  const opened = new ComfyApi(holdover.url, undefined, {
    customWebSocketImpl: WebSocket as any,
    ...options,
  });
  const connected = new Promise((resolve) => opened.on('connected', resolve as () => void));
  opened.init(1, 100);
  await opened.waitForReady();
  await connected;
  return opened;
}

/** Runs a workflow through the SDK's own job wrapper and notes what its callbacks are told. */
async function call(graph: object, client = api): Promise<Told> {
  const previews: Blob[] = [];
  const steps: string[] = [];
  let failure: Error | undefined;
  let promptId: string | undefined;
  const builder = new PromptBuilder(graph as any, [], ['pictures']).setOutputNode('pictures', '9');
  const result = await new CallWrapper(client, builder)
    .onPending((id) => void (promptId = id))
    .onPreview((blob) => void previews.push(blob))
    .onProgress(({ value, max }) => void steps.push(`${value}/${max}`))
    .onFailed((error) => void (failure = error))
    .run();
  return { result, failure, promptId, previews, steps };
}

function expectWorkflow(previewed: boolean): void {
  test(`a workflow finishes with its pictures, progress and previews: ${previewed}`, async () => {
    const { result, failure, previews, steps } = await call(
      growing({ prefix: 'snt', seed: 31, steps: 40 }),
    );
    expect(failure).toBeUndefined();
    expect(result.pictures.images).toMatchObject([
      { filename: 'snt_00001_.png', subfolder: '', type: 'output' },
    ]);
    expect(steps.at(-1)).toBe('40/40');
    expect(previews.length > 0).toBe(previewed);
    const looks = await Promise.all(
      previews.map(async (blob) => formatOf(await blob.arrayBuffer())),
    );
    expect(looks.filter((look) => !look.startsWith('jpeg '))).toEqual([]);
    const picture = await api.getImage(result.pictures.images[0]);
    expect(await formatOf(await picture.arrayBuffer())).toBe('png 64x64');
  });
}

describe('with --preview-method auto', () => {
  beforeAll(async () => {
    holdover = await startHoldover({ args: ['--preview-method', 'auto'] });
    api = await openApi();
  });
  afterAll(async () => {
    api.destroy();
    await holdover.dispose();
  });

  expectWorkflow(true);
});

describe('with default settings', () => {
  beforeAll(async () => {
    holdover = await startHoldover();
    api = await openApi();
    await uploadInput(holdover.url, { bytes: NOT_A_PICTURE, name: 'corrupt.png' });
  });
  afterAll(async () => {
    api.destroy();
    await holdover.dispose();
  });

  expectWorkflow(false);

  test('a cached workflow finishes with the same pictures', async () => {
    const graph = growing({ prefix: 'snt-cached', seed: 32 });
    const first = await call(graph);
    const second = await call(graph);
    expect(second.failure).toBeUndefined();
    expect(second.result).toEqual(first.result);
    expect(second.promptId).not.toBe(first.promptId);
  });

  test('a failing workflow is reported as failed', async () => {
    const { result, failure, promptId } = await call(loading('corrupt.png'));
    expect(result).toBe(false);
    expect(failure).toBeInstanceOf(Error);
    const { status } = (await api.getHistory(promptId!))!;
    expect(status.status_str).toBe('error');
    expect(status.messages.at(-1)).toMatchObject(['execution_error', { node_id: '3' }]);
  });

  test('a workflow that fails after a while carries v1’s exception as the cause', async () => {
    const { result, failure, promptId } = await call(
      growing({ seed: 33, steps: 40, prefix: '../../escape' }),
    );
    expect(result).toBe(false);
    expect(failure?.name).toBe('CustomEventError');
    expect(failure?.cause).toMatchObject({
      prompt_id: promptId,
      node_id: '9',
      node_type: 'SaveImage',
      executed: ['1'],
      exception_message: expect.any(String),
      traceback: expect.any(Array),
    });
  });

  test('an interrupted workflow is reported as interrupted', async () => {
    const running = call(endless());
    await untilRunning(holdover.url);
    await api.interrupt();
    const { result, failure } = await running;
    expect(result).toBe(false);
    expect(failure?.name).toBe('ExecutionInterruptedError');
  });

  test('a refused workflow is reported with v1’s body as the cause', async () => {
    const { result, failure } = await call({ '9': { class_type: 'KSampler', inputs: {} } });
    expect(result).toBe(false);
    expect(failure).toBeInstanceOf(Error);
  });

  test('five workflows at once all finish, none goes missing', async () => {
    const told = await Promise.all(
      [1, 2, 3, 4, 5].map((seed) =>
        call(growing({ seed: 100 + seed, steps: 10, prefix: `snt-${seed}` })),
      ),
    );
    expect(told.map(({ failure }) => failure)).toEqual(Array(5).fill(undefined));
    expect(told.map(({ result }) => result.pictures.images[0].filename)).toEqual(
      [1, 2, 3, 4, 5].map((seed) => `snt-${seed}_00001_.png`),
    );
  });

  test('uploadImage, uploadMask and getImage keep what they are given', async () => {
    const bytes = await pngOf();
    const uploaded = await api.uploadImage(bytes, 'snt in.png', {
      override: true,
      subfolder: 'sub',
    });
    expect(uploaded).toMatchObject({
      info: { filename: 'snt in.png', subfolder: 'sub', type: 'input' },
    });
    const { info } = uploaded as { info: any };
    const seen = await api.getImage(info);
    expect(Buffer.from(await seen.arrayBuffer()).equals(bytes)).toBe(true);
    const mask = await api.uploadMask(await pngOf(), info);
    expect(mask).toMatchObject({ info: { filename: 'mask.png', type: 'input' } });
    const masked = await api.getImage((mask as { info: any }).info);
    expect(await formatOf(await masked.arrayBuffer())).toBe('png 30x20');
    const { result } = await call(loading('sub/snt in.png', 'snt-loaded'));
    expect(result.pictures.images[0].filename).toBe('snt-loaded_00001_.png');
  });

  test('queue and history calls show and forget prompts', async () => {
    const head = await api.appendPrompt(endless({ seed: 41 }));
    const next = await api.appendPrompt(endless({ seed: 42 }));
    const front = await api.queuePrompt(-1, flat({ color: 41 }));
    const queue = await api.getQueue();
    expect(queue.queue_running.map((item: any) => item[1])).toEqual([head.prompt_id]);
    expect(queue.queue_pending.map((item: any) => item[1])).toEqual([
      front.prompt_id,
      next.prompt_id,
    ]);
    expect((await api.pollStatus()).exec_info.queue_remaining).toBe(3);
    await api.manageQueue({ delete: [next.prompt_id] } as any);
    await api.interrupt();
    await expect.poll(async () => (await api.pollStatus()).exec_info.queue_remaining).toBe(0);
    expect(Object.keys(await api.getHistories(3)).length).toBe(3);
    expect((await api.getHistory(front.prompt_id))!.status.completed).toBe(true);
    await api.clearHistory({ delete: [front.prompt_id] });
    expect(await api.getHistory(front.prompt_id)).toBeUndefined();
  });

  test('the calls of a start are answered in v1’s shapes', async () => {
    expect(api.isReady).toBe(true);
    expect(api.osType).toBe(process.platform);
    expect(await api.getExtensions()).toEqual([]);
    expect(await api.getEmbeddings()).toEqual([]);
    expect(await api.getCheckpoints()).toEqual([]);
    expect(Object.keys((await api.getNodeDefs('LoadImage'))!)).toEqual(['LoadImage']);
    expect(await api.getNodeDefs('NoSuchNode')).toBeNull();
    expect((await api.getFeatures()).supports_preview_metadata).toBe(true);
    expect(await api.getModelTypes()).toContain('loras');
    expect(await api.getModels('loras')).toEqual([]);
    const { entries } = await api.getTerminalLogs();
    expect(entries.filter(({ t, m }) => typeof t !== 'string' || typeof m !== 'string')).toEqual(
      [],
    );
    expect(await api.freeMemory(true, true)).toBe(true);
    await api.setTerminalSubscription(true);
  });
});

describe('with --local-token', () => {
  beforeAll(async () => {
    holdover = await startHoldover({ args: ['--local-token', 'open-sesame'] });
  });
  afterAll(() => holdover.dispose());

  test.each([
    [{ type: 'bearer_token', token: 'open-sesame' }],
    [{ type: 'basic', username: 'anybody', password: 'open-sesame' }],
    [{ type: 'custom', headers: { 'X-API-Key': 'open-sesame' } }],
  ])('credentials %j open HTTP and the socket', async (credentials) => {
    const client = await openApi({ credentials });
    const { result } = await call(flat({ prefix: credentials.type }), client);
    expect(result.pictures.images).toHaveLength(1);
    client.destroy();
  });

  test('a wrong credential is an auth_error event', async () => {
    const refused = new Promise<any>((resolve) => {
      const credentials = { type: 'bearer_token', token: 'wrong' } as const;
      const client = new ComfyApi(holdover.url, undefined, { credentials });
      client.on('auth_error', resolve);
    });
    expect((await refused).detail.status).toBe(401);
  });
});
