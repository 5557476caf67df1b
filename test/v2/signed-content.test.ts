import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createContentSigner } from '../../src/v2/link-rewriter.ts';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import { flat } from '../support/graphs/workflows.ts';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const HOUR_MS = 60 * 60 * 1000;
const ann = { Authorization: 'Bearer ann' };
const bob = { Authorization: 'Bearer bob' };

describe('the signer', () => {
  const clock = { nowMs: Date.UTC(2026, 0, 1, 0, 0, 0, 600) };
  const signer = createContentSigner({ secret: Buffer.from('s'), now: () => clock.nowMs });
  const grant = { user: 'ann', assetId: 'a-1' };
  const { query, expiresAt } = signer.sign(grant);
  const userOf = (text: string, assetId = grant.assetId) =>
    signer.userOf(assetId, new URLSearchParams(text));

  test('a link works until the moment it says, at most an hour', () => {
    const end = Date.parse(expiresAt);
    expect(end - clock.nowMs).toBeLessThanOrEqual(HOUR_MS);
    expect(end - clock.nowMs).toBeGreaterThan(HOUR_MS - 1000);
    const before = clock.nowMs;
    clock.nowMs = end - 1;
    expect(userOf(query)).toBe('ann');
    clock.nowMs = end;
    expect(userOf(query)).toBeUndefined();
    clock.nowMs = before;
  });
});

describe('the url of an output', () => {
  const server = useHoldover({ upstream: 'embedded' });
  let output: { id: string; url: string; url_expires_at: string };
  let path = '';
  beforeAll(async () => {
    output = await outputOf(server, flat({ color: 1 }), ann);
    path = pathOf(output.url);
  });

  const get = (target: string, options: Parameters<typeof call>[2] = {}) =>
    call(server.url, target, options);

  test('works without a key, with another key, as HEAD and in parts', async () => {
    const whole = await get(path);
    expect([whole.status, whole.headers['content-type']]).toEqual([200, 'image/png']);
    expect((await get(path, { headers: bob })).body).toEqual(whole.body);
    const head = await get(path, { method: 'HEAD' });
    expect([head.status, head.headers['content-length']]).toEqual([200, `${whole.body.length}`]);
    const part = await get(path, { headers: { Range: 'bytes=1-3' } });
    expect([part.status, part.text]).toEqual([206, 'PNG']);
    const { etag = '' } = whole.headers;
    expect((await get(path, { headers: { 'If-None-Match': etag } })).status).toBe(304);
  });

  test('altered, or for a file of another user, it is a 404', async () => {
    const theirs = pathOf((await outputOf(server, flat({ color: 2 }), bob)).url);
    const [annsFile, annsGrant] = path.split('?');
    const [bobsFile, bobsGrant] = theirs.split('?');
    for (const target of [
      `${annsFile}?${bobsGrant}`,
      `${bobsFile}?${annsGrant}`,
      path.replace(/expires=\d+/, 'expires=1'),
      path.replace(/signature=.{4}/, 'signature=AAAA'),
      `${annsFile}?signature=`,
    ]) {
      for (const headers of [{}, bob]) {
        if (target.startsWith(bobsFile ?? '') && 'Authorization' in headers) continue;
        expect([target, (await get(target, { headers })).status]).toEqual([target, 404]);
      }
    }
    expect((await get(`${annsFile}`)).status).toBe(404);
    // A key that may read the file needs no signature.
    expect((await get(`${annsFile}?signature=x`, { headers: ann })).status).toBe(200);
  });

  test('altered or expired, it is a 404 to the local user as well, whose file it is', async () => {
    const { url } = await outputOf(server, flat({ color: 3 }), {});
    const local = pathOf(url);
    expect((await get(local)).status).toBe(200);
    for (const target of [
      local.replace(/signature=.{4}/, 'signature=AAAA'),
      local.replace(/expires=\d+/, 'expires=1'),
      local.replace('user=local', 'user=other'),
    ])
      expect([target, (await get(target)).status]).toEqual([target, 404]);
    expect((await get(local.split('?')[0] ?? '')).status).toBe(200);
  });

  test('opens nothing but the bytes', async () => {
    const query = path.split('?')[1];
    expect((await get(`/api/v2/assets/${output.id}?${query}`)).status).toBe(404);
    expect((await get(path, { method: 'DELETE' })).status).toBe(405);
    expect((await get(path)).status).toBe(200);
  });

  test('is signed in events, lists, asset records and answers to uploads as well', async () => {
    const client = v2Client(server.url, ann);
    const { body: job } = await client.submit(flat({ color: 3 }));
    const events = await client.events(job.id);
    const inEvent = /"url":"([^"]+)"/.exec(events)?.[1] ?? '';
    const list: any = await json('/api/v2/jobs', ann);
    const record: any = await json(`/api/v2/assets/${output.id}`, ann);
    const asset = await upload(server, ann);
    for (const url of [inEvent, list.jobs[0].outputs[0].url, record.url, asset.url]) {
      expect([url, (await get(pathOf(url))).status]).toEqual([url, 200]);
    }
  });

  test('is not in the log', () => {
    expect(server.log()).toContain('/content?user=');
    expect(server.log()).not.toMatch(/signature=(?!\[removed\]|")/);
  });

  const json = async (target: string, headers: Record<string, string>): Promise<unknown> =>
    JSON.parse((await get(target, { headers })).text);
});

