import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import {
  entryOf,
  interrupt,
  pngOf,
  untilRunning,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, loading } from '../support/graphs/workflows.ts';

// Requirement 34, every form in which clients present a key, and what a key separates.

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const TOKEN = 'the-token';
const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`;

/** Header or query in which a client may present this key. */
const formsOf = (key: string) => [
  { form: 'X-API-Key', headers: { 'X-API-Key': key }, query: '' },
  { form: 'Authorization: Bearer', headers: { Authorization: `Bearer ${key}` }, query: '' },
  { form: 'Basic, as the password', headers: { Authorization: basic(`any:${key}`) }, query: '' },
  { form: 'Basic, as the user', headers: { Authorization: basic(`${key}:`) }, query: '' },
  { form: '?token=', headers: {}, query: `token=${key}` },
];

type Form = { readonly headers: Record<string, string>; readonly query: string };
const FORMS = formsOf(TOKEN) as readonly (Form & { form: string })[];

const NONE: readonly (Form & { form: string })[] = [
  { form: 'no header at all', headers: {}, query: '' },
  { form: 'an empty Bearer', headers: { Authorization: 'Bearer ' }, query: '' },
  { form: 'a bare Bearer', headers: { Authorization: 'Bearer' }, query: '' },
  { form: 'an empty X-API-Key', headers: { 'X-API-Key': '' }, query: '' },
  { form: 'an empty ?token=', headers: {}, query: 'token=' },
  { form: 'an empty Basic', headers: { Authorization: basic(':') }, query: '' },
];

describe('34: with --local-token', () => {
  let holdover: Holdover;
  beforeAll(async () => {
    holdover = await startHoldover({ args: ['--local-token', TOKEN] });
  });
  afterAll(() => holdover.dispose());

  test.each(FORMS)('$form opens HTTP and the socket', async ({ headers, query }) => {
    expect((await fetch(`${holdover.url}/queue?${query}`, { headers })).status).toBe(200);
    const socket = await connect(holdover.wsUrl, { headers, query });
    await socket.until((frame) => frame.kind === 'text' && frame.type === 'status');
    await socket.close();
  });

  test('Basic in the URL opens the socket', async () => {
    const socket = new WebSocket(`ws://any:${TOKEN}@127.0.0.1:${holdover.port}/ws`);
    const first = await new Promise((resolve, reject) => {
      socket.once('message', (data: Buffer) => resolve(JSON.parse(data.toString()).type));
      socket.once('error', reject);
    });
    socket.close();
    expect(first).toBe('status');
  });

  test.each([...NONE, ...(formsOf('wrong') as typeof NONE)])(
    '$form (none or wrong) is 401 in JSON, without a redirect, on HTTP and before the upgrade',
    async ({ headers, query }) => {
      for (const path of ['/queue', '/api/history', '/object_info']) {
        const answer = await fetch(`${holdover.url}${path}?${query}`, {
          headers,
          redirect: 'manual',
        });
        expect(answer.status).toBe(401);
        const isHosted = path.startsWith('/api/') && 'X-API-Key' in headers;
        const told = { message: expect.any(String) };
        expect(await answer.json()).toMatchObject(isHosted ? told : { error: told });
      }
      await expect(connect(holdover.wsUrl, { headers, query })).rejects.toThrow('401');
    },
  );
});

