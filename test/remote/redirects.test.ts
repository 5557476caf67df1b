// Where a service may send Holdover for a file: to itself, to the internet, to hosts the operator names.
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type HostileV2, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import { madeOutputs, viewQuery } from '../support/processes/holdover-before-hostile.ts';
import { type StorageHost, openStorageHost } from '../support/upstreams/storage-host.ts';

const KEY = { 'X-API-Key': 'comfyui-canary-key' };

let upstream: HostileV2;
let storage: StorageHost;
/** Was told of no hosts. */
let holdover: Holdover;

beforeAll(async () => {
  [upstream, storage] = await Promise.all([openHostileV2(), openStorageHost()]);
  storage.files.set('/kept.png', Buffer.from('kept elsewhere'));
  holdover = await inFront();
});
afterEach(() => storage.reset());
afterAll(() => Promise.all([holdover.dispose(), upstream.close(), storage.close()]));

function inFront(...args: string[]): Promise<Holdover> {
  return startHoldover({ upstream: 'embedded', args: ['--upstream', upstream.url, ...args] });
}

/** Asks for an output, of which there is no copy here. */
async function makeFile(before = holdover): Promise<(path?: string) => Promise<Response>> {
  const made = await madeOutputs({ upstream, holdover: before }, [{ id: randomUUID() }], KEY);
  const query = viewQuery(made.files[0] ?? {});
  return (path = '/view') =>
    fetch(`${before.url}${path}?${query}`, { headers: KEY, redirect: 'manual' });
}

const redirectTo = (location: string) =>
  upstream.always('content', ({ res }) => void res.writeHead(302, { Location: location }).end());

test('another service of this machine is not read, and the log says which and why', async () => {
  redirectTo(`${storage.url}/kept.png?X-Amz-Signature=hidden-signature`);
  const view = await makeFile();
  for (const path of ['/view', '/api/view']) {
    const answer = await view(path);
    // The client is a hosted one below `/api`: its document knows no 502.
    expect([path, answer.status]).toEqual([path, path === '/view' ? 502 : 500]);
    const text = await answer.text();
    expect(text).toContain('--upstream-redirects');
    expect(text).not.toContain(new URL(storage.url).port);
  }
  expect(storage.visits).toEqual([]);
  const lines = holdover
    .log()
    .split('\n')
    .filter((each) => each.includes('upstream.redirect_refused'));
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ reason: `${new URL(storage.url).host} is in a private network` }),
  );
  expect(holdover.log()).not.toContain('hidden-signature');
});

test('nor by a name that stands for this machine', async () => {
  redirectTo(`${storage.url.replace('127.0.0.1', 'localhost')}/kept.png`);
  expect((await (await makeFile())()).status).toBe(502);
  expect(storage.visits).toEqual([]);
});

test('a host the operator names is read, without the key', async () => {
  redirectTo(`${storage.url}/kept.png`);
  const { host } = new URL(storage.url);
  const told = await inFront('--upstream-redirects', 'store.internal', host);
  onTestFinished(() => told.dispose());
  const view = await makeFile(told);
  const answer = await view();
  expect([answer.status, await answer.text()]).toEqual([200, 'kept elsewhere']);
  expect(JSON.stringify(storage.visits)).not.toContain('canary');
  expect((await view('/api/view')).headers.get('location')).toBe(`${storage.url}/kept.png`);
});

test('the service’s own origin is read', async () => {
  upstream.contents.set('own', Buffer.from('its own'));
  redirectTo(`/signed/own?until=${Date.now() + 60_000}`);
  const answer = await (await makeFile())();
  expect([answer.status, await answer.text()]).toEqual([200, 'its own']);
});
