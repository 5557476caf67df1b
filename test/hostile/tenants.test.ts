// One user against another: what is not yours looks like what is not there. Requirement 34.
import { beforeAll, describe, expect, test } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, loading } from '../support/graphs/workflows.ts';

const ALICE = { 'X-API-Key': 'alice-key' };
const BOB = { 'X-API-Key': 'bob-key' };
const NOBODY = { 'X-API-Key': '' };
const DONE = 'alice-done';
const WAITS = 'alice-waits';
const RUNS = 'alice-runs';

const server = useHoldover();
let jobs: { [promptId: string]: string };
let result: { filename: string; subfolder: string; type: string };
let secretHash: string;
let assetIds: string[];
let bob: Recorder;

beforeAll(async () => {
  await uploadInput(server.url, { name: 'secret.png', bytes: await pngOf() }, ALICE);
  bob = await connect(server.wsUrl, { clientId: 'alice-socket', headers: BOB });
  const send = (prompt_id: string, prompt: object) =>
    postPrompt(server.url, { prompt, prompt_id, client_id: 'alice-socket' }, { headers: ALICE });
  const alice = await connect(server.wsUrl, { clientId: 'alice-socket', headers: ALICE });
  await send(DONE, loading('secret.png', 'private'));
  await alice.untilDone(DONE);
  const done = await getJson(`${server.url}/history/${DONE}`, ALICE);
  [result] = Object.values<any>(done[DONE].outputs)[0].images;
  await send(RUNS, endless());
  await send(WAITS, flat());
  const listed = await getJson(`${server.url}/api/v2/jobs`, ALICE);
  const all = await Promise.all(
    listed.jobs.map((job: any) => getJson(`${server.url}/api/v2/jobs/${job.id}`, ALICE)),
  );
  assetIds = all.flatMap((job) => job.outputs.map((output: any) => output.id));
  jobs = Object.fromEntries(listed.jobs.map((job: any, i: number) => [`${i}`, job.id]));
  const own = await fetch(`${server.url}/api/v2/assets/${assetIds[0]}`, { headers: ALICE });
  secretHash = (await own.json()).hash;
});

async function ask(path: string, init: RequestInit = {}) {
  const answer = await fetch(server.url + path, {
    redirect: 'manual',
    ...init,
    headers: { ...BOB, ...(init.headers as Record<string, string>) },
  });
  const headers = Object.fromEntries(answer.headers);
  for (const name of ['date', 'x-request-id', 'connection', 'keep-alive']) delete headers[name];
  return { status: answer.status, headers, body: await answer.text() };
}

/** Both answers, ids taken out, so that only a telling difference is left. */
async function pair(
  path: (id: string) => string,
  ids: readonly [string, string],
  init?: RequestInit,
) {
  const [theirs, unknown] = [await ask(path(ids[0]), init), await ask(path(ids[1]), init)];
  const blank = (answer: typeof theirs, id: string) => {
    const { 'content-length': _, ...headers } = answer.headers;
    const named = JSON.stringify({ ...answer, headers });
    return JSON.parse(named.replaceAll(id, 'ID')) as typeof answer;
  };
  return [blank(theirs, ids[0]), blank(unknown, ids[1])] as const;
}

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const BY_PROMPT: readonly [string, (id: string) => string][] = [
  ['/history/{id}', (id) => `/history/${id}`],
  ['/api/history_v2/{id}', (id) => `/api/history_v2/${id}`],
  ['/api/jobs/{id}', (id) => `/api/jobs/${id}`],
  ['/api/job/{id}/status', (id) => `/api/job/${id}/status`],
];

describe.each(BY_PROMPT)('GET %s', (_, path) => {
  test('of another user is as if it were not there, by either id', async () => {
    for (const id of [DONE, WAITS, RUNS, ...Object.values(jobs)]) {
      const [theirs, unknown] = await pair(path, [id, UNKNOWN_ID]);
      expect(theirs).toEqual(unknown);
    }
  });
});

const BY_JOB: readonly [string, string, (id: string) => string][] = [
  ['GET', '', (id) => `/api/v2/jobs/${id}`],
  ['GET', '/workflow', (id) => `/api/v2/jobs/${id}/workflow`],
  ['GET', '/events', (id) => `/api/v2/jobs/${id}/events`],
  ['GET', '/logs', (id) => `/api/v2/jobs/${id}/logs`],
  ['POST', '/cancel', (id) => `/api/v2/jobs/${id}/cancel`],
];

