// Matrix F and G, and F13: files on their way in, times that are none.
import { randomBytes, randomUUID } from 'node:crypto';
import { FormData, fetch } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Hook, error } from '../support/upstreams/hostile-v2.ts';
import { footprint } from '../support/processes/invariants.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { loading } from '../support/graphs/workflows.ts';
import { type Answer, type Client, type FaultSetup, openOwnSetup, useSharedSetup } from './open.ts';

let setup: FaultSetup;
useSharedSetup((opened) => (setup = opened));

const theirs = (client: Client) => setup.upstream.of(client.key);

const RECORD = {
  hash: null,
  size_bytes: 1,
  content_type: 'image/png',
  created_at: '2026-01-01T00:00:00Z',
  url: '/x',
  url_expires_at: '2026-01-02T00:00:00Z',
};

function upload(client: Client, bytes: Buffer, name: string): Promise<Answer> {
  const form = new FormData();
  form.append('image', new Blob([new Uint8Array(bytes)]), name);
  return client.ask('/upload/image', { method: 'POST', body: form });
}

describe('uploads', () => {
  test('one that goes up slowly, but goes, takes as long as it takes', async () => {
    const own = await openOwnSetup({ limits: { submitTimeoutMs: 6_000 } });
    const client = await own.client();
    const bytes = randomBytes(700_000);
    own.proxy.set('up', { bytesPerSecond: 350_000, sliceBytes: 8_192 });
    expect((await upload(client, bytes, 'a.png')).status).toBe(200);
    own.proxy.restore();
    const url = `${own.holdover().url}/view?filename=a.png&type=input`;
    const seen = await fetch(url, { headers: client.headers });
    expect(Buffer.from(await seen.arrayBuffer())).toEqual(bytes);
  });

  test('F69 many at once cost no memory', async () => {
    const own = await openOwnSetup({ limits: { submitTimeoutMs: 20_000, readTimeoutMs: 10_000 } });
    const client = await own.client();
    own.upstream.always('byHash', ({ res }) => void res.writeHead(404).end());
    own.upstream.always('upload', ({ json }) => json(201, { ...RECORD, id: randomUUID() }));
    const before = footprint(own.holdover()).rssBytes;
    let most = before;
    const sampler = setInterval(
      () => (most = Math.max(most, footprint(own.holdover()).rssBytes)),
      50,
    );
    onTestFinished(() => clearInterval(sampler));
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, i) => upload(client, randomBytes(6 * 2 ** 20), `${i}.png`)),
    );
    // Beyond what may be under way at once it is told to come again.
    for (const { status } of all) expect([200, 503]).toContain(status);
    expect(all.filter(({ status }) => status === 200).length).toBeGreaterThan(3);
    expect(most - before).toBeLessThan(12 * 8 * 2 ** 20);
  });

  test('F13 one that is refused again under its new id is refused for good', async () => {
    const client = await setup.client();
    await upload(client, randomBytes(3_000), 'lost.png');
    theirs(client).always('submit', lostAsset());
    const marker = `f13-${randomUUID()}`;
    const { status } = await client.post({ marker, prompt: loading('lost.png', marker) });
    expect(status).toBe(400);
    expect(theirs(client).requests('submit')).toHaveLength(2);
  });

  /** The answer to a workflow that names an unknown asset. */
  function lostAsset(): Hook {
    return ({ body, json }) => {
      const ids = [...body.toString().matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id);
      json(422, error('missing_asset', 'an asset is missing', { missing_ids: ids }));
    };
  }
});

test.each([null, 1e99, 'yesterday', '0001-01-01T00:00:00Z'])(
  'F65 %j as every time of a job is no obstacle, and no NaN for anybody',
  async (time) => {
    const client = await setup.client();
    const times = { created_at: time, started_at: time, completed_at: time, expires_at: time };
    setup.upstream.script(async (job, server) => {
      Object.assign(job, times);
      await runsToCompletion()(job, server);
      Object.assign(job, times);
    }, client.key);
    const { promptId } = await client.post();
    await client.ended(promptId);
    for (const path of [
      '/history',
      '/api/history_v2',
      '/api/jobs',
      `/api/job/${promptId}/status`,
    ]) {
      const { text } = await client.ask(path);
      expect([path, text]).not.toEqual([path, expect.stringMatching(/NaN|Infinity|Invalid/)]);
    }
    const numbers = JSON.stringify(await client.history(promptId)).matchAll(
      /"timestamp":([^,}]+)/g,
    );
    for (const [, number] of numbers) expect(Number(number)).toBeGreaterThan(1e12);
  },
);

test('I1 to I10 hold over all of it', () => setup.check());
