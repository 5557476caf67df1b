// Every local model is really run, on its worker thread, behind a real server process.
import { createHash } from 'node:crypto';
import { createHash as createBlake3 } from 'blake3';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { pngOf } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Answer, read } from './open.ts';

const server = useHoldover();

const SIZE = { width: 8, height: 8 };

async function run(name: string, input: object, headers = { 'X-API-Key': 'ann' }): Promise<Answer> {
  const url = `${server.url}/v1/models/local/${name}`;
  return await read(await fetch(url, { method: 'POST', headers, body: JSON.stringify(input) }));
}

async function bytesOf(
  name: string,
  input: object,
): Promise<{ type: string | null; bytes: Buffer }> {
  const url = `${server.url}/v1/models/local/${name}`;
  const init = { method: 'POST', headers: { 'X-API-Key': 'ann' }, body: JSON.stringify(input) };
  const answer = await fetch(url, init);
  expect(answer.status).toBe(200);
  return {
    type: answer.headers.get('content-type'),
    bytes: Buffer.from(await answer.arrayBuffer()),
  };
}

/** Left half one colour, right half another. */
async function halves(width = 64, height = 32): Promise<Buffer> {
  const raw = Buffer.alloc(width * height * 3);
  for (let i = 0; i < width * height; i++)
    raw.set(i % width < width / 2 ? [250, 10, 10] : [10, 10, 250], i * 3);
  return sharp(raw, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();
}

async function pixelsOf(bytes: Uint8Array) {
  return sharp(bytes).removeAlpha().raw().toBuffer({ resolveWithObject: true });
}

async function upload(bytes: Buffer, key: string): Promise<string> {
  const form = new FormData();
  form.append('file_path', 'in.png');
  form.append('content_type', 'image/png');
  form.append('file', new Blob([new Uint8Array(bytes)], { type: 'image/png' }), 'in.png');
  const init = { method: 'POST', headers: { Authorization: `Bearer ${key}` }, body: form };
  const answer = await fetch(`${server.url}/api/v2/assets`, init);
  return ((await answer.json()) as { id: string }).id;
}

describe('pictures', () => {
  test('image-resize resamples to the size asked for', async () => {
    const image = (await halves()).toString('base64');
    const { status, json } = await run('image-resize', {
      image,
      width: 16,
      height: 16,
      fit: 'fill',
    });
    expect([status, json.image.width, json.image.height, json.image.content_type]).toEqual([
      200,
      16,
      16,
      'image/png',
    ]);
    const bytes = Buffer.from(json.image.base64, 'base64');
    expect(json.image.size_bytes).toBe(bytes.length);
    const { data, info } = await pixelsOf(bytes);
    expect([info.width, info.height]).toEqual([16, 16]);
    expect([data[0], data[2]]).toEqual([250, 10]);
    expect([data[45], data[47]]).toEqual([10, 250]);
  });

  test.each([
    [{ width: 4096, height: 1 }, [4096, 2048]],
    [{ width: 1, height: 2048 }, [4096, 2048]],
  ])('image-resize to the outside of %j keeps the shape', async (size, made) => {
    const image = (await halves()).toString('base64');
    const { json } = await run('image-resize', { image, ...size, fit: 'outside' });
    expect([json.image.width, json.image.height]).toEqual(made);
  });

  test.each([
    ['height', { width: 64, height: 32 }, { width: 1, height: 2049 }, 'width'],
    ['width', { width: 1, height: 4 }, { width: 4096, height: 4096 }, 'height'],
  ])(
    'image-resize to the outside of a %s is a 422 when the other side would be too long',
    async (_, { width, height }, size, side) => {
      const image = (await halves(width, height)).toString('base64');
      const { status, json } = await run('image-resize', { image, ...size, fit: 'outside' });
      expect([status, json.detail]).toEqual([
        422,
        [
          {
            loc: ['body', side],
            type: 'image_too_large',
            msg: expect.stringContaining('4096'),
            ctx: { [`max_${side}`]: 4096 },
          },
        ],
      ]);
    },
  );

  test('a data: URL is taken, and the answer may be the bare file in another format', async () => {
    const image = `data:image/png;base64,${(await halves()).toString('base64')}`;
    const input = { image, width: 8, height: 8, format: 'webp', output: 'binary' };
    const { type, bytes } = await bytesOf('image-resize', input);
    expect(type).toBe('image/webp');
    expect((await sharp(bytes).metadata()).format).toBe('webp');
  });

  test.each(['fractal', 'marble'])(
    'procedural-image paints %s: a seed is a picture',
    async (style) => {
      const paint = async (seed: number) =>
        (
          await bytesOf('procedural-image', {
            style,
            seed,
            width: 48,
            height: 32,
            output: 'binary',
          })
        ).bytes;
      const [first, again, other] = [await paint(7), await paint(7), await paint(8)];
      expect(again).toEqual(first);
      expect(other).not.toEqual(first);
      const { data, info } = await pixelsOf(first);
      expect([info.width, info.height]).toEqual([48, 32]);
      expect(new Set(data).size).toBeGreaterThan(50);
    },
  );

  test('procedural-image goes from one colour to the other', async () => {
    const input = { width: 64, height: 64, from: '#102030', to: '#102030', output: 'binary' };
    const { data } = await pixelsOf((await bytesOf('procedural-image', input)).bytes);
    expect([...new Set(data)].toSorted((a, b) => a - b)).toEqual([0x10, 0x20, 0x30]);
  });

  test('a result may become an asset of the caller, and go in again by its id', async () => {
    const made = (await run('procedural-image', { width: 32, height: 32, output: 'asset' })).json
      .image;
    expect(made).toMatchObject({ width: 32, content_type: 'image/png' });
    const content = await fetch(server.url + made.url, { headers: { 'X-API-Key': 'ann' } });
    const bytes = Buffer.from(await content.arrayBuffer());
    expect([content.headers.get('content-type'), bytes.length]).toEqual([
      'image/png',
      made.size_bytes,
    ]);
    const { json } = await run('digest', { data: made.asset_id });
    expect(`blake3:${json.digests.blake3}`).toBe(made.hash);
  });

  test('an uploaded asset is read by its owner alone', async () => {
    const image = await upload(await pngOf({ r: 1, g: 2, b: 3 }), 'ann');
    expect((await run('image-resize', { ...SIZE, image })).status).toBe(200);
    const { status, json } = await run('image-resize', { ...SIZE, image }, { 'X-API-Key': 'bob' });
    expect([status, json.detail[0].type, json.detail[0].loc]).toEqual([
      422,
      'asset_not_found',
      ['body', 'image'],
    ]);
  });

  test.each([
    ['no base64', 'ü!', 'base64_decode'],
    ['one character beyond whole bytes', 'AAAAA', 'base64_decode'],
    ['nothing', '', 'image_load_error'],
    ['a URL', 'https://example.com/x.png', 'base64_decode'],
    ['a data: URL that is not base64', 'data:image/png,abc', 'base64_decode'],
    [
      'SVG',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>').toString(
        'base64',
      ),
      'unsupported_image_format',
    ],
    ['an unknown asset', '00000000-0000-4000-8000-000000000000', 'asset_not_found'],
  ])('%s is a 422', async (_, image, type) => {
    const { status, json } = await run('image-resize', { ...SIZE, image });
    expect([status, json.detail]).toEqual([
      422,
      [expect.objectContaining({ loc: ['body', 'image'], type })],
    ]);
  });

  test('a damaged picture is a 422', async () => {
    const image = (await halves()).subarray(0, 90).toString('base64');
    const { status, json } = await run('image-resize', { ...SIZE, image });
    expect([status, json.detail[0].type]).toEqual([422, 'image_load_error']);
  });

  test('one that says it is enormous is a 422 before it is decoded', async () => {
    const huge = Buffer.from(await halves());
    huge.writeUInt32BE(60_000, 16);
    huge.writeUInt32BE(60_000, 20);
    const { status } = await run('image-resize', { ...SIZE, image: huge.toString('base64') });
    expect(status).toBe(422);
  });
});