test.each(BY_JOB)(
  '%s /api/v2/jobs/{id}%s of another user is as if it were not there',
  async (method, _, path) => {
    for (const id of Object.values(jobs)) {
      const [theirs, unknown] = await pair(path, [id, UNKNOWN_ID], { method });
      expect(theirs).toEqual(unknown);
      expect(theirs.status).toBe(404);
    }
  },
);

test.each(['GET', 'DELETE'])(
  '%s /api/v2/assets/{id} of another user is as if it were not there',
  async (method) => {
    for (const id of assetIds) {
      for (const suffix of method === 'GET' ? ['', '/content'] : ['']) {
        const [theirs, unknown] = await pair(
          (each) => `/api/v2/assets/${each}${suffix}`,
          [id, UNKNOWN_ID],
          { method },
        );
        expect(theirs).toEqual(unknown);
        expect(theirs.status).toBe(404);
      }
    }
    const own = await fetch(`${server.url}/api/v2/assets/${assetIds[0]}`, { headers: ALICE });
    expect(own.status).toBe(200);
  },
);

test('a hash another user holds cannot be claimed, nor asked about', async () => {
  const absent = `blake3:${'0'.repeat(64)}`;
  const path = (hash: string) => `/api/v2/assets/by-hash/${encodeURIComponent(hash)}`;
  const head = await Promise.all(
    [secretHash, absent].map((hash) => ask(path(hash), { method: 'HEAD' })),
  );
  expect(head[0]).toEqual(head[1]);
  expect(head[0]?.status).toBe(404);
  const claim = (hash: string) =>
    ask('/api/v2/assets/from-hash', {
      method: 'POST',
      body: JSON.stringify({ hash, filename: 'mine.png', file_path: 'input/mine.png' }),
      headers: { 'Content-Type': 'application/json' },
    });
  const [held, free] = [await claim(secretHash), await claim(absent)];
  expect({ ...held, body: held.body.replaceAll(secretHash, '') }).toEqual({
    ...free,
    body: free.body.replaceAll(absent, ''),
  });
  expect(held.status).toBe(404);
  expect((await ask(`/view?filename=${secretHash}`)).status).toBe(404);
});

test('lists show nothing of another user', async () => {
  for (const path of [
    '/queue',
    '/history',
    '/api/history_v2',
    '/api/jobs',
    '/api/v2/jobs',
    '/internal/files/input',
    '/internal/files/output',
    '/object_info/LoadImage',
    '/settings',
  ])
    for (const headers of [BOB, NOBODY]) {
      const { status, body } = await ask(path, { headers });
      expect(status).toBe(200);
      expect(body).not.toMatch(/alice|secret|private/);
      for (const id of [...Object.values(jobs), ...assetIds]) expect(body).not.toContain(id);
    }
  expect(JSON.parse((await ask('/prompt')).body)).toEqual({ exec_info: { queue_remaining: 0 } });
});

