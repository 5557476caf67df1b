// Credentials are sent in every place a client may put one; the inspector shows none of them.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { deflateSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { WebSocket } from 'ws';
import { flat } from '../support/graphs/workflows.ts';

const server = useHoldover({ upstream: 'embedded' });

const KEY = 'the-key "of" the caller';
/** Each has its own: one that is known from a header is found anywhere. */
const sent: string[] = [];
function secret(): string {
  const value = `s3cr3t-${randomBytes(8).toString('hex')}`;
  sent.push(value);
  return value;
}

async function call(path: string, init: RequestInit = {}): Promise<string> {
  const headers = { 'X-API-Key': KEY, ...(init.headers as Record<string, string>) };
  const answer = await fetch(server.url + path, { redirect: 'manual', ...init, headers });
  return answer.text();
}

const post = (path: string, body: BodyInit, headers: Record<string, string> = {}) =>
  call(path, { method: 'POST', body, headers });

async function sendInHeaders(): Promise<void> {
  const names = ['Cookie', 'Proxy-Authorization', 'X-Auth-Token', 'X-Amz-Security-Token'];
  const more = ['X-Session', 'Sec-WebSocket-Protocol', 'Cf-Access-Jwt-Assertion', 'X-Secret'];
  const headers = Object.fromEntries([...names, ...more].map((name) => [name, secret()]));
  const referer = `http://127.0.0.1/?token=${secret()}`;
  await call('/queue', { headers: { ...headers, Referer: referer } });
}

async function sendInAddresses(): Promise<void> {
  const json = JSON.stringify({ a: [{ api_key: secret() }] });
  const inner = `http://user:${secret()}@h/x?sig=${secret()}`;
  for (const query of [
    `api_key=${secret()}`,
    `%74oken=${secret()}`,
    `x=${encodeURIComponent(json)}`,
    `url=${encodeURIComponent(inner)}`,
  ])
    await call(`/history?${query}`);
}

async function sendInBodies(): Promise<void> {
  const shown = {
    class_type: 'PreviewAny',
    inputs: { source: JSON.stringify({ deep: JSON.stringify({ password: secret() }) }) },
  };
  const graph = { ...flat({ color: 1 }), 9: shown };
  const extra_data = {
    api_key_comfy_org: secret(),
    auth_token_comfy_org: secret(),
    extra_pnginfo: { workflow: { nodes: [], client_secret: secret(), tokens: [1] } },
  };
  await post('/prompt', JSON.stringify({ prompt: graph, client_id: 'c', extra_data }));
  await post('/prompt', `{"prompt":{},"\\u0061pi_key":"${secret()}"}`);
  await post('/prompt', `{"prompt":{},"a":{"\\u0061pi_key":"${secret()}"},"a":1}`);
  await post(
    '/prompt',
    JSON.stringify({ prompt: {}, api_key: [secret()], password: `it's"${secret()}` }),
  );
  await post('/prompt', JSON.stringify({ prompt: {}, credentials: { inside: secret() } }));
  await post('/prompt', `{"prompt": {}, "client_secret": "${secret()}", broken`);
  await post('/prompt', JSON.stringify({ prompt: { message: `Bearer ${secret()}` } }));
  await post('/prompt', `api_key=${secret()}&access_token=${secret()}`);
  const form = `token=${secret()}&x=http%3A%2F%2Fu%3A${secret()}%40h`;
  await post('/prompt', form, { 'Content-Type': 'application/x-www-form-urlencoded' });
  await post('/settings', JSON.stringify({ 'Comfy.ApiKey': secret(), 'a.b': 1 }));
  await post('/settings/My.ApiKey', JSON.stringify(secret()));
  await call('/settings/My.ApiKey');
  await call('/settings');
  // Cut off within the value.
  const value = secret();
  const start = `{"pad":"`;
  const middle = `","private_key":"`;
  const pad = 'x'.repeat(128 * 1024 - start.length - middle.length - value.length / 2);
  await post('/prompt', `${start}${pad}${middle}${value}"}`);
  await post('/prompt', `${start}${'x'.repeat(128 * 1024 - 12 - start.length)}","a":"${KEY}"}`);
}

async function sendInForms(): Promise<void> {
  const form = new FormData();
  form.append('image', new Blob([secret()], { type: 'text/plain' }), 'in.png');
  form.append('api_key', secret());
  form.append('extra', JSON.stringify({ api_key_comfy_org: secret() }));
  await post('/upload/image', form);
  const type = { 'Content-Type': 'multipart/form-data; boundary=b' };
  const named = `--b\r\nContent-Disposition: form-data; name*=utf-8''access%5Ftoken\r\n\r\n`;
  await post('/upload/image', `${named}${secret()}\r\n--b--`, type);
  await post(
    '/upload/image',
    `--b\r\nContent-Disposition: form-data; name=password\r\n\r\n${secret()}`,
    type,
  );
}

async function sendInFrames(): Promise<void> {
  const socket = new WebSocket(`${server.wsUrl}/ws?clientId=c`, { headers: { 'X-API-Key': KEY } });
  await once(socket, 'open');
  const data = { api_key: secret(), nested: JSON.stringify({ auth_token: secret() }) };
  socket.send(JSON.stringify({ type: 'feature_flags', data }));
  socket.send(JSON.stringify({ type: `token=${secret()} Bearer ${secret()}`, data: {} }));
  socket.send(
    Buffer.concat([Buffer.from([0, 0, 0, 3, 0, 0, 0, 1]), Buffer.from(`1Bearer ${secret()}`)]),
  );
  const text = Buffer.concat([Buffer.from([0, 0, 0, 1, 0, 0, 0, 2]), pngWith(KEY)]);
  socket.send(text);
  await call('/queue');
  socket.close();
  await once(socket, 'close');
}

/** The beginning of a PNG with this text in it. */
function pngWith(text: string): Buffer {
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    Buffer.from(`tEXtprompt\0${text}`),
    deflateSync('x'),
  ]);
}

test('no credential is in the list, in the details or in a picture', async () => {
  await call('/holdover/api/traffic');
  await Promise.all([
    sendInHeaders(),
    sendInAddresses(),
    sendInBodies(),
    sendInForms(),
    sendInFrames(),
  ]);
  const list = await call('/holdover/api/traffic');
  const { entries } = JSON.parse(list) as { readonly entries: readonly { readonly id: number }[] };
  const paths = entries.flatMap(({ id }) => [`entry?id=${id}`, `picture?id=${id}`]);
  const shown = await Promise.all(paths.map((path) => call(`/holdover/api/traffic/${path}`)));
  const texts = [list, ...shown];
  const all = texts.join('\n') + texts.map(base64In).join('\n');
  expect(sent.length).toBeGreaterThan(35);
  expect(sent.map((value) => placeOf(all, value.slice(0, 15))).filter(Boolean)).toEqual([]);
  expect(placeOf(all, /the-key .{0,8}of/)).toBe('');
  // It is no empty list: what is no credential is there.
  expect(entries.length).toBeGreaterThan(30);
  for (const word of ['tokens', 'PreviewAny', 'feature_flags', 'in.png', 'private'])
    expect(placeOf(all, word)).not.toBe('');
});

/** Where it is, in a few words. */
function placeOf(text: string, found: string | RegExp): string {
  const at = text.search(found);
  return at < 0 ? '' : text.slice(Math.max(0, at - 150), at + 40);
}

/** Bytes in Base64 are read too. */
function base64In(text: string): string {
  const found = text.match(/[A-Za-z0-9+/]{40,}={0,2}/g) ?? [];
  return found.map((one) => Buffer.from(one, 'base64').toString('latin1')).join('\n');
}