describe('digest', () => {
  test('of a text and of a file', async () => {
    const text = 'grüße';
    const { json } = await run('digest', { text, algorithms: ['blake3', 'sha256', 'sha512'] });
    const by = (name: string) => createHash(name).update(text).digest('hex');
    expect(json).toEqual({
      size_bytes: 7,
      digests: {
        blake3: createBlake3().update(text).digest('hex'),
        sha256: by('sha256'),
        sha512: by('sha512'),
      },
    });
    const file = await run('digest', {
      data: Buffer.from(text).toString('base64'),
      algorithms: ['sha256'],
    });
    expect(file.json.digests.sha256).toBe(by('sha256'));
  });

  test('of a file as base64 in lines, with and without padding, in either alphabet', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const base64 = bytes.toString('base64');
    const lines = base64.replaceAll(/.{76}/g, '$&\r\n');
    for (const data of [base64, lines, ` ${lines}\n`, bytes.toString('base64url')]) {
      const { json } = await run('digest', { data, algorithms: ['sha256'] });
      expect(json.digests.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
    }
  });

  test.each([[{}], [{ text: 'a', data: 'YQ==' }]])(
    'of %j is a 422: it needs one of both',
    async (input) => {
      expect((await run('digest', input)).status).toBe(422);
    },
  );
});

describe('delay', () => {
  test('answers with what it was given', async () => {
    const echo = { deep: [1, null, 'ü'] };
    expect((await run('delay', { seconds: 0, echo })).json).toEqual({ waited_seconds: 0, echo });
    expect((await run('delay', { seconds: 0 })).json).toEqual({ waited_seconds: 0 });
  });

  test('answers with a number that no double can hold, to the digit', async () => {
    const body = '{"seconds":0,"echo":[12345678901234567890,{"x":0.12345678901234567890}]}';
    const init = { method: 'POST', headers: { 'X-API-Key': 'ann' }, body };
    const answer = await fetch(`${server.url}/v1/models/local/delay`, init);
    expect(await answer.text()).toBe(`{"waited_seconds":0,${body.slice(13)}`);
  });
});

// "A model with no written input schema is treated as accepting any JSON object, so its body is
// forwarded and does not produce a 422."
test('echo answers any object as it came, to the digit, and says that it has no schema', async () => {
  const headers = { 'X-API-Key': 'ann' };
  const url = `${server.url}/v1/models/local/echo`;
  const body = '{"seed":18446744073709551615,"deep":{"any":[1.5,null,"ü"]}}';
  const answer = await fetch(url, { method: 'POST', headers, body });
  expect([answer.status, await answer.text()]).toEqual([200, body]);
  const document = await read(await fetch(`${url}/openapi.json`, { headers }));
  expect(document.json['x-comfy-input-schema-authored']).toBe(false);
});

test('while a model computes, the server answers others', async () => {
  const heavy = { style: 'fractal', width: 1024, height: 1024, octaves: 8 };
  const order: string[] = [];
  const painting = run('procedural-image', heavy).then(() => order.push('picture'));
  await run('delay', { seconds: 0 });
  await (await fetch(`${server.url}/healthz`)).arrayBuffer();
  order.push('others');
  await painting;
  expect(order).toEqual(['others', 'picture']);
});
