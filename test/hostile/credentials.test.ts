// Credentials are read and removed by one parser: however a login is written in an address,
// it is in no line of the log, in no file, and in no answer.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { interrupt, pngOf, untilRunning, uploadInput } from '../support/clients/client-helpers.ts';
import { runHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { requestText, say, upgradeText, dial } from '../support/clients/raw-socket.ts';
import { CANARY, filesWith } from '../support/processes/expect-healthy.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless } from '../support/graphs/workflows.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const server = useHoldover({ env: { HOLDOVER_LOG_LEVEL: 'debug' } });

const expectNoTrace = (): void => {
  expect(server.log()).not.toContain(CANARY);
  expect(server.log()).not.toContain(encodeURIComponent(CANARY));
  expect(filesWith(server.dataDir, CANARY)).toEqual([]);
};

test.each(['token', '%74oken', 't%6fken', '%74%6F%6b%65%6E'])(
  '?%s= logs in, and is seen no more',
  async (name) => {
    await uploadInput(
      server.url,
      { name: 'mine.png', bytes: await pngOf() },
      { 'X-API-Key': CANARY },
    );
    const target = `/internal/files/input?${name}=${CANARY}`;
    const own = await say(server.port, requestText(target));
    expect(own.body).toContain('mine.png');
    expect((await say(server.port, requestText(`/nowhere?${name}=${CANARY}`))).status).toBe(404);
    expect(own.raw).not.toContain(CANARY);
    const wire = await dial(server.port);
    wire.send(upgradeText(`/ws?${name}=${CANARY}`));
    expect((await wire.received(12)).toString()).toContain('101');
    wire.reset();
    expectNoTrace();
    expect(server.log()).toContain('[removed]');
  },
);

test('a refused model call with a long body leaves no warning of Node in the log, and so no header', async () => {
  const answer = await fetch(`${server.url}/v1/models/local/echo`, {
    method: 'POST',
    headers: { 'X-API-Key': CANARY },
    body: '['.repeat(2_000_000),
  });
  expect(answer.status).toBe(413);
  expect(server.log()).not.toContain('process.warning');
  expectNoTrace();
});

test('the signature of a link that opens a file for anybody is not logged', async () => {
  await uploadInput(server.url, { name: 'mine.png', bytes: await pngOf() });
  const answer = await fetch(`${server.url}/api/view?filename=mine.png&type=input`, {
    redirect: 'manual',
    headers: { 'User-Agent': 'script' },
  });
  const location = answer.headers.get('location');
  if (location === null) return expect(answer.status).toBe(200);
  const signature = new URL(location).searchParams.get('signature') ?? '';
  expect(signature).toMatch(/.{20}/);
  expect((await fetch(location)).status).toBe(200);
  await expect.poll(() => server.log()).toContain('/signed/view');
  expect(server.log()).not.toContain(signature);
});

test.each([
  [`http://user:${CANARY}@127.0.0.1/queue`, []],
  [`/queue?api_key=${CANARY}`, []],
  [`/queue?X-Amz-Signature=${CANARY}&sig=${CANARY}`, []],
  ['/queue', [`Referer: http://127.0.0.1/?token=${CANARY}`]],
  ['/queue', [`Cookie: session=${CANARY}`]],
  ['/queue', [`Proxy-Authorization: Basic ${CANARY}`]],
  ['/queue', [`Origin: http://user:${CANARY}@evil`]],
  ['/api/v2/jobs', [`Authorization: Bearer ${CANARY}`]],
  ['/v1/models', [`X-API-Key: ${CANARY}`]],
] as const)('%s with %j leaves nothing in the log', async (target, headers) => {
  await say(server.port, requestText(target, { headers }));
  expectNoTrace();
});

test('a user agent that quotes an address with a login is reported without it', async () => {
  const headers = { 'User-Agent': `client/1 (+http://user:${CANARY}@h/?token=${CANARY})` };
  await fetch(`${server.url}/queue`, { headers });
  const report = await (await fetch(`${server.url}/holdover/report.json`, { headers })).text();
  expect(report).toContain('client/1 (+http://[removed]@h/');
  expect(report).not.toContain(CANARY);
  expectNoTrace();
});

test('keys in a body are neither logged, nor stored, nor shown', async () => {
  const extra_data = {
    api_key_comfy_org: CANARY,
    api_key_service_org: CANARY,
    auth_token_comfy_org: CANARY,
    authorization: `Bearer ${CANARY}`,
    apiKey: CANARY,
    kept: 'yes',
  };
  const socket = await connect(server.wsUrl);
  const prompt = { prompt: endless(), client_id: 'test-client', extra_data };
  const { prompt_id: id } = (await postPrompt(server.url, prompt)).body;
  await untilRunning(server.url);
  const shown = async (path: string) => JSON.stringify(await getJson(server.url + path));
  const texts = [await shown('/queue')];
  await interrupt(server.url);
  await socket.untilDone(id);
  texts.push(await shown('/history'), await shown(`/api/jobs/${id}`));
  for (const text of texts) expect(text).toContain('"kept":"yes"');
  texts.push(JSON.stringify(socket.frames));
  await socket.close();
  expect(texts.filter((text) => text.includes(CANARY))).toEqual([]);
  expectNoTrace();
});

const PARTNER_KEYS = ['api_key_comfy_org', 'api_key_service_org', 'auth_token_comfy_org'];
const picture = {
  '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
  '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
};
const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
  const answer = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: await answer.json() };
};

