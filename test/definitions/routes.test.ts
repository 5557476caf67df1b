import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DefinitionSource, DefinitionsResult } from '../../src/definitions/definitions.ts';
import { toDefinitions } from '../../src/definitions/parse-definitions.ts';
import { LosslessNumber } from '../../src/protocol/json.ts';
import type { ObjectInfo } from '../../src/protocol/v1.ts';
import { fixedDefinitions } from '../support/app/definitions.ts';
import { type TestApp, createTestApp, place } from '../support/app/v1-routes.ts';
import type { Called } from '../support/clients/raw-call.ts';
import { CHOOSER, classes, nodeClass } from './origin.ts';

const PLAIN = nodeClass({
  input: { required: { seed: ['INT', { max: new LosslessNumber('18446744073709551615') }] } },
});
const INFO = { ...classes('A', 'B'), Plain: PLAIN, Chooser: CHOOSER } as unknown as ObjectInfo;

let app: TestApp;
/** The answer of the source from now on. */
let known: () => Promise<DefinitionsResult>;
let demands: number;

beforeEach(async () => {
  demands = 0;
  const fixed = fixedDefinitions(INFO);
  known = () => fixed.current({ user: 'local' });
  const definitions: DefinitionSource = {
    info: fixed.info,
    current: () => known(),
    async refreshed() {
      demands++;
      return known();
    },
  };
  app = await createTestApp({ definitions });
});
afterEach(() => app.close());

const ask = (
  headers: { [name: string]: string } = {},
  path = '/object_info',
  user = 'local',
): Promise<Called> => app.ask(path, { headers, user });

const UNPACK: { readonly [encoding: string]: (body: Buffer) => Buffer } = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  none: (body) => body,
};

function textOf({ headers, body }: Called): string {
  return UNPACK[headers['content-encoding'] ?? 'none']?.(body).toString() ?? '';
}

