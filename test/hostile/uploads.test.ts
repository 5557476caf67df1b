// perf-reliability.md 3.5 C over the real routes; the rows of names and folders are in
// test/v1/files/upload.test.ts, those of the multipart syntax in test/http/spool.multipart.test.ts.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type RawAnswer, dial, requestText } from '../support/clients/raw-socket.ts';
import { CANARY, expectNoLeak, expectHealthy } from '../support/processes/expect-healthy.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { blackPng } from '../support/graphs/black-png.ts';
import { loading } from '../support/graphs/workflows.ts';
import { residentMb } from '../support/processes/resident-memory.ts';

const LIMIT = 1024 * 1024;
const TOO_LARGE = `Maximum request body size ${LIMIT} exceeded.`;

const server = useHoldover({ args: ['--max-upload-size', '1'] });
afterEach(() => expectHealthy(server));

function part(disposition: string, data: string | Uint8Array = '', type?: string): Buffer {
  const typed = type === undefined ? '' : `\r\nContent-Type: ${type}`;
  const head = `--b\r\nContent-Disposition: form-data; ${disposition}${typed}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(data as Uint8Array), Buffer.from('\r\n')]);
}

const image = (data: string | Uint8Array, name = 'a.png', type?: string): Buffer =>
  part(`name="image"; filename="${name}"`, data, type);
const END = Buffer.from('--b--\r\n');

function head(
  path: string,
  headers: readonly string[],
  type = 'multipart/form-data; boundary=b',
): string {
  return requestText(path, {
    method: 'POST',
    headers: [`Content-Type: ${type}`, `X-API-Key: ${CANARY}`, ...headers],
  });
}

async function upload(
  parts: readonly (Buffer | string)[],
  options: { path?: string; headers?: readonly string[]; type?: string } = {},
): Promise<RawAnswer> {
  const { path = '/upload/image', headers = [], type } = options;
  const body = Buffer.concat(parts.map((each) => Buffer.from(each as Buffer)));
  const wire = await dial(server.port);
  wire.send(head(path, [`Content-Length: ${body.length}`, ...headers], type));
  wire.send(body);
  const answer = await wire.answer();
  expectNoLeak(answer);
  return answer;
}

function blobs(): string[] {
  const dir = join(server.dataDir, 'blobs');
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
}

describe.each(['/upload/image', '/upload/mask', '/api/v2/assets'])(
  'POST %s over the limit',
  (path) => {
    test('by its Content-Length is 413 before a byte of it was sent', async () => {
      const wire = await dial(server.port);
      wire.send(head(path, [`Content-Length: ${101 * LIMIT}`]));
      const answer = await wire.until(TOO_LARGE);
      expect(answer).toMatchObject({ status: 413, headers: { connection: 'close' } });
      wire.reset();
    });

    test('in chunks is 413, also to a client that listens only at the end', async () => {
      const wire = await dial(server.port);
      wire.socket.pause();
      wire.send(head(path, ['Transfer-Encoding: chunked']));
      const first = image('').subarray(0, -2);
      wire.send(
        Buffer.concat([
          Buffer.from(`${first.length.toString(16)}\r\n`),
          first,
          Buffer.from('\r\n'),
        ]),
      );
      for (let i = 0; i < 40 && !wire.socket.destroyed; i++) {
        await new Promise((resolve) =>
          wire.socket.write(`10000\r\n${'x'.repeat(65_536)}\r\n`, resolve),
        );
      }
      wire.send('0\r\n\r\n');
      wire.socket.resume();
      const answer = await wire.answer();
      expect(answer.status).toBe(413);
      expect(answer.body).toContain(TOO_LARGE);
    });

    test.each(['br', 'compress', 'gzip, gzip'])('in %s is 415', async (encoding) => {
      const options = { path, headers: [`Content-Encoding: ${encoding}`] };
      expect(await upload([gzipSync(Buffer.concat([image('x'), END]))], options)).toMatchObject({
        status: 415,
      });
    });
  },
);

test('a part whose transfer encoding is called as a member of every object is taken as it is', async () => {
  const file = 'Content-Disposition: form-data; name="image"; filename="named.png"';
  const part = `--b\r\n${file}\r\nContent-Transfer-Encoding: constructor\r\n\r\nas it is\r\n`;
  expect(await upload([part, END])).toMatchObject({ status: 200 });
});

describe('a form is 400', () => {
  test.each([
    ['without its end', [image('x')]],
    [
      'cut off in the file',
      ['--b\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\nxxx'],
    ],
    ['cut off in a header', ['--b\r\nContent-Disposition: form-da']],
    ['cut off in a second file', [image('x'), image('more').subarray(0, -4)]],
    ['under another boundary', ['--c', image('x').subarray(3), '--c--\r\n']],
    ['without anything', ['']],
    ['with its end only', [END]],
    [
      'with line feeds only',
      ['--b\nContent-Disposition: form-data; name="image"; filename="a.png"\n\nx\n--b--\n'],
    ],
    ['with a part header of 20 KB', [`--b\r\nX: ${'x'.repeat(20_000)}\r\n`, image('x'), END]],
    [
      'with a blank before a part header',
      ['--b\r\n Content-Disposition: form-data; name="image"\r\n\r\nx\r\n', END],
    ],
    ['with a file without a name', [part('name="image"; filename=""', 'x'), END]],
    ['with text for a file', [part('name="image"', 'x'), END]],
    ['without the image', [part('name="other"; filename="a.png"', 'x'), END]],
    ['with NUL in the name', [part('name="image"; filename="a\0.png"', 'x'), END]],
    ['with a name of 10 KB', [image('x', 'n'.repeat(10_000)), END]],
  ])('%s', async (_, parts) => {
    const before = blobs();
    expect(await upload(parts)).toMatchObject({ status: 400 });
    expect(blobs()).toEqual(before);
  });

  test.each([
    ['without a boundary', 'multipart/form-data'],
    ['with a boundary of 300 characters', `multipart/form-data; boundary=${'b'.repeat(300)}`],
    ['that says it is JSON', 'application/json'],
    ['that says nothing', ''],
  ])('%s', async (_, type) => {
    expect(await upload([image('x'), END], { type })).toMatchObject({ status: 400 });
  });
});

test.each([
  ['more files than anybody sends', Array.from({ length: 9 }, (_, i) => image(`${i}`, `${i}.png`))],
  [
    'more fields than anybody sends',
    [image('x'), ...Array.from({ length: 30 }, (_, i) => part(`name="f${i}"`, 'x'))],
  ],
  ['a field of 100 KB', [image('x'), part('name="subfolder"', 'x'.repeat(100_000))]],
])('a form with %s is 413', async (_, parts) => {
  const before = blobs();
  const words = expect.stringMatching(/^Maximum (number|size) of .* exceeded\.$/);
  expect(await upload([...parts, END])).toMatchObject({ status: 413, body: words });
  expect(blobs()).toEqual(before);
});

test('of three images the first counts and the others leave nothing', async () => {
  const before = blobs().length;
  const parts = [
    image('first-3', 'one.png'),
    image('second-3', 'two.png'),
    image('third-3', 'three.png'),
  ];
  const answer = await upload([...parts, END]);
  expect(JSON.parse(answer.body)).toMatchObject({ name: 'one.png' });
  expect(blobs()).toHaveLength(before + 1);
});

test.each(['expected_hash', 'hash', 'file_path', 'path'])(
  'what a form says under %s is not believed',
  async (field) => {
    const lies = part(`name="${field}"`, `blake3:${'0'.repeat(64)}`);
    const name = `honest-${field}.txt`;
    expect(await upload([lies, image(`bytes of ${field}`, name), END])).toMatchObject({
      status: 200,
    });
    const headers = { 'X-API-Key': CANARY };
    const seen = await fetch(`${server.url}/view?type=input&filename=${name}`, { headers });
    expect(await seen.text()).toBe(`bytes of ${field}`);
  },
);

test.each([
  ['page.png', 'image/png', '<html><script>alert(1)</script></html>'],
  ['page.jpg', 'image/jpeg', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'],
  ['page.webp', 'text/html', '<!doctype html><script>alert(1)</script>'],
  ['both.gif', 'image/gif', 'GIF89a=1;/*<script>alert(1)</script>*/'],
  ['bomb.zip', 'application/zip', 'PK\u0003\u0004 not unpacked'],
  ['bomb.tar', 'application/x-tar', 'ustar'],
])('%s declared %s is never served as something a browser would run', async (name, type, bytes) => {
  expect(await upload([image(bytes, name, type), END])).toMatchObject({ status: 200 });
  for (const dest of ['document', 'image', 'script', 'iframe']) {
    const headers = { 'X-API-Key': CANARY, 'Sec-Fetch-Dest': dest };
    const seen = await fetch(`${server.url}/view?type=input&filename=${name}`, { headers });
    expect(await seen.text()).toBe(bytes);
    expect(seen.headers.get('Content-Type')).not.toMatch(/html|svg|xml|javascript|text\/(?!plain)/);
    expect(seen.headers.get('X-Content-Type-Options')).toBe('nosniff');
  }
});

test('cut off at every tenth leaves nothing behind', async () => {
  const body = Buffer.concat([image('y'.repeat(500_000), 'cut.png'), END]);
  const before = blobs();
  for (let tenth = 0; tenth < 10; tenth++) {
    const wire = await dial(server.port);
    wire.send(head('/upload/image', [`Content-Length: ${body.length}`]));
    const part = body.subarray(0, (body.length * tenth) / 10);
    await new Promise((resolve) => wire.socket.write(part, resolve));
    if (tenth % 2 === 0) wire.reset();
    else wire.socket.destroy();
  }
  await expectHealthy(server);
  expect(blobs()).toEqual(before);
});

test('two hundred uploads of one byte are one file on disk', async () => {
  const before = blobs().length;
  const names = Array.from({ length: 200 }, (_, i) => `tiny-${i}.bin`);
  for (let at = 0; at < names.length; at += 50) {
    const some = names.slice(at, at + 50);
    await Promise.all(
      some.map((name) => uploadInput(server.url, { name, bytes: Buffer.from('1') })),
    );
  }
  expect(blobs()).toHaveLength(before + 1);
});

const BOMBS: readonly [string, () => Buffer][] = [
  ['16000 x 16000', () => blackPng(16_000, 16_000)],
  ['1 x 100 000 000', () => blackPng(1, 100_000_000)],
  ['2^31 x 2^31', () => blackPng(2 ** 31 - 1, 2 ** 31 - 1)],
  ['0 x 0', () => blackPng(0, 0)],
  ['cut off', () => blackPng(100, 100).subarray(0, 60)],
  [
    'a colour profile that unpacks to 100 MB',
    () =>
      blackPng(16, 16, [
        {
          type: 'iCCP',
          data: Buffer.concat([Buffer.from('x\0\0'), deflateSync(Buffer.alloc(100 << 20))]),
        },
      ]),
  ],
  ['a GIF of 60 000 frames', gifOf],
];

describe.each(BOMBS)('a picture bomb (%s)', (label, make) => {
  const name = `${label.replace(/\W+/g, '_')}.png`;

  test('is stored, and costs little to look at, compose or load', async () => {
    const bytes = make();
    const before = residentMb(server);
    expect(await uploadInput(server.url, { name, bytes })).toMatchObject({ name });
    const preview = await fetch(`${server.url}/view?type=input&filename=${name}&preview=webp;50`);
    expect([200, 400, 413, 422]).toContain(preview.status);
    await preview.arrayBuffer();

    const form = new FormData();
    form.append('original_ref', JSON.stringify({ filename: name, type: 'input' }));
    form.append('image', new Blob([Buffer.from(bytes)]), 'mask.png');
    const mask = await fetch(`${server.url}/upload/mask`, { method: 'POST', body: form });
    expect([200, 400, 413]).toContain(mask.status);
    await mask.arrayBuffer();

    const sent = await postPrompt(server.url, {
      prompt: firstOf(name),
      prompt_id: `bomb ${label}`,
    });
    if (sent.status === 200) {
      const url = `${server.url}/history/${encodeURIComponent(`bomb ${label}`)}`;
      await expect.poll(() => getJson(url), { timeout: 20_000 }).toHaveProperty([`bomb ${label}`]);
    } else expect(sent.status).toBe(400);
    expect(residentMb(server) - before).toBeLessThan(400);
  });
});

/** Loads every frame and saves one. */
function firstOf(name: string): object {
  return {
    '3': { class_type: 'LoadImage', inputs: { image: name } },
    '4': { class_type: 'ImageFromBatch', inputs: { image: ['3', 0], batch_index: 0, length: 1 } },
    '9': { class_type: 'SaveImage', inputs: { images: ['4', 0], filename_prefix: 'bomb' } },
  };
}

/** As small as a frame gets, very often. */
function gifOf(): Buffer {
  const head = Buffer.from('GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff', 'latin1');
  const frame = Buffer.from(',\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0', 'latin1');
  return Buffer.concat([head, ...Array.from({ length: 60_000 }, () => frame), Buffer.from(';')]);
}

test('after all that a picture is uploaded, loaded and saved', async () => {
  await uploadInput(server.url, { name: 'fine.png', bytes: await pngOf() });
  const sent = await postPrompt(server.url, { prompt: loading('fine.png'), prompt_id: 'fine' });
  expect(sent.status).toBe(200);
  await expect
    .poll(() => getJson(`${server.url}/history/fine`), { timeout: 15_000 })
    .toMatchObject({ fine: { status: { status_str: 'success' } } });
});
