import { expect, onTestFinished, test } from 'vitest';
import type { Asset, Job } from '../../src/protocol/v2.ts';
import { BucketError } from '../../src/blobs/bucket/errors.ts';
import { createFolderBlobs } from '../../src/blobs/folder/folder-blobs.ts';
import { graph } from '../support/app/jobs.ts';
import { multipart } from '../support/app/v1-routes.ts';
import { createTestV2AppOver } from '../support/app/v2-routes.ts';
import { startEngine, tempDir } from '../engine/memory/open.ts';

async function createEngineApp(options: Parameters<typeof startEngine>[0] = {}) {
  const app = await createTestV2AppOver(await startEngine(options));
  onTestFinished(() => app.close());
  const submit = async (workflow: object, headers: Readonly<Record<string, string>> = {}) =>
    await app.ask('/api/v2/jobs', {
      method: 'POST',
      body: JSON.stringify({ workflow, metadata: { label: 'x' } }),
      headers,
    });
  return { ...app, submit };
}

function form(text: string) {
  return multipart(
    { name: 'content_type', value: 'text/plain' },
    { name: 'file_path', value: 'input/a.txt' },
    { name: 'file', filename: 'a.txt', data: text },
  );
}

/** Without the times until which links work: they are made anew for each answer. */
function withoutExpiry(job: unknown): unknown {
  return JSON.parse(JSON.stringify(job), (name, member) =>
    name === 'url_expires_at' ? 'later' : member,
  );
}

test('an upload that cannot be stored is answered 503 and leaves no file', async () => {
  const dir = await tempDir();
  const blobs = createFolderBlobs(dir, dir);
  const away = new BucketError('the bucket is away');
  const moveIntoPlace = () => Promise.reject(away);
  const app = await createEngineApp({ blobs: { ...blobs, moveIntoPlace } });
  expect((await app.ask('/api/v2/assets', form('41'))).status).toBe(503);
  expect(await app.spooled()).toEqual([]);
});

test('the same bytes are known by their hash, to their owner only', async () => {
  const app = await createEngineApp();
  const { hash } = (await app.ask('/api/v2/assets', form('7'))).json() as Asset;
  const path = `/api/v2/assets/by-hash/${encodeURIComponent(hash ?? '')}`;
  expect((await app.ask(path, { method: 'HEAD' })).status).toBe(200);
  expect((await app.ask(path, { method: 'HEAD', user: 'ben' })).status).toBe(404);
  const body = JSON.stringify({ hash });
  const created = await app.ask('/api/v2/assets/from-hash', { method: 'POST', body });
  expect([created.status, created.json()]).toMatchObject([201, { hash, file_path: 'input/a.txt' }]);
  expect((await app.ask('/api/v2/assets', form('7'))).status).toBe(200);
});

test('the terminal status of a job that is over carries it too', async () => {
  const app = await createEngineApp();
  const saving = graph({
    1: ['Number', { value: 1 }],
    2: ['Save', { value: ['1', 0], prefix: 'a' }],
  });
  const { urls } = (await app.submit(saving)).json() as Job;
  await (await app.listen(urls.events)).rest();
  const done = (await app.ask(urls.self)).json() as Job;
  const [ended, ...others] = await (await app.listen(urls.events)).rest();
  expect(others).toEqual([]);
  expect(withoutExpiry(ended)).toEqual({ event: 'status', data: withoutExpiry(done) });
  expect((ended as { data: Job }).data.outputs[0]?.url).toMatch(/^http/);
});

test('the first stream of a job whose end its reader knows is its last status alone', async () => {
  const app = await createEngineApp();
  const { urls } = (await app.submit(graph({ 1: ['Sink', { value: 1 }] }))).json() as Job;
  const statusOf = async () => ((await app.ask(urls.self)).json() as Job).status;
  await expect.poll(statusOf).toBe('succeeded');
  const events = await (await app.listen(urls.events)).rest();
  expect(events).toMatchObject([{ event: 'status', data: { status: 'succeeded' } }]);
});

test('a key is taken once, a broken workflow is refused with node errors, a job is cancelled', async () => {
  const app = await createEngineApp();
  const endless = graph({ 1: ['Spin', { seed: 1 }], 2: ['Sink', { value: ['1', 0] }] });
  const first = await app.submit(endless, { 'Idempotency-Key': 'k' });
  const again = await app.submit(endless, { 'Idempotency-Key': 'k' });
  expect(again.json()).toMatchObject({ error: { code: 'idempotency_key_reuse' } });
  const broken = await app.submit(graph({ 2: ['Sink', {}] }));
  expect([broken.status, broken.json()]).toMatchObject([
    422,
    {
      error: {
        code: 'invalid_workflow',
        details: {
          node_errors: { 2: [{ field: 'value', reason: 'missing_input' }] },
          x_native: { 2: { class_type: 'Sink' } },
        },
      },
    },
  ]);
  const { id, urls } = first.json() as Job;
  const reader = await app.listen(urls.events);
  await app.ask(urls.cancel, { method: 'POST' });
  expect((await reader.rest()).at(-1)).toMatchObject({ data: { status: 'canceled' } });
  expect((await app.ask('/api/v2/jobs?status=canceled&limit=1')).json()).toMatchObject({
    jobs: [{ id }],
  });
});

test.each(['null', '[]', '{"class_type":"Sink"}', '{"class_type":"Sink","inputs":[]}'])(
  'a node that is %s is a refusal, not a failure',
  async (node) => {
    const app = await createEngineApp();
    const answer = await app.ask('/api/v2/jobs', {
      method: 'POST',
      body: `{"workflow":{"1":${node}}}`,
    });
    expect([answer.status, answer.json()]).toMatchObject([
      422,
      { error: { code: 'invalid_workflow' } },
    ]);
  },
);
