import { expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/protocol/v2.ts';
import { BucketError } from '../../src/blobs/bucket/errors.ts';
import { createFolderBlobs } from '../../src/blobs/folder/folder-blobs.ts';
import { graph } from '../support/app/jobs.ts';
import { multipart } from '../support/app/v1-routes.ts';
import { createTestV2AppOver } from '../support/app/v2-routes.ts';
import { startEngine } from '../engine/memory/open.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

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
  const dir = await tempFolder('data');
  const blobs = createFolderBlobs(dir);
  const away = new BucketError('the bucket is away');
  const moveIntoPlace = () => Promise.reject(away);
  const app = await createEngineApp({ blobs: { ...blobs, moveIntoPlace } });
  expect((await app.ask('/api/v2/assets', form('41'))).status).toBe(503);
  expect(await app.spooled()).toEqual([]);
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
