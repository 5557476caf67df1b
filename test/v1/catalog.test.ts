import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LosslessNumber } from '../../src/protocol/json.ts';
import type { ClassInfo, ObjectInfo } from '../../src/protocol/v1.ts';
import { fixedDefinitions } from '../support/app/definitions.ts';
import { type TestApp, createTestApp, place } from '../support/app/v1-routes.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

function classInfo(required: ClassInfo['input'][string]): ClassInfo {
  return {
    input: { required },
    input_order: { required: Object.keys(required) },
    output: [],
    output_is_list: [],
    output_name: [],
    name: 'x',
    display_name: null,
    description: '',
    python_module: 'nodes',
    category: 'image',
    output_node: false,
  };
}

const REMOTE = { route: '/internal/files/output', refresh_button: true };
const INFO: ObjectInfo = {
  LoadImage: classInfo({ image: [['shipped.png'], { image_upload: true }] }),
  LoadVideo: classInfo({
    file: ['COMBO', { multiselect: false, options: [], video_upload: true }],
  }),
  LoadAudio: classInfo({ audio: [[], { audio_upload: true }] }),
  LoadImageOutput: classInfo({
    image: ['COMBO', { image_upload: true, image_folder: 'output', remote: REMOTE }],
  }),
  Seeded: classInfo({
    seed: ['INT', { default: 0, max: new LosslessNumber('18446744073709551615') }],
  }),
};

let app: TestApp;
beforeEach(async () => {
  app = await createTestApp({
    definitions: fixedDefinitions(INFO),
    info: { features: { supports_preview_metadata: true }, version: '1.2.3' },
  });
});
afterEach(() => app.close());

/** Parsed JSON to look around in. */
type Tree = { readonly [key: string]: Tree | undefined };

async function json(path: string, user = 'local'): Promise<Tree> {
  const answer = await app.ask(path, { user });
  expect([answer.status, answer.headers['content-type']]).toEqual([200, JSON_TYPE]);
  return JSON.parse(answer.body.toString()) as Tree;
}

function send(method: string, path: string, body: string, type = 'application/json') {
  return app.ask(path, { method, body, headers: { 'Content-Type': type } });
}

describe('/object_info', () => {
  async function options(path = '/object_info', user = 'local'): Promise<unknown[]> {
    const info = await json(path, user);
    const [image, video, audio] = ['LoadImage', 'LoadVideo', 'LoadAudio'].map(
      (name) => info[name]?.input?.required,
    );
    return [image?.image?.[0], video?.file?.[1]?.options, audio?.audio?.[0]];
  }

  test('lists the files directly in the input folder, by kind, sorted, in either style of combo', async () => {
    for (const name of ['b.png', 'a.webp', 'Z.jpg', 'c.mp4', 'd.flac', 'e.txt', '猫.png'])
      await place(app, name, 'x');
    await place(app, 'deep.png', 'x', { subfolder: 'sub' });
    await place(app, 'out.png', 'x', { type: 'output' });
    await place(app, 'theirs.png', 'x', { user: 'other' });
    const files = [['Z.jpg', 'a.webp', 'b.png', '猫.png'], ['c.mp4'], ['c.mp4', 'd.flac']];
    expect(await options()).toEqual(files);
    expect(await options('/object_info', 'other')).toEqual([['theirs.png'], [], []]);
    expect(await options('/object_info/LoadImage')).toEqual([files[0], undefined, undefined]);
  });

  test('shows a file uploaded since the last call', async () => {
    expect(await options()).toEqual([[], [], []]);
    await place(app, 'new.png', 'x');
    expect(await options()).toEqual([['new.png'], [], []]);
  });

  test('leaves everything else as it is, numbers to the digit', async () => {
    const text = (await app.ask('/object_info')).body.toString();
    expect(text).toContain('"max": 18446744073709551615');
    expect(Object.keys(JSON.parse(text))).toEqual(Object.keys(INFO));
    expect(JSON.parse(text).LoadImageOutput).toEqual(INFO['LoadImageOutput']);
  });

  test.each(['NoSuchClass', 'Primitive%20boolean%20%5BCrystools%5D', '__proto__', 'toString'])(
    'answers 200 {} for %s',
    async (name) => expect(await json(`/object_info/${name}`)).toEqual({}),
  );
});
describe('/system_stats', () => {
  test('does not tell the command line, which may hold a token', async () => {
    expect((await json('/system_stats')).system?.argv).toEqual(['holdover']);
  });
});