describe('34: on the embedded engine without a token', () => {
  let holdover: Holdover;
  const alice = { 'X-API-Key': 'alice-key' };
  const bob = { 'X-API-Key': 'bob-key' };

  beforeAll(async () => {
    holdover = await startHoldover();
  });
  afterAll(() => holdover.dispose());

  const submit = async (headers: Record<string, string>, graph: object, extra: object = {}) =>
    (
      await postPrompt(
        holdover.url,
        { prompt: graph, client_id: 'shared-id', ...extra },
        { headers },
      )
    ).body.prompt_id as string;
  const socketOf = (headers: Record<string, string>, clientId = 'shared-id'): Promise<Recorder> =>
    connect(holdover.wsUrl, { clientId, headers });
  const idsIn = async (path: string, headers: Record<string, string>): Promise<string> =>
    JSON.stringify(await getJson(holdover.url + path, headers));

  test.each([
    { form: 'X-API-Key', headers: alice, query: '' },
    { form: 'Bearer', headers: { Authorization: 'Bearer alice-key' }, query: '' },
    { form: '?token=', headers: {}, query: '?token=alice-key' },
  ] as const)('the same key is the same user as $form', async ({ headers, query, form }) => {
    const name = `${form.replaceAll(/\W/g, '')}.png`;
    await uploadInput(holdover.url, { bytes: await pngOf(), name }, alice);
    const glue = query === '' ? '?' : `${query}&`;
    const seen = await fetch(`${holdover.url}/view${glue}filename=${name}&type=input`, { headers });
    expect(seen.status).toBe(200);
  });

  test.each(NONE)('$form is the local user', async ({ headers, query }) => {
    await uploadInput(holdover.url, { bytes: await pngOf(), name: 'local.png' });
    const path = `/view?filename=local.png&type=input&${query}`;
    expect((await fetch(holdover.url + path, { headers })).status).toBe(200);
  });

  test('users never see each other’s running prompts', async () => {
    const id = await submit(alice, endless({ seed: 340 }));
    await untilRunning(holdover.url, alice);
    for (const headers of [bob, {}]) {
      expect(await getJson(`${holdover.url}/queue`, headers)).toEqual({
        queue_running: [],
        queue_pending: [],
      });
      expect(await getJson(`${holdover.url}/prompt`, headers)).toEqual({
        exec_info: { queue_remaining: 0 },
      });
      expect((await fetch(`${holdover.url}/api/job/${id}/status`, { headers })).status).toBe(404);
      expect((await fetch(`${holdover.url}/api/jobs/${id}`, { headers })).status).toBe(404);
    }
    await interrupt(holdover.url, alice);
    await expect.poll(() => entryOf(holdover.url, id, alice)).toBeDefined();
  });

  test.each([
    ['POST /interrupt', '/interrupt', () => '{}'],
    ['POST /interrupt with the id', '/interrupt', (id: string) => `{"prompt_id":"${id}"}`],
    ['POST /api/queue with the id', '/api/queue', (id: string) => `{"delete":["${id}"]}`],
    ['POST /queue {clear}', '/queue', () => '{"clear":true}'],
    ['POST /api/jobs/cancel', '/api/jobs/cancel', (id: string) => `{"job_ids":["${id}"]}`],
  ])('users cannot stop each other’s prompts with %s', async (_call, path, body) => {
    const id = await submit(alice, endless({ seed: 341 }));
    await untilRunning(holdover.url, alice);
    await fetch(holdover.url + path, { method: 'POST', headers: bob, body: body(id) });
    expect((await getJson(`${holdover.url}/api/job/${id}/status`, alice)).status).toBe('executing');
    await interrupt(holdover.url, alice);
    await expect.poll(() => entryOf(holdover.url, id, alice)).toBeDefined();
  });

  test('users with the same client id hear only their own prompts', async () => {
    const same = { client_id: 'chosen-by-both' };
    const open = (headers: Record<string, string>) => socketOf(headers, same.client_id);
    const sockets = [await open(alice), await open(bob), await open({})] as const;
    const hers = await submit(alice, flat({ color: 342 }), same);
    const his = await submit(bob, flat({ color: 343 }), same);
    await Promise.all([sockets[0].untilDone(hers), sockets[1].untilDone(his)]);
    const mentioned = sockets.map(
      ({ frames }) =>
        new Set(frames.flatMap((f) => (f.kind === 'text' ? (f.data.prompt_id ?? []) : []))),
    );
    expect(mentioned).toEqual([new Set([hers]), new Set([his]), new Set()]);
    await Promise.all(sockets.map((socket) => socket.close()));
  });

  test('users never see or change each other’s history', async () => {
    const id = await submit(alice, flat({ color: 345 }));
    await expect.poll(() => entryOf(holdover.url, id, alice)).toBeDefined();
    for (const path of [`/history/${id}`, '/history', '/api/jobs', '/api/history_v2']) {
      expect(await idsIn(path, bob)).not.toContain(id);
    }
    for (const body of [`{"delete":["${id}"]}`, '{"clear":true}']) {
      await fetch(`${holdover.url}/history`, { method: 'POST', headers: bob, body });
    }
    expect(await entryOf(holdover.url, id, alice)).toBeDefined();
  });

  test('users never see each other’s files, neither by name nor in a workflow', async () => {
    await uploadInput(holdover.url, { bytes: await pngOf(), name: 'private.png' }, alice);
    const id = await submit(alice, flat({ prefix: 'private-out', color: 346 }));
    await expect.poll(() => entryOf(holdover.url, id, alice)).toBeDefined();
    for (const query of ['filename=private.png&type=input', 'filename=private-out_00001_.png']) {
      expect((await fetch(`${holdover.url}/view?${query}`, { headers: alice })).status).toBe(200);
      expect((await fetch(`${holdover.url}/view?${query}`, { headers: bob })).status).toBe(404);
    }
    const listed = async (headers: Record<string, string>) =>
      JSON.stringify(
        (await getJson(`${holdover.url}/object_info/LoadImage`, headers)).LoadImage.input,
      );
    expect(await listed(alice)).toContain('private.png');
    expect(await listed(bob)).not.toContain('private.png');
    const { status, body } = await postPrompt(
      holdover.url,
      { prompt: loading('private.png') },
      { headers: bob },
    );
    expect(status).toBe(400);
    expect(body.node_errors['3'].errors[0].type).toBe('custom_validation_failed');
  });

  test('two users may give their prompts the same id', async () => {
    const [hers, his] = [await socketOf(alice), await socketOf(bob)];
    const graphs = [flat({ color: 347, prefix: 'a' }), flat({ color: 348, prefix: 'b' })];
    await Promise.all([
      submit(alice, graphs[0]!, { prompt_id: 'same-id' }),
      submit(bob, graphs[1]!, { prompt_id: 'same-id' }),
    ]);
    await Promise.all([hers.untilDone('same-id'), his.untilDone('same-id')]);
    const nameOf = async (headers: Record<string, string>) =>
      (await entryOf(holdover.url, 'same-id', headers)).outputs['9'].images[0].filename;
    expect([await nameOf(alice), await nameOf(bob)]).toEqual(['a_00001_.png', 'b_00001_.png']);
    await Promise.all([hers.close(), his.close()]);
  });

  test('keys in extra_data are in no answer, no frame and no log line', async () => {
    const secret = 'sk-very-secret-value';
    const socket = await socketOf(alice);
    const extra = { api_key_comfy_org: secret, auth_token_comfy_org: secret, kept: 'yes' };
    const id = await submit(alice, endless({ seed: 349 }), { extra_data: extra });
    await untilRunning(holdover.url, alice);
    const queue = await idsIn('/queue', alice);
    await interrupt(holdover.url, alice);
    await socket.untilDone(id);
    const history = await idsIn(`/history/${id}`, alice);
    expect(queue).toContain('"kept":"yes"');
    expect(history).toContain('"kept":"yes"');
    const frames = JSON.stringify(socket.frames);
    const detail = await idsIn(`/api/jobs/${id}`, alice);
    expect(
      [queue, history, detail, frames, holdover.log()].filter((text) => text.includes(secret)),
    ).toEqual([]);
    expect(holdover.log()).not.toContain('alice-key');
    await socket.close();
  });
});
