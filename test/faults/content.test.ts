// Matrix F and G: files on their way in, times that are none.
import { randomBytes } from 'node:crypto';
import { FormData, fetch } from 'undici';
import { describe, expect, test } from 'vitest';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { type Answer, type Client, openOwnSetup, useSharedSetup } from './open.ts';

const setup = useSharedSetup();

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
