import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Called } from '../../support/clients/raw-call.ts';
import { type TestApp, type Part, multipart, createTestApp } from '../../support/app/v1-routes.ts';

let app: TestApp;
beforeEach(async () => {
  app = await createTestApp({ uploads: { maxUploadBytes: 64 * 1024 } });
});
afterEach(() => app.close());

function send(filename: string, data: Buffer | string, ...more: Part[]): Promise<Called> {
  return app.ask('/upload/image', multipart({ name: 'image', filename, data }, ...more));
}

async function stored(
  filename: string,
  data: Buffer | string,
  ...more: Part[]
): Promise<Record<string, string>> {
  const answer = await send(filename, data, ...more);
  expect(answer.status).toBe(200);
  return JSON.parse(answer.body.toString());
}

async function viewed(name: string, query = 'type=input'): Promise<string> {
  return (await app.ask(`/view?${query}&filename=${encodeURIComponent(name)}`)).body.toString();
}

describe('overwrite', () => {
  test.each([
    ['true', 'new'],
    ['1', 'new'],
    ['True', 'old'],
    ['yes', 'old'],
    ['', 'old'],
  ])('%j leaves the %s bytes under the name', async (value, left) => {
    await stored('cat.png', 'old');
    await stored('cat.png', 'new', { name: 'overwrite', value });
    expect(await viewed('cat.png')).toBe(left);
  });

  test('sent as a file part counts as well', async () => {
    await stored('cat.png', 'old');
    const { name } = await stored('cat.png', 'new', {
      name: 'overwrite',
      filename: 'blob',
      data: 'true',
    });
    expect([name, await viewed('cat.png')]).toEqual(['cat.png', 'new']);
  });
});

describe('without overwrite', () => {
  test('twenty different files of one name at once get twenty names', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stored('cat.png', `bytes ${i}`)),
    );
    expect(new Set(answers.map(({ name }) => name)).size).toBe(20);
    const contents = await Promise.all(answers.map(({ name = '' }) => viewed(name)));
    expect(contents).toEqual(Array.from({ length: 20 }, (_, i) => `bytes ${i}`));
  });

  test('twenty equal files of one name at once are one file', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => stored('cat.png', 'same')));
    expect(new Set(answers.map(({ name }) => name))).toEqual(new Set(['cat.png']));
    expect(app.assets.held.size).toBe(1);
  });

  test('bytes the user has already are not sent again', async () => {
    await stored('a.png', 'same');
    await stored('b.png', 'same');
    expect(app.assets.calls).toEqual(['createAsset', 'assetFromHash']);
  });

  test('the same bytes again are stored anew when the asset is gone upstream', async () => {
    await stored('cat.png', 'bytes');
    app.assets.lose('asset-1');
    expect(await stored('cat.png', 'bytes')).toMatchObject({ name: 'cat.png' });
    expect(await viewed('cat.png')).toBe('bytes');
  });
});

describe('names', () => {
  test.each([
    'CON',
    'NUL.png',
    'Com1.txt',
    'a.png.',
    '猫'.repeat(86),
    'a.png::$DATA',
    '.htaccess',
    'a'.repeat(256),
    '.',
    '..',
    '/etc/passwd',
    '../evil.png',
    'nodir/x.png',
    'a\u202eb.png',
    '',
  ])('%s is refused and nothing is left of it', async (filename) => {
    expect((await send(filename, 'x')).status).toBe(400);
    expect([app.assets.held.size, await app.spooled()]).toEqual([0, []]);
  });

  test.each([
    '-rf',
    '~',
    '猫.png',
    '10:30.png',
    'CONSOLE.png',
    '👩‍🚀.png',
    'e\u0301.png',
    'a%0d%0aX: y.png',
    'no extension',
    'v..2.txt',
  ])('%s is kept as it is', async (filename) => {
    expect(await stored(filename, 'x')).toEqual({ name: filename, subfolder: '', type: 'input' });
  });

  test.each([
    ['/photo.png', 'photo.png'],
    ['//photo.png', 'photo.png'],
    ['/\\photo.png', 'photo.png'],
    ['assets\\clip.png', 'clip.png'],
    ['C:\\Users\\u\\own.png', 'own.png'],
    ['blank.png ', 'blank.png'],
  ])('%j is stored as %s', async (filename, name) => {
    expect(await stored(filename, 'x')).toEqual({ name, subfolder: '', type: 'input' });
    expect(await viewed(name)).toBe('x');
  });

  test.each(['.', './', 'a/..'])('subfolder %j is the folder of uploads', async (value) => {
    const field = { name: 'subfolder', value };
    expect(await stored('a.png', 'root', field)).toMatchObject({ subfolder: value });
    expect(await viewed('a.png')).toBe('root');
  });

  test('a file name may begin with the folder it is in', async () => {
    expect((await send('./a.png', 'x')).status).toBe(200);
    expect(await viewed('a.png')).toBe('x');
  });

  test.each([
    '/',
    '/etc',
    '../x',
    'a/../..',
    '..\\b',
    'a/.git',
    '.hid',
    'con',
    'a./b',
    'a/'.repeat(2048),
  ])('subfolder %j is refused', async (value) => {
    const { status, body } = await send('a.png', 'x', { name: 'subfolder', value });
    const error = { message: expect.stringMatching(/\S/), extra_info: {} };
    expect([status, JSON.parse(body.toString())]).toMatchObject([400, { error }]);
  });

  test('a subfolder is echoed as sent and found as resolved', async () => {
    expect(await stored('a.txt', 'deep', { name: 'subfolder', value: 's//t/' })).toMatchObject({
      subfolder: 's//t/',
    });
    expect(await viewed('a.txt', 'type=input&subfolder=s/t')).toBe('deep');
  });

  test('a subfolder never becomes a place upstream', async () => {
    const paths: string[] = [];
    const { createAsset } = app.assets;
    app.assets.createAsset = (caller, upload) => {
      paths.push(upload.filePath);
      return createAsset(caller, upload);
    };
    await stored('x.ckpt', 'x', { name: 'subfolder', value: 'models/checkpoints' });
    expect(paths).toEqual(['input/models/checkpoints/x.ckpt']);
  });
});

describe('the form', () => {
  test('may hold its fields in any order', async () => {
    const parts: Part[] = [
      { name: 'type', value: 'temp' },
      { name: 'image', filename: 'a.txt', data: 'x' },
    ];
    const answer = await app.ask('/upload/image', multipart(...parts));
    expect(JSON.parse(answer.body.toString())).toEqual({
      name: 'a.txt',
      subfolder: '',
      type: 'temp',
    });
  });
});

test.each([
  ['quota', 507, 507],
  ['too many', 429, 503],
  ['unprocessable', 422, 400],
])('a refusal of the v2 side (%s) reaches the client: %i → %i', async (message, status, shown) => {
  app.assets.createAsset = async () => ({
    ok: false,
    error: { status, code: 'x', message, details: null, retryAfterSeconds: 7 },
  });
  const answer = await send('a.txt', 'x');
  const { error } = JSON.parse(answer.body.toString());
  expect([answer.status, error.message, answer.headers['retry-after']]).toEqual([
    shown,
    message,
    '7',
  ]);
});
