import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { contentTypeOf, dispositionOf, headersElsewhere } from '../../src/http/file-headers.ts';
import { type ViewGrant, createViewSigner } from '../../src/auth/signed-view.ts';
import { type TestApp, multipart, createTestApp, place } from '../support/app/v1-routes.ts';
import { anyText } from '../support/any-text.ts';

describe('a file from upload to download', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await createTestApp({ view: 'auto' });
  });
  afterEach(() => app.close());

  test('by the names the upload answered, listed newest first', async () => {
    const names: string[] = [];
    for (const data of ['one', 'two']) {
      const answer = await app.ask(
        '/api/upload/image',
        multipart({ name: 'image', filename: 'a.txt', data }),
      );
      names.push(JSON.parse(answer.body.toString()).name);
    }
    expect(names).toEqual(['a.txt', 'a (1).txt']);
    const listed = await app.ask('/internal/files/input');
    expect(JSON.parse(listed.body.toString())).toEqual(
      names.toReversed().map((name) => `${name} [input]`),
    );
    const seen = await app.ask('/view?filename=a%20(1).txt%20[input]');
    expect([seen.body.toString(), seen.headers['content-type']]).toEqual(['two', 'text/plain']);
  });

  test('with a URL the client left unencoded', async () => {
    await place(app, 'a b (1).txt', 'x');
    expect(
      (await app.ask('/view?type=input&filename=a+b+(1).txt&subfolder=&rand=0.5')).status,
    ).toBe(200);
  });

  test('through fetch, which demands the 302 when it follows none and gets the bytes when it does', async () => {
    await place(app, 'a.txt', 'bytes');
    const url = `${app.url}/api/view?type=input&filename=a.txt`;
    const manual = await fetch(url, { redirect: 'manual', headers: { 'X-API-Key': 'k' } });
    expect(manual.status).toBe(302);
    const direct = await fetch(String(manual.headers.get('Location')));
    expect(await direct.text()).toBe('bytes');
    expect(await (await fetch(url, { headers: { 'X-API-Key': 'k' } })).text()).toBe('bytes');
  });

  test('is cut off, not ended, when the v2 side breaks in the middle', async () => {
    await place(app, 'a.txt', 'x'.repeat(100));
    app.assets.content = async () => ({
      ok: true,
      value: {
        kind: 'bytes',
        contentType: 'text/plain',
        totalBytes: 100,
        stream: Readable.from(
          (function* () {
            yield Buffer.from('half');
            throw new Error('upstream went away');
          })(),
        ),
      },
    });
    await expect(app.ask('/view?type=input&filename=a.txt')).rejects.toThrow(
      /aborted|hang up|reset/i,
    );
  });

  test.each(['nope', 'Input', '..'])(
    '/internal/files/%s is 400 with v1\u2019s words',
    async (type) => {
      const answer = await app.ask(`/internal/files/${type}`);
      expect([answer.status, answer.body.toString()]).toEqual([
        400,
        '{"error": "Invalid directory type"}',
      ]);
    },
  );
});

describe('a signed link', () => {
  const clock = { now: 1_000_000 };
  const signer = (secret = 'a') =>
    createViewSigner({ secret: Buffer.from(secret), now: () => clock.now });
  const grants = fc.record<ViewGrant>({
    user: fc.string({ unit: 'binary-ascii' }),
    type: fc.constantFrom('input', 'output', 'temp'),
    subfolder: fc.string(),
    filename: fc.string({ unit: 'grapheme' }),
    assetId: fc.string(),
    rendering: fc.dictionary(fc.constantFrom('preview', 'channel'), fc.string(), {
      noNullPrototype: true,
    }),
  });

  test('grants exactly what was signed', () => {
    fc.assert(
      fc.property(grants, (grant) => {
        expect(signer().verify(new URLSearchParams(signer().sign(grant)))).toEqual(grant);
      }),
    );
  });

  test('does not let a value flow into its neighbour', () => {
    const grant: ViewGrant = {
      user: 'u',
      type: 'input',
      subfolder: 'a',
      filename: 'b&subfolder=c',
      assetId: 'd',
      rendering: {},
    };
    const query = new URLSearchParams(signer().sign(grant));
    expect(query.get('filename')).toBe('b&subfolder=c');
    expect(signer().verify(query)).toEqual(grant);
  });
});

test.each([
  ['a.png', 'image/png'],
  ['a.JPG', 'image/jpeg'],
  ['a.webp', 'image/webp'],
  ['a.mp4', 'video/mp4'],
  ['a.flac', 'audio/flac'],
  ['a.wav', 'audio/x-wav'],
  ['a.glb', 'model/gltf-binary'],
  ['a.txt', 'text/plain'],
  ['a.latent', undefined],
  ['png', undefined],
])('the extension of %s means %s', (name, type) => expect(contentTypeOf(name)).toBe(type));

test('whatever a file is called, its disposition is one header line that names it', () => {
  fc.assert(
    fc.property(anyText, (name) => {
      const header = dispositionOf(name);
      expect(header).toMatch(/^filename="(?:[ !#-[\]-~\x80-\xff]|\\.)*"$/);
    }),
  );
});

test.each([
  ['näme (1).png', 'näme (1).png'],
  ['猫.png', '猫.png'],
  ['😀.png', '😀.png'],
  ['a\ud800.png', 'a\ufffd.png'],
])('clients that take what is behind the = get %j as v1 spells it', (name, received) => {
  const header = Buffer.from(dispositionOf(name), 'latin1').toString();
  expect(header.split('=')[1]?.slice(1, -1)).toBe(received);
});

test('whatever a file is called, another server gets its disposition in ASCII', () => {
  fc.assert(
    fc.property(anyText, (filename) => {
      const headers = headersElsewhere({ filename, contentType: 'image/png' }, '');
      expect(headers?.disposition ?? '').toMatch(
        /^((?:attachment; )?filename="(?:[ !#-[\]-~]|\\.)*"(?:; filename\*=UTF-8''[\w%.~!$&+^`|#-]*)?)?$/,
      );
    }),
  );
});

test.each([
  ['猫.png', `filename="?.png"; filename*=UTF-8''%E7%8C%AB.png`],
  ['猫.html', `attachment; filename="?.html"; filename*=UTF-8''%E7%8C%AB.html`],
  ['plain.png', 'filename="plain.png"'],
])('another server is told of %s', (filename, disposition) => {
  const file = { filename, contentType: '' };
  expect(headersElsewhere(file, '')?.disposition).toBe(disposition);
});
