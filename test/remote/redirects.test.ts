// Where a service may send Holdover for a file: to itself, to the internet, to hosts the operator names.
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type HostileV2, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import {
  type FileRef,
  madeOutputs,
  viewQuery,
} from '../support/processes/holdover-before-hostile.ts';
import { type StorageHost, openStorageHost } from '../support/upstreams/storage-host.ts';

const KEY = { 'X-API-Key': 'comfyui-canary-key' };

let upstream: HostileV2;
let storage: StorageHost;
/** An output, of which there is no copy here. */
let file: Partial<FileRef>;

beforeAll(async () => {
  [upstream, storage] = await Promise.all([openHostileV2(), openStorageHost()]);
  storage.files.set('/kept.png', Buffer.from('kept elsewhere'));
});
afterEach(() => storage.reset());
afterAll(() => Promise.all([upstream.close(), storage.close()]));

async function inFront(...args: string[]): Promise<Holdover> {
  const holdover = await startHoldover({
    upstream: 'embedded',
    args: ['--upstream', upstream.url, ...args],
  });
  onTestFinished(() => holdover.dispose());
  const made = await madeOutputs({ upstream, holdover }, [{ id: 'made' }], KEY);
  [file = {}] = made.files;
  return holdover;
}

const view = (holdover: Holdover, path = '/view') =>
  fetch(`${holdover.url}${path}?${viewQuery(file)}`, { headers: KEY, redirect: 'manual' });

const redirectTo = (location: string) =>
  upstream.always('content', ({ res }) => void res.writeHead(302, { Location: location }).end());

test('another service of this machine is not read, and the log says which and why', async () => {
  redirectTo(`${storage.url}/kept.png?X-Amz-Signature=hidden-signature`);
  const holdover = await inFront();
  for (const path of ['/view', '/api/view']) {
    const answer = await view(holdover, path);
    // The client is a hosted one below `/api`: its document knows no 502.
    expect([path, answer.status]).toEqual([path, path === '/view' ? 502 : 500]);
    const text = await answer.text();
    expect(text).toContain('--upstream-redirects');
    expect(text).not.toContain(new URL(storage.url).port);
  }
  expect(storage.visits).toEqual([]);
  const line = holdover
    .log()
    .split('\n')
    .find((each) => each.includes('upstream.redirect_refused'));
  expect(JSON.parse(line ?? '{}')).toMatchObject({
    reason: `${new URL(storage.url).host} is in a private network`,
  });
  expect(holdover.log()).not.toContain('hidden-signature');
});

test('nor by a name that stands for this machine', async () => {
  redirectTo(`${storage.url.replace('127.0.0.1', 'localhost')}/kept.png`);
  const holdover = await inFront();
  expect((await view(holdover)).status).toBe(502);
  expect(storage.visits).toEqual([]);
});

test('a host the operator names is read, without the key', async () => {
  redirectTo(`${storage.url}/kept.png`);
  const { host } = new URL(storage.url);
  const holdover = await inFront('--upstream-redirects', 'store.internal', host);
  const answer = await view(holdover);
  expect([answer.status, await answer.text()]).toEqual([200, 'kept elsewhere']);
  expect(JSON.stringify(storage.visits)).not.toContain('canary');
  expect((await view(holdover, '/api/view')).headers.get('location')).toBe(
    `${storage.url}/kept.png`,
  );
});

test('the service’s own origin is read', async () => {
  upstream.contents.set('own', Buffer.from('its own'));
  redirectTo(`/signed/own?until=${Date.now() + 60_000}`);
  const answer = await view(await inFront());
  expect([answer.status, await answer.text()]).toEqual([200, 'its own']);
});