test('/features tells what the socket negotiates', async () => {
  expect(await json('/api/features')).toEqual({ supports_preview_metadata: true });
});

describe('/internal/files/:type', () => {
  test('lists the newest first, top level only, of this user', async () => {
    await place(app, 'older.png', 'x');
    await place(app, 'newer.txt', 'x');
    await place(app, 'deep.png', 'x', { subfolder: 'sub' });
    await place(app, 'theirs.png', 'x', { user: 'other' });
    expect(await json('/internal/files/input')).toEqual(['newer.txt [input]', 'older.png [input]']);
  });

  test('has no alias under /api', async () => {
    expect((await app.ask('/api/internal/files/input')).status).toBe(404);
  });
});

describe('/settings', () => {
  test('are merged shallowly whatever the content type says, digit by digit, per user', async () => {
    const first = await send(
      'POST',
      '/settings',
      '{"Comfy.X":18446744073709551615,"Comfy.Y":"two"}',
      'text/plain;charset=UTF-8',
    );
    expect([first.status, first.body.length, first.headers['content-type']]).toEqual([
      200,
      0,
      undefined,
    ]);
    await send('POST', '/settings', '{"Comfy.Y":[1,2]}');
    await send('POST', '/settings/Comfy.Z', '{"a":null}');
    const all = await app.ask('/settings');
    expect(all.body.toString()).toBe(
      '{"Comfy.X": 18446744073709551615, "Comfy.Y": [1, 2], "Comfy.Z": {"a": null}}',
    );
    expect(await json('/settings', 'other')).toEqual({});
    expect(await json('/settings/Comfy.Z')).toEqual({ a: null });
  });

  test.each([
    ['application/json; charset=ISO-8859-1', 'latin1'],
    ['text/plain;charset=utf-16', 'utf16le'],
  ] as const)('are read in the charset of %s', async (type, charset) => {
    const body = Buffer.from('"lät"', charset);
    const headers = { 'Content-Type': type };
    await app.ask('/settings/Comfy.Charset', { method: 'POST', body, headers });
    expect(await json('/settings/Comfy.Charset')).toBe('lät');
  });

  test('of megabytes are sent in pieces, so that other calls need not wait', async () => {
    const value = JSON.stringify(Array.from({ length: 20_000 }, () => 'a saved value'));
    const ids = ['a', 'b', 'c', 'd', 'e'];
    for (const id of ids) await send('POST', `/settings/${id}`, value);
    const { headers, body } = await app.ask('/settings');
    expect(headers['content-length']).toBeUndefined();
    const shown = value.replaceAll(',', ', ');
    expect(body.toString()).toBe(`{${ids.map((id) => `"${id}": ${shown}`).join(', ')}}`);
  });

  test.each(['Comfy.Never', '__proto__', 'toString'])(
    '%s, which was never set, is null',
    async (id) => {
      expect(await json(`/settings/${id}`)).toBeNull();
    },
  );
});

test.each([
  ['{"clientId":"a","enabled":true}', 200],
  ['{"clientId":"a","enabled":false}', 200],
  ['{"clientId":"a"}', 400],
  ['[]', 400],
])('PATCH /internal/logs/subscribe %s → %i', async (body, status) => {
  expect((await send('PATCH', '/internal/logs/subscribe', body)).status).toBe(status);
});

test.each([
  ['bytes=0-0', 206, 'bytes 0-0/10'],
  ['bytes=9-1', 416, 'bytes */10'],
])('a saved file with Range: %s → %i, as /view', async (range, status, contentRange) => {
  await send('POST', '/userdata/ten.txt', '0123456789');
  const answer = await app.ask('/userdata/ten.txt', { headers: { Range: range } });
  expect([answer.status, answer.headers['content-range']]).toEqual([status, contentRange]);
});

test.each(['/manager/version', '/view_metadata/checkpoints?filename=x.safetensors'])(
  '%s is an empty 404',
  async (path) => {
    const answer = await app.ask(path);
    expect([answer.status, answer.body.length]).toEqual([404, 0]);
  },
);
