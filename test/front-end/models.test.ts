import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClassInfo, ObjectInfo } from '../../src/protocol/v1.ts';
import { fixedDefinitions } from '../support/app/definitions.ts';
import { type TestApp, createTestApp } from '../support/app/v1-routes.ts';

const loader = (name: string, required: ClassInfo['input'][string]): ClassInfo => ({
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

const INFO: ObjectInfo = {
  CheckpointLoaderSimple: loader('CheckpointLoaderSimple', {
    ckpt_name: [['a.safetensors', 'sub/b.ckpt'], { tooltip: 'x' }],
  }),
  UpscaleModelLoader: loader('UpscaleModelLoader', {
    model_name: ['COMBO', { options: ['4x.pth'] }],
  }),
  VAELoader: loader('VAELoader', { vae_name: [['real.safetensors', 'pixel_space']] }),
  LoraLoader: loader('LoraLoader', { another_input: [['x.safetensors']] }),
};

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ definitions: fixedDefinitions(INFO) });
});
afterAll(() => app.close());

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
    const answer = await app.ask(path);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, expected]);
  });

  test.each(['/models/unet', '/models/__proto__', '/experiment/models/configs'])(
    '%s is no folder: 404',
    async (path) => expect((await app.ask(path)).status).toBe(404),
  );
});
