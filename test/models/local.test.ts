// Every local model is really run, on its worker thread, behind a real server process.
import { createHash } from 'node:crypto';
import { createHash as createBlake3 } from 'blake3';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pngOf } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Answer, read } from './open.ts';

let server: Holdover;
beforeAll(async () => {
  server = await startHoldover();
});
afterAll(() => server?.dispose());

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
    [{ width: 16, height: 16 }, [32, 16]],
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

  test('image-blur softens the edge', async () => {
    const image = (await halves()).toString('base64');
    const { bytes } = await bytesOf('image-blur', { image, sigma: 4, output: 'binary' });
    const { data } = await pixelsOf(bytes);
    const red = [...data.subarray(0, 64 * 3)].filter((_, i) => i % 3 === 0);
    expect(red[31]).toBeGreaterThan(60);
    expect(red[31]).toBeLessThan(200);
    expect(new Set(red).size).toBeGreaterThan(8);
  });

  test('image-quantize leaves no more colours than asked for', async () => {
    const { json: painted } = await run('procedural-image', {
      width: 64,
      height: 64,
      to: '#ff8800',
    });
    const input = { image: painted.image.base64, colors: 4, output: 'binary' };
    const { bytes } = await bytesOf('image-quantize', input);
    const { data } = await pixelsOf(bytes);
    const colours = new Set(
      Array.from({ length: data.length / 3 }, (_, i) =>
        data.subarray(i * 3, i * 3 + 3).toString('hex'),
      ),
    );
    expect(colours.size).toBeGreaterThan(1);
    expect(colours.size).toBeLessThanOrEqual(4);
  });

  test.each(['fractal', 'noise', 'cells', 'marble'])(
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

  test.each(['phash', 'dhash', 'ahash'])(
    'perceptual-hash (%s) is alike for a copy, and unlike for another picture',
    async (algorithm) => {
      const paint = async (seed: number) =>
        (await run('procedural-image', { seed, width: 128, height: 128 })).json.image.base64;
      const [image, other] = [await paint(1), await paint(2)];
      const small = (await run('image-resize', { image, width: 64, height: 64, format: 'jpeg' }))
        .json.image.base64;
      const same = (await run('perceptual-hash', { image, other: small, algorithm })).json;
      const unlike = (await run('perceptual-hash', { image, other, algorithm })).json;
      expect(same.hash).toMatch(/^[0-9a-f]{16}$/);
      expect(same.distance).toBeLessThan(8);
      expect(unlike.distance).toBeGreaterThan(12);
      expect((await run('perceptual-hash', { image, algorithm })).json).toEqual({
        algorithm,
        hash: same.hash,
      });
    },
  );

  test.each(['#000000', '#010203', '#7f7f7f', '#ffffff'])(
    'perceptual-hash of nothing but %s is that of any flat picture, bright or not',
    async (background) => {
      const flat = sharp({ create: { width: 40, height: 30, channels: 3, background } });
      const image = (await flat.png().toBuffer()).toString('base64');
      const { json } = await run('perceptual-hash', { image });
      expect(json.hash).toMatch(/^[08]0{15}$/);
    },
  );

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
    expect((await run('perceptual-hash', { image })).status).toBe(200);
    const { status, json } = await run('perceptual-hash', { image }, { 'X-API-Key': 'bob' });
    expect([status, json.detail[0].type, json.detail[0].loc]).toEqual([
      422,
      'asset_not_found',
      ['body', 'image'],
    ]);
  });

  test.each([
    ['no picture', Buffer.from('no picture').toString('base64'), 'image_load_error'],
    ['no base64', 'ü!', 'base64_decode'],
    ['one character beyond whole bytes', 'AAAAA', 'base64_decode'],
    ['white space and what is no base64', `${' '.repeat(160_000)}!`, 'base64_decode'],
    ['nothing', '', 'image_load_error'],
    ['a data: URL of nothing', 'data:image/png;base64,', 'image_load_error'],
    ['white space', ' \n', 'image_load_error'],
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
    const { status, json } = await run('image-blur', { image, sigma: 1 });
    expect([status, json.detail]).toEqual([
      422,
      [expect.objectContaining({ loc: ['body', 'image'], type })],
    ]);
  });

  test('a damaged picture is a 422', async () => {
    const image = (await halves()).subarray(0, 90).toString('base64');
    const { status, json } = await run('image-blur', { image, sigma: 1 });
    expect([status, json.detail[0].type]).toEqual([422, 'image_load_error']);
  });

  test('one that says it is enormous is a 422 before it is decoded', async () => {
    const huge = Buffer.from(await halves());
    huge.writeUInt32BE(60_000, 16);
    huge.writeUInt32BE(60_000, 20);
    const { status } = await run('image-blur', { image: huge.toString('base64'), sigma: 1 });
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

describe('texts', () => {
  test('text-statistics counts by the rules of Unicode', async () => {
    const { json } = await run('text-statistics', {
      text: 'The fox 🦊🏽. The end!\nGrüße',
      top: 1,
    });
    expect(json).toEqual({
      characters: 25,
      bytes: 34,
      words: 5,
      distinct_words: 4,
      sentences: 3,
      lines: 2,
      reading_seconds: 2,
      top_words: [{ word: 'the', count: 2 }],
    });
  });

  test.each([
    [
      'English',
      'The fox jumps, twice. ',
      9090,
      { characters: 199_980, words: 36_360, sentences: 9090 },
    ],
    ['letters outside of the BMP', '𝒜', 100_000, { characters: 100_000, words: 1, sentences: 1 }],
    ['letters that end no sentence', 'no end ', 28_571, { characters: 199_997, words: 57_142 }],
    ['marks on one letter', 'e\u0301\u0301', 66_666, { characters: 66_666, words: 1 }],
  ])('text-statistics of as much %s as is taken', async (_, text, times, counts) => {
    const { json } = await run('text-statistics', { text: text.repeat(times) });
    expect(json).toMatchObject(counts);
  });

  test('text-statistics of an unknown language is a 422', async () => {
    const { status, json } = await run('text-statistics', { text: 'a', language: '!!' });
    expect([status, json.detail[0].loc]).toEqual([422, ['body', 'language']]);
  });

  test.each([
    ['I love this wonderful day!', 'positive'],
    ['This is terrible, I hate it.', 'negative'],
    ['The chair is brown.', 'neutral'],
  ])('text-sentiment of "%s" is %s', async (text, label) => {
    const { json } = await run('text-sentiment', { text });
    expect(json.label).toBe(label);
    expect(json.sentences).toEqual([{ text, sentiment: json.sentiment }]);
  });

  test.each(['text-sentiment', 'text-tokens'])(
    '%s takes no text that costs minutes',
    async (name) => {
      for (const word of ['x', '-', 'http://a.b/', 'http://é/']) {
        const { status, json } = await run(name, { text: word.repeat(2000) });
        const msg = expect.stringMatching(/blank/);
        expect([word, status, json.detail]).toEqual([
          word,
          422,
          [{ loc: ['body', 'text'], type: 'value_error', msg }],
        ]);
      }
      for (const text of [`${'x'.repeat(1000)} `.repeat(5), '漢'.repeat(5000)])
        expect((await run(name, { text })).status).toBe(200);
    },
  );

  test('text-tokens tells parts of speech, lemmas and entities', async () => {
    const { json } = await run('text-tokens', { text: 'Foxes jumped on 3 May.' });
    expect(json.tokens[1]).toEqual({ text: 'jumped', type: 'word', pos: 'VERB', lemma: 'jump' });
    expect(json.entities).toEqual([{ text: '3 May', type: 'DATE' }]);
  });
});

describe('tone', () => {
  test('answers a WAV file', async () => {
    const { type, bytes } = await bytesOf('tone', {
      seconds: 0.5,
      sample_rate: 8000,
      frequency: 100,
      fade_ms: 0,
    });
    expect(type).toBe('audio/wav');
    expect(bytes.toString('latin1', 0, 4) + bytes.toString('latin1', 8, 12)).toBe('RIFFWAVE');
    expect([bytes.readUInt32LE(24), bytes.readUInt32LE(40), bytes.length]).toEqual([
      8000, 8000, 8044,
    ]);
    const samples = Array.from({ length: 4000 }, (_, i) => bytes.readInt16LE(44 + i * 2));
    const rises = samples.filter((level, i) => level >= 0 && (samples[i - 1] ?? 0) < 0);
    expect(rises.length).toBeGreaterThanOrEqual(49);
    expect(rises.length).toBeLessThanOrEqual(51);
    expect(Math.max(...samples)).toBe(16384);
  });

  test.each([
    [{ frequency: 8000, sample_rate: 8000 }, 4000],
    [{ frequency: 11_026, sample_rate: 22_050 }, 11_025],
  ])('of %j is a 422: samples cannot hold it', async (input, le) => {
    const { status, json } = await run('tone', { ...input, seconds: 0.1 });
    const loc = ['body', 'frequency'];
    expect([status, json.detail]).toEqual([
      422,
      [{ loc, type: 'less_than_equal', ctx: { le }, msg: expect.stringContaining(String(le)) }],
    ]);
  });

  test.each(['sine', 'square', 'triangle', 'sawtooth'])(
    'as %s, within its bounds, as JSON too',
    async (wave) => {
      const { json } = await run('tone', { wave, seconds: 0.1, volume: 1, output: 'base64' });
      const bytes = Buffer.from(json.audio.base64, 'base64');
      const levels = Array.from({ length: (bytes.length - 44) / 2 }, (_, i) =>
        bytes.readInt16LE(44 + i * 2),
      );
      expect(Math.max(...levels)).toBeGreaterThan(30_000);
      expect(Math.min(...levels)).toBeLessThan(-30_000);
      expect([levels[0], levels.at(-1)]).toEqual([0, 0]);
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

  test.each([
    ['content_policy_violation', 400],
    ['provider_error', 502],
    ['provider_timeout', 504],
  ])('ends with %s when asked to', async (outcome, status) => {
    const { json, status: seen } = await run('delay', { seconds: 0, outcome });
    expect([seen, json.error_type]).toEqual([status, outcome]);
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
  const heavy = { style: 'fractal', width: 2048, height: 2048, octaves: 8 };
  const order: string[] = [];
  const painting = run('procedural-image', heavy).then(() => order.push('picture'));
  await run('delay', { seconds: 0 });
  await (await fetch(`${server.url}/healthz`)).arrayBuffer();
  order.push('others');
  await painting;
  expect(order).toEqual(['others', 'picture']);
});