describe('a picture of another user', () => {
  test.each(['/view', '/api/view'])('is 404 under %s, as an unknown one', async (route) => {
    for (const file of [result, { filename: 'secret.png', subfolder: '', type: 'input' }]) {
      const path = (filename: string) => `${route}?${new URLSearchParams({ ...file, filename })}`;
      const [theirs, unknown] = await pair(path, [file.filename, 'nobodys.png']);
      expect(theirs).toEqual(unknown);
      expect(theirs.status).toBe(404);
    }
  });

  test('cannot be loaded by name', async () => {
    for (const name of [
      'secret.png',
      `${result.filename} [output]`,
      'secret.png [input]',
      '../secret.png',
      `../../blobs/x`,
    ]) {
      const { status, body } = await postPrompt(
        server.url,
        { prompt: loading(name) },
        { headers: BOB },
      );
      expect(status).toBe(400);
      expect(body.error).toMatchObject({ type: 'prompt_outputs_failed_validation' });
      expect(body.node_errors['3'].errors[0].type).toBe('custom_validation_failed');
    }
  });

  test('cannot be loaded by the id of its asset, in v1 or v2', async () => {
    const graphs = await Promise.all(
      [assetIds[0] ?? '', UNKNOWN_ID].map(async (id) => {
        const prompt = loading('x') as any;
        prompt['3'].inputs.image = { __type: 'core/ASSET', id };
        const v1 = await postPrompt(server.url, { prompt }, { headers: BOB });
        const v2 = await ask('/api/v2/jobs', {
          method: 'POST',
          body: JSON.stringify({ workflow: prompt }),
        });
        return JSON.stringify([v1.status, v1.body, v2.status, v2.body]).replaceAll(id, 'ID');
      }),
    );
    expect(graphs[0]).toBe(graphs[1]);
    expect(graphs[0]).toMatch(/^\[400,/);
  });

  test('cannot be masked, nor overwritten', async () => {
    const form = new FormData();
    form.append('original_ref', JSON.stringify({ filename: 'secret.png', type: 'input' }));
    form.append('image', new Blob([new Uint8Array(await pngOf())]), 'mask.png');
    const { body } = await ask('/upload/mask', { method: 'POST', body: form });
    expect((await ask(`/view?type=input&filename=${JSON.parse(body).name}`)).status).toBe(404);
    await uploadInput(
      server.url,
      { name: 'secret.png', bytes: Buffer.from('x'), fields: { overwrite: 'true' } },
      BOB,
    );
    const kept = await fetch(`${server.url}/view?type=input&filename=secret.png`, {
      headers: ALICE,
    });
    expect(Buffer.from(await kept.arrayBuffer())).toEqual(await pngOf());
  });

  test('has a signed link that opens nothing else, however it is altered', async () => {
    const link = await fetch(`${server.url}/api/view?type=input&filename=secret.png`, {
      headers: ALICE,
      redirect: 'manual',
    });
    const location = new URL(link.headers.get('Location') ?? '');
    expect(location.href).not.toContain('alice-key');
    expect((await fetch(location)).status).toBe(200);
    for (const [name, value] of location.searchParams) {
      const altered = new URL(location);
      altered.searchParams.set(name, `${altered.searchParams.get(name)}0`);
      expect((await fetch(altered)).status).toBe(403);
      altered.searchParams.delete(name);
      expect((await fetch(altered)).status).toBe(value === '' ? 200 : 403);
    }
    const other = new URL(location);
    for (const key of location.searchParams.keys()) {
      if (other.searchParams.get(key) === 'secret.png')
        other.searchParams.set(key, result.filename);
    }
    expect((await fetch(other)).status).toBe(403);
    const twice = new URL(location);
    for (const key of location.searchParams.keys()) twice.searchParams.append(key, 'x');
    expect([200, 403]).toContain((await fetch(twice)).status);
    expect((await fetch(`${server.url}/signed/view`)).status).toBe(403);
  });
});

test('neither cancel, delete, clear nor interrupt reaches the jobs of another user', async () => {
  const ids = [DONE, WAITS, RUNS, ...Object.values(jobs)];
  const post = (path: string, body: object) =>
    ask(path, { method: 'POST', body: JSON.stringify(body) });
  for (const id of ids) await post(`/api/jobs/${id}/cancel`, {});
  await post('/api/jobs/cancel', { job_ids: ids, ids, prompt_ids: ids });
  for (const path of ['/queue', '/api/queue'])
    await post(path, { delete: ids, cancel: ids, clear: true });
  for (const path of ['/history', '/api/history']) await post(path, { delete: ids, clear: true });
  for (const id of ids) await post('/interrupt', { prompt_id: id });
  await post('/api/interrupt', {});
  const queue = await getJson(`${server.url}/queue`, ALICE);
  expect(queue.queue_running[0][1]).toBe(RUNS);
  expect(queue.queue_pending[0][1]).toBe(WAITS);
  expect(await getJson(`${server.url}/history`, ALICE)).toHaveProperty(DONE);
});

test('a socket under the client id of another user hears nothing of them', async () => {
  const told = JSON.stringify(bob.frames);
  expect(told).not.toMatch(/alice-(done|waits|runs)/);
  expect(bob.frames.every((frame) => frame.kind === 'text' && frame.type === 'status')).toBe(true);
  await bob.close();
});

test('an Idempotency-Key another user has used is free for all others', async () => {
  const submit = (headers: Record<string, string>) =>
    fetch(`${server.url}/api/v2/jobs`, {
      method: 'POST',
      headers: { ...headers, 'Idempotency-Key': 'the-same' },
      body: JSON.stringify({ workflow: flat() }),
    });
  expect((await submit(ALICE)).status).toBe(201);
  expect((await submit(BOB)).status).toBe(201);
});
