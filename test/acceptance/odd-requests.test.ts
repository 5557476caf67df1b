// Requests that no client should send, answered as measured at the original server.
import { describe, expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { call } from '../support/clients/raw-call.ts';
import { requestText, say } from '../support/clients/raw-socket.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const server = useHoldover();

const ask = async (method: string, path: string, body?: string) => {
  const { status, text, headers } = await call(server.url, path, {
    method,
    ...(body !== undefined && { body }),
  });
  return { status, text, headers };
};

test.each(
  ['/queue', '/history'].flatMap((path) =>
    ['{"delete":"abc"}', '{"delete":{"a":1}}'].map((body) => [path, body] as const),
  ),
)('POST %s with %s changes nothing', async (path, body) => {
  expect(await ask('POST', path, body)).toMatchObject({ status: 200, text: '' });
});

test.each(['1_0', '99999999999999999999', '+2', ' 2 '])(
  'max_items=%j is an integer, as for Python',
  async (value) => {
    const path = `/history?max_items=${encodeURIComponent(value)}`;
    expect(await ask('GET', path)).toMatchObject({ status: 200, text: '{}' });
  },
);

test.each(['1__0', '1_', '2.0', '1e1', ''])('max_items=%j is none', async (value) => {
  expect((await ask('GET', `/history?max_items=${value}`)).status).toBe(400);
});

test.each(['GET', 'PUT', 'POST', 'PATCH', 'DELETE'])(
  '%s of an unknown path below /internal is a 404 in words',
  async (method) => {
    expect(await ask(method, '/internal/none')).toMatchObject({
      status: 404,
      text: '404: Not Found',
    });
  },
);

describe('an upload', () => {
  const bytes = async () => ({ name: 'dot.png', bytes: await pngOf() });

  test('to the folder "." is stored in the root, and the answer repeats the dot', async () => {
    const file = { ...(await bytes()), fields: { subfolder: '.' } };
    expect(await uploadInput(server.url, file)).toMatchObject({
      name: 'dot.png',
      subfolder: '.',
      type: 'input',
    });
    expect((await ask('GET', '/view?type=input&filename=dot.png')).status).toBe(200);
  });

  test('in place of another changes no link that was made before', async () => {
    const headers = { 'X-API-Key': 'linked' };
    const view = '/api/view?type=input&filename=linked.png';
    const linkTo = async () => (await call(server.url, view, { headers })).headers.location ?? '';
    const [first, second] = [await pngOf({ r: 1, g: 2, b: 3 }), await pngOf({ r: 3, g: 2, b: 1 })];
    await uploadInput(server.url, { name: 'linked.png', bytes: first }, headers);
    const [link, rendered] = [
      await linkTo(),
      await call(server.url, `${view}&preview=jpeg`, { headers }),
    ];
    const renderedLink = rendered.headers.location ?? '';
    const before = await (await fetch(renderedLink)).arrayBuffer();
    const fields = { overwrite: 'true' };
    await uploadInput(server.url, { name: 'linked.png', bytes: second, fields }, headers);
    const bytesOf = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer());
    expect((await bytesOf(link)).equals(first)).toBe(true);
    expect((await bytesOf(renderedLink)).equals(Buffer.from(before))).toBe(true);
    expect((await bytesOf(await linkTo())).equals(second)).toBe(true);
    const { headers: named } = await fetch(link);
    expect(named.get('Content-Disposition')).toBe('filename="linked.png"');
  });
});

describe('a WebSocket where there is none is refused in the form of the API it asks', () => {
  const upgrade = (target: string, ...headers: readonly string[]) => {
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
    const offer = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', key];
    return say(server.port, requestText(target, { headers: [...offer, ...headers] }));
  };

  test.each([
    [[], 404, 'model_not_found'],
    [['Origin: http://other.example'], 403, 'forbidden'],
  ] as const)('the router, with %j: %i', async (headers, status, bucket) => {
    const answer = await upgrade('/v1/models', ...headers);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual({ detail: expect.any(String), error_type: bucket });
    expect(answer.headers).toMatchObject({
      'x-service-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'x-service-error-type': bucket,
      'x-comfy-error-type': bucket,
    });
  });

  test('v2', async () => {
    const answer = await upgrade('/api/v2/jobs');
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([404, 'not_found']);
  });

  test('v1', async () => {
    const answer = await upgrade('/queue');
    expect([answer.status, JSON.parse(answer.body).error.type]).toEqual([404, 'not_found']);
  });
});
