import { expect, test, vi } from 'vitest';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { startHoldover } from '../support/processes/holdover.ts';

vi.setConfig({ testTimeout: 60_000 });

const upload = (url: string) => uploadInput(url, { bytes: Buffer.from('x'), name: 'x.txt' });

test('switched off, the assets API answers 503 and nothing shows an asset', async () => {
  const server = await startHoldover({ args: ['--limits', '{"assets":false}'] });
  try {
    for (const path of ['assets', 'assets/x', 'assets/x/content', 'tags', 'assets/seed/status']) {
      const answer = await fetch(`${server.url}/api/${path}`);
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ error: { code: 'SERVICE_DISABLED' } });
    }
    expect((await getJson(`${server.url}/features`)).assets).toBe(false);
    expect(await upload(server.url)).toEqual({ name: 'x.txt', subfolder: '', type: 'input' });
  } finally {
    await server.dispose();
  }
});

test('names, tags and metadata survive kill -9', async () => {
  const server = await startHoldover();
  const { asset } = (await upload(server.url)) as unknown as { asset: { id: string } };
  const labels = { name: 'n', tags: ['t'], user_metadata: { a: 1 } };
  const path = `/api/assets/${asset.id}`;
  const changed = await fetch(server.url + path, { method: 'PUT', body: JSON.stringify(labels) });
  expect(changed.status).toBe(200);
  await server.kill9();
  const again = await startHoldover({ dataDir: server.dataDir });
  try {
    const expected = { name: 'n', tags: ['input', 't', 'uploaded'], user_metadata: { a: 1 } };
    expect(await getJson(again.url + path)).toMatchObject(expected);
  } finally {
    await again.dispose();
    await server.dispose();
  }
});
