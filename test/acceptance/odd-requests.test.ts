// Requests that no client should send, answered as measured at the original server.
import { expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { call } from '../support/clients/raw-call.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const server = useHoldover();

test.each(['GET', 'PUT', 'POST', 'PATCH', 'DELETE'])(
  '%s of an unknown path below /internal is a 404 in words',
  async (method) => {
    expect(await call(server.url, '/internal/none', { method })).toMatchObject({
      status: 404,
      text: '404: Not Found',
    });
  },
);

test('an upload in place of another changes no link that was made before', async () => {
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
