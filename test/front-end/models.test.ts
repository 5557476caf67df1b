import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

const loader = (name: string, required: object): object => ({
  input: { required },
  input_order: { required: Object.keys(required) },
  output: [],
  output_is_list: [],
  output_name: [],
  name,
  display_name: name,
  description: '',
  python_module: 'nodes',
  category: 'loaders',
  output_node: false,
});

const INFO = {
  CheckpointLoaderSimple: loader('CheckpointLoaderSimple', {
    ckpt_name: [['a.safetensors', 'sub/b.ckpt'], { tooltip: 'x' }],
  }),
  UpscaleModelLoader: loader('UpscaleModelLoader', {
    model_name: ['COMBO', { options: ['4x.pth'] }],
  }),
  VAELoader: loader('VAELoader', { vae_name: [['real.safetensors', 'pixel_space']] }),
  LoraLoader: loader('LoraLoader', { another_input: [['x.safetensors']] }),
};

let dir: string;
let holdover: Holdover;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdover-models-'));
  const file = join(dir, 'object_info.json');
  await writeFile(file, JSON.stringify(INFO));
  holdover = await startHoldover({ args: ['--object-info', file], upstream: 'embedded' });
});
afterAll(async () => {
  await holdover.dispose();
  await rm(dir, { recursive: true });
});

describe('/models/{folder} lists what the node definitions offer', () => {
  test.each([
    ['/models/checkpoints', ['a.safetensors', 'sub/b.ckpt']],
    ['/models/upscale_models', ['4x.pth']],
    ['/models/vae', ['real.safetensors']],
    ['/models/loras', []],
    ['/models/clip_vision', []],
    ['/models/embeddings', []],
    [
      '/api/experiment/models/checkpoints',
      [
        { name: 'a.safetensors', pathIndex: 0 },
        { name: 'sub/b.ckpt', pathIndex: 0 },
      ],
    ],
  ])('%s: %j', async (path, expected) => {
    const answer = await call(holdover.url, path);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, expected]);
  });

  test.each(['/models/unet', '/models/__proto__', '/experiment/models/configs'])(
    '%s is no folder: 404',
    async (path) => expect((await call(holdover.url, path)).status).toBe(404),
  );
});
