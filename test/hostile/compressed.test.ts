// Request bodies with a Content-Encoding: v1's server (aiohttp) unpacks gzip and deflate.
import { deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { isV2Path } from '../../src/protocol/v2-paths.ts';
import { dial, type RawAnswer, requestText } from '../support/clients/raw-socket.ts';
import { postPrompt, getJson } from '../support/clients/v1-client.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { flat } from '../support/graphs/workflows.ts';

const MIB = 1024 * 1024;
const TOO_LARGE = `Maximum request body size ${MIB} exceeded.`;
const SAVED = '/userdata/workflows%2Fa.json';
const FORM = [
  '--b\r\nContent-Disposition: form-data; name="image"; filename="packed.png"\r\n\r\n',
  '\r\n--b--\r\n',
] as const;

const server = useHoldover({ args: ['--max-upload-size', '1'] });
afterEach(() => expectHealthy(server));

/** A body of each kind with so much text in it. */
const BODIES = {
  '/queue': (text: string) => `{"delete":["${text}"]}`,
  '/api/v2/jobs': (text: string) => `{"workflow":{"1":{"class_type":"${text}","inputs":{}}}}`,
  '/upload/image': (text: string) => FORM.join(text),
  [SAVED]: (text: string) => text,
} as const;
const PATHS = Object.keys(BODIES) as (keyof typeof BODIES)[];

async function post(path: string, body: Uint8Array, encoding: string): Promise<RawAnswer> {
  const wire = await dial(server.port);
  const type = path.includes('upload') ? 'multipart/form-data; boundary=b' : 'application/json';
  const headers = [`Content-Type: ${type}`, `Content-Encoding: ${encoding}`];
  const length = `Content-Length: ${body.length}`;
  wire.send(requestText(path, { method: 'POST', headers: [...headers, length] }));
  wire.send(body);
  return wire.answer();
}

describe.each(PATHS)('POST %s', (path) => {
  const plain = Buffer.from(BODIES[path]('some text'));

  test.each([
    ['gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
  ] as const)('takes a body in %s as the one it unpacks to', async (encoding, pack) => {
    const expected = await post(path, plain, 'identity');
    const answer = await post(path, pack(plain), encoding);
    expect([answer.status, answer.body]).toEqual([expected.status, expected.body]);
  });

  test('takes a body whose Content-Encoding is empty as it is', async () => {
    const expected = await post(path, plain, 'identity');
    const answer = await post(path, plain, '');
    expect([answer.status, answer.body]).toEqual([expected.status, expected.body]);
  });

  test.each([
    ['is in another encoding', 'br', plain, 415],
    ['names two', 'gzip, identity', gzipSync(plain), 415],
    ['names a member of every object', 'constructor', plain, 415],
    ['is not packed', 'gzip', plain, 400],
    ['is cut off', 'gzip', gzipSync(plain).subarray(0, -9), 400],
  ] as const)('refuses a body that %s', async (_what, encoding, body, status) => {
    // All that v2 cannot read is 422.
    const expected = status === 400 && isV2Path(path) ? 422 : status;
    expect((await post(path, body, encoding)).status).toBe(expected);
  });

  test('refuses one that unpacks to too much: 413, and no more of it is unpacked', async () => {
    const bomb = gzipSync(BODIES[path](' '.repeat(16 * MIB)));
    const answer = await post(path, bomb, 'gzip');
    expect([answer.status, answer.body]).toEqual([413, expect.stringContaining(TOO_LARGE)]);
  });
});

test('a packed prompt runs, a packed picture and file are stored unpacked', async () => {
  const body = gzipSync(JSON.stringify({ prompt: flat(), client_id: 'c' }));
  const headers = { 'Content-Encoding': 'gzip', 'Content-Type': 'application/json' };
  const sent = await fetch(`${server.url}/prompt`, { method: 'POST', body, headers });
  expect(sent.status).toBe(200);
  const form = FORM.join('a picture').replace('packed', 'other');
  await post('/upload/image', gzipSync(form), 'gzip');
  await post(SAVED, deflateSync('{"a":1}'), 'deflate');
  const picture = await fetch(`${server.url}/view?type=input&filename=other.png`);
  expect([await picture.text(), await getJson(server.url + SAVED)]).toEqual([
    'a picture',
    { a: 1 },
  ]);
  expect((await postPrompt(server.url, { prompt: flat() })).status).toBe(200);
});

test.each([
  ['without an end', ''],
  ['with an end', '\r\n\r\n'],
])('a part whose header is semicolons %s does not hold up others', async (_what, end) => {
  const header = `content-disposition: form-data${';'.repeat(65_000)}x${end}`;
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => post('/upload/image', gzipSync(`--b\r\n${header}`), 'gzip')),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(400));
});

test('a part whose header is as long as may be, of semicolons, does not hold up others', async () => {
  const header = `Content-Disposition: form-data; name="image"${';'.repeat(16_000)}x\r\n\r\n`;
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => post('/upload/image', gzipSync(`--b\r\n${header}`), 'gzip')),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(400));
});
