import { expect, test, vi } from 'vitest';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { startHoldover } from '../support/processes/holdover.ts';

vi.setConfig({ testTimeout: 60_000 });

test('names, tags and metadata survive kill -9', async () => {
  const server = await startHoldover();
  const uploaded = await uploadInput(server.url, { bytes: Buffer.from('x'), name: 'x.txt' });
  const { asset } = uploaded as unknown as { asset: { id: string } };
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