describe('/object_info', () => {
  test.each([
    ['gzip, deflate, br', 'br'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['*', 'br'],
    ['', undefined],
  ])('for Accept-Encoding %j comes as %s', async (accepted, encoding) => {
    const plain = await ask();
    const answer = await ask({ 'Accept-Encoding': accepted });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-encoding']).toBe(encoding);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers.vary).toBe('Accept-Encoding');
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
    expect(textOf(answer)).toBe(plain.body.toString());
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.body.toString()).toContain('18446744073709551615');
  });

  test('has a strong ETag for each encoding, and any of them is known again', async () => {
    const encodings = ['br', 'gzip', 'identity'];
    const tags = await Promise.all(
      encodings.map(async (name) => (await ask({ 'Accept-Encoding': name })).headers.etag),
    );
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) {
      expect(tag).toMatch(/^"[\w-]+"$/);
      const again = await ask({ 'Accept-Encoding': 'gzip', 'If-None-Match': `"x", W/${tag}` });
      expect([again.status, again.body.length, again.headers.vary]).toEqual([
        304,
        0,
        'Accept-Encoding',
      ]);
      expect(again.headers.etag).toBe(tags[1]);
    }
    expect((await ask({ 'If-None-Match': '"another"' })).status).toBe(200);
  });

  test('has another ETag for other files or other definitions, and the same for the same', async () => {
    const before = (await ask()).headers.etag;
    await place(app, 'a.png', 'x');
    const withFile = await ask({ 'If-None-Match': String(before) });
    expect(withFile.status).toBe(200);
    expect(textOf(withFile)).toContain('[["a.png"], {"image_upload": true}]');
    await app.files.remove('local', { type: 'input', subfolder: '', filename: 'a.png' });
    expect((await ask()).headers.etag).toBe(before);
    const other = fixedDefinitions({ ...INFO, ...(classes('C') as ObjectInfo) });
    known = () => other.current({ user: 'local' });
    expect((await ask()).headers.etag).not.toBe(before);
  });

  test('is the same for users whose files no button offers', async () => {
    for (const name of ['notes.txt', 'model.bin']) await place(app, name, 'x', { user: 'other' });
    const [mine, others] = [await ask(), await ask({}, '/object_info', 'other')];
    expect(others.headers.etag).toBe(mine.headers.etag);
    expect(textOf(mine)).not.toContain('theirs.png');
  });

  test('lists only the caller’s files, packed or not', async () => {
    await place(app, 'mine.png', 'x');
    await place(app, 'others.png', 'x', { user: 'other' });
    for (const encoding of ['br', 'gzip', 'identity']) {
      const [mine, others] = await Promise.all(
        ['local', 'other'].map((user) =>
          ask({ 'Accept-Encoding': encoding }, '/object_info', user),
        ),
      );
      expect(JSON.parse(textOf(mine!)).Chooser.input.required.image[0]).toEqual(['mine.png']);
      expect(JSON.parse(textOf(others!)).Chooser.input.required.image[0]).toEqual(['others.png']);
    }
  });

  test('choosers inside dynamic inputs and of models list the caller’s files', async () => {
    const chooser = ['COMBO', { options: ['theirs.png'], image_upload: true }];
    const groups = { required: { image: chooser } };
    const nested = {
      mode: ['COMFY_DYNAMICCOMBO_V3', { options: [{ key: 'a', inputs: groups }] }],
      images: ['COMFY_AUTOGROW_V3', { template: { input: groups, prefix: 'image', min: 1 } }],
      model: ['COMBO', { options: ['none', '3d/theirs.glb'], file_upload: true }],
    };
    const other = fixedDefinitions({
      Nested: nodeClass({ input: { required: nested } }),
    } as unknown as ObjectInfo);
    known = () => other.current({ user: 'local' });
    await place(app, 'mine.png', 'x');
    await place(app, 'mine.glb', 'x', { subfolder: '3d' });
    for (const path of ['/object_info', '/object_info/Nested']) {
      const answer = textOf(await ask({}, path));
      expect(answer).not.toContain('theirs');
      const { mode, images, model } = JSON.parse(answer).Nested.input.required;
      expect(mode[1].options[0].inputs.required.image[1].options).toEqual(['mine.png']);
      expect(images[1].template.input.required.image[1].options).toEqual(['mine.png']);
      expect(model[1].options).toEqual(['none', '3d/mine.glb']);
    }
  });

  test('HEAD has the same headers', async () => {
    const get = await ask({ 'Accept-Encoding': 'gzip' });
    const head = await app.ask('/object_info', {
      method: 'HEAD',
      headers: { 'Accept-Encoding': 'gzip' },
    });
    for (const name of ['etag', 'content-length', 'content-encoding', 'vary']) {
      expect([name, head.headers[name]]).toEqual([name, get.headers[name]]);
    }
  });

  test.each<[string, { [name: string]: string }, number]>([
    ['/object_info', {}, 0],
    ['/object_info?refresh=1', {}, 1],
    ['/object_info', { 'Cache-Control': 'no-cache' }, 1],
    ['/object_info', { 'Cache-Control': 'max-age=0, No-Store' }, 1],
    ['/object_info/A', { 'Cache-Control': 'no-cache' }, 1],
    ['/api/object_info', { 'Cache-Control': 'max-age=0' }, 0],
  ])('%s with %j demands a refresh: %i', async (path, headers, wanted) => {
    expect((await ask(headers, path)).status).toBe(200);
    expect(demands).toBe(wanted);
  });

  test.each([
    [{ isEmbeddedFallback: true, isStale: false }, ['embedded', undefined, undefined]],
    [
      { isEmbeddedFallback: false, isStale: true },
      [undefined, '1', '110 holdover "Response is Stale"'],
    ],
    [{ isEmbeddedFallback: false, isStale: false }, [undefined, undefined, undefined]],
  ])('%j is said in headers, of one class as of all', async (marks, wanted) => {
    const fixed = known;
    known = async () => ({ ...(await fixed()), ...marks }) as DefinitionsResult;
    for (const path of ['/object_info', '/object_info/A', '/api/object_info']) {
      const { headers } = await ask({}, path);
      const said = ['x-holdover-object-info', 'x-holdover-stale', 'warning'];
      expect(said.map((name) => headers[name])).toEqual(wanted);
    }
  });

  describe('classes that only programs are shown', () => {
    beforeEach(() => {
      const fixed = known;
      const forPrograms = toDefinitions({ ...INFO, Model: PLAIN } as unknown as ObjectInfo);
      known = async () => ({ ...(await fixed()), forPrograms }) as DefinitionsResult;
    });

    test.each<[string, { [name: string]: string }, boolean]>([
      ['a program', {}, true],
      ["Node's fetch", { 'Sec-Fetch-Mode': 'cors', 'User-Agent': 'node' }, true],
      ['a front end', { 'Comfy-User': '' }, false],
      ['a page', { 'Sec-Fetch-Site': 'same-origin' }, false],
      ['a browser', { 'User-Agent': 'Mozilla/5.0' }, false],
    ])('%s: %j', async (_, headers, isShown) => {
      const answer = await ask(headers);
      expect('Model' in JSON.parse(textOf(answer))).toBe(isShown);
      expect(answer.headers.vary).toMatch(/User-Agent, Sec-Fetch-Site, .*Comfy-User/);
    });

    test('each caller gets one of them by its name', async () => {
      for (const headers of [{}, { 'Comfy-User': '' }])
        expect(JSON.parse(textOf(await ask(headers, '/object_info/Model')))).toHaveProperty(
          'Model',
        );
    });
  });

  test.each(['/object_info', '/object_info/A'])(
    '%s is 503 with Retry-After while nothing is known',
    async (path) => {
      known = async () => ({ ok: false, retryAfterSeconds: 7 });
      const answer = await ask({}, path);
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, '7']);
      expect(JSON.parse(answer.body.toString()).error.message).toEqual(expect.any(String));
    },
  );
});

describe('/object_info/{class}', () => {
  test.each(['A', 'Plain', 'Chooser', 'Unknown'])(
    '%s has an ETag and is known again',
    async (name) => {
      const answer = await ask({}, `/object_info/${name}`);
      const all = JSON.parse((await ask()).body.toString());
      expect(JSON.parse(answer.body.toString())).toEqual(name in all ? { [name]: all[name] } : {});
      const tag = String(answer.headers.etag);
      expect((await ask({ 'If-None-Match': tag }, `/object_info/${name}`)).status).toBe(304);
      expect((await ask({ 'If-None-Match': tag })).status).toBe(200);
    },
  );
});