test.each(PARTNER_KEYS)('extra_data.%s may have 4 KB, and no more', async (name) => {
  const message = `"extra_data.${name}" is longer than 4096 bytes.`;
  const code = 'credential_too_long';
  const fits = { prompt: picture, extra_data: { [name]: 'k'.repeat(4096) } };
  const long = { prompt: picture, extra_data: { [name]: 'ü'.repeat(2049) } };
  expect(await post('/prompt', fits)).toMatchObject({ status: 200 });
  expect(await post('/prompt', long)).toMatchObject({
    status: 400,
    body: { error: { type: code, message }, node_errors: {} },
  });
  expect(await post('/api/prompt', long, { 'X-API-Key': CANARY })).toMatchObject({
    status: 400,
    body: { code, message },
  });
  expect(
    await post('/api/v2/jobs', { ...fits, workflow: picture, prompt: undefined }),
  ).toMatchObject({
    status: 201,
  });
  expect(
    await post('/api/v2/jobs', { ...long, workflow: picture, prompt: undefined }),
  ).toMatchObject({
    status: 422,
    body: { error: { code: 'invalid_request', message } },
  });
});

const LONG_KEY = 'k'.repeat(16 * 1024 + 1);
const CARRIERS: readonly (readonly [name: string, header: (key: string) => string])[] = [
  ['X-API-Key', (key) => `X-API-Key: ${key}`],
  ['Authorization', (key) => `Authorization: Bearer ${key}`],
  [
    'Authorization',
    (key) => `Authorization: Basic ${Buffer.from(`user:${key}`).toString('base64')}`,
  ],
];

test.each(CARRIERS)('a key in %s may have 16 KB, and no more: %s', async (name, header) => {
  const text = `The credential is longer than 16 KiB: ${name}.`;
  const ask = async (path: string, key: string) =>
    say(server.port, requestText(path, { headers: [header(key)] }));
  expect((await ask('/queue', LONG_KEY.slice(name === 'X-API-Key' ? 1 : 6))).status).toBe(200);
  for (const path of ['/queue', '/api/queue', '/api/v2/jobs', '/v1/models', '/holdover/api/jobs']) {
    const answer = await ask(path, LONG_KEY);
    expect([path, answer.status]).toEqual([path, 431]);
    expect(answer.body).toContain(text);
  }
  expect(JSON.parse((await ask('/api/v2/jobs', LONG_KEY)).body)).toMatchObject({
    error: { code: 'invalid_request', details: { rule: 'credential_too_long' } },
  });
});

test('a key in ?token= may have 16 KB, and no more, on a WebSocket too', async () => {
  const opens = async (key: string) => {
    const wire = await dial(server.port);
    wire.send(upgradeText(`/ws?token=${key}`));
    const answer = await wire.until('\r\n\r\n');
    wire.reset();
    return answer;
  };
  expect((await opens(LONG_KEY.slice(1))).status).toBe(101);
  const refused = await opens(LONG_KEY);
  expect(refused.status).toBe(431);
  expect(refused.body).toContain('The credential is longer than 16 KiB: ?token=.');
});

test('a trace of a session has no login in it, however it was written', async () => {
  const out = await tempFolder('traced');
  const script = `await fetch(process.env.COMFYUI_URL + '/queue?%74oken=${CANARY}&s%69g=${CANARY}')`;
  const { code, stderr, stdout } = await runHoldover(
    ['trace', '--port', '0', '--out', out, '--', process.execPath, '-e', script],
    { HOLDOVER_LOCAL_TOKEN: CANARY },
  );
  expect(code).toBe(0);
  expect(stderr + stdout).not.toContain(CANARY);
  const files = readdirSync(out);
  expect(files).toContain('calls.json');
  for (const file of files) expect(readFileSync(join(out, file), 'utf8')).not.toContain(CANARY);
});