test('with a token for all it works without; a restart keeps it, a deleted file ends it', async () => {
  const args = ['--local-token', 'token'];
  const headers = { Authorization: 'Bearer token' };
  const first = await started({ args });
  const path = pathOf((await outputOf(first, flat({ color: 4 }), headers)).url);
  expect((await call(first.url, path.split('?')[0] ?? '')).status).toBe(401);
  expect((await call(first.url, path)).status).toBe(200);
  await first.kill9();
  const { dataDir } = first;
  const second = await started({ args, dataDir });
  expect((await call(second.url, path)).status).toBe(200);
  const { id, url } = await upload(second, headers);
  expect((await call(second.url, pathOf(url))).status).toBe(200);
  const target = `/api/v2/assets/${id}`;
  expect((await call(second.url, target, { method: 'DELETE', headers })).status).toBe(204);
  expect((await call(second.url, pathOf(url))).status).toBe(404);
});

test('another Holdover in front downloads with its key, and hands the link on', async () => {
  const behind = await started({
    // An address that leads nowhere: the one in front must not need it.
    args: ['--local-token', 'token', '--public-url', 'https://unreachable.invalid/comfy'],
  });
  const front = await started({
    args: ['--upstream', behind.url],
    env: { HOLDOVER_UPSTREAM_KEY: 'token' },
  });
  const { url } = await outputOf(front, flat({ color: 5 }), {});
  expect(url.startsWith('https://unreachable.invalid/comfy/api/v2/assets/')).toBe(true);
  // Below the prefix of the link, at the one behind and through the one in front.
  expect((await call(behind.url, pathOf(url))).status).toBe(200);
  const images = await vi.waitFor(
    async () => {
      const history: any = await (await fetch(`${front.url}/history`)).json();
      const [entry]: any[] = Object.values(history);
      return (Object.values(entry.outputs)[0] as any).images;
    },
    { timeout: 40_000 },
  );
  const view = await fetch(`${front.url}/view?${new URLSearchParams(images[0])}`);
  expect([view.status, view.headers.get('content-type')]).toEqual([200, 'image/png']);
});

/** A server for one test. */
async function started(options: Parameters<typeof startHoldover>[0]): Promise<Holdover> {
  const server = await startHoldover({ ...options, upstream: 'embedded' });
  onTestFinished(() => server.dispose());
  return server;
}

async function outputOf(
  server: Holdover,
  workflow: object,
  headers: Record<string, string>,
): Promise<{ id: string; url: string; url_expires_at: string }> {
  const client = v2Client(server.url, headers);
  const { body: job } = await client.submit(workflow);
  await client.events(job.id);
  return (await client.job(job.id)).body.outputs[0];
}

async function upload(
  server: Holdover,
  headers: Record<string, string>,
): Promise<{ id: string; url: string }> {
  const form = new FormData();
  form.append('content_type', 'text/plain');
  form.append('file_path', 'input/a.txt');
  form.append('file', new Blob(['text']), 'a.txt');
  const url = `${server.url}/api/v2/assets`;
  const answer = await fetch(url, { method: 'POST', headers, body: form });
  return (await answer.json()) as { id: string; url: string };
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}
