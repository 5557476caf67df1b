import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  entryOf,
  interrupt,
  pngOf,
  untilRunning,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, growing, loading } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

// Two real servers: one demands a key for its jobs, one is in front of it.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const KEY = 'key-of-the-service';
/** Enough steps for a busy machine to report the last one. */
const STEPS = 40;
const WHOLE = ['execution_start', `progress:${STEPS}/${STEPS}`, 'binary:1', 'execution_success'];
const alice = { 'X-API-Key': 'key-of-alice' };
const bob = { 'X-API-Key': 'key-of-bob' };

type Presented = { readonly headers: Record<string, string>; readonly query: string };
const bare = (headers: Record<string, string>): Presented => ({ headers, query: '' });

const service = useHoldover({ upstream: 'embedded', args: ['--local-token', KEY] });

async function inFront(options: { args?: string[]; env?: NodeJS.ProcessEnv } = {}) {
  const { args = [], env = {} } = options;
  const front = { args: ['--upstream', service.url, ...args], env };
  return startHoldover({ upstream: 'embedded', ...front });
}

/** One prompt from the socket to the bytes of its picture. */
async function wholeRun(
  holdover: Holdover,
  presented: Presented,
): Promise<{ frames: string[]; view: number }> {
  const { headers, query } = presented;
  const socket = await connect(holdover.wsUrl, { clientId: 'keys', headers, query });
  const prompt = {
    prompt: growing({ seed: Math.random() * 1e9, steps: STEPS }),
    client_id: 'keys',
    extra_data: { preview_method: 'auto' },
  };
  const { status, body } = await postPrompt(holdover.url, prompt, {
    headers,
    path: `/prompt?${query}`,
  });
  expect(status).toBe(200);
  await socket.untilDone(body.prompt_id);
  await socket.close();
  const entry = (await getJson(`${holdover.url}/history/${body.prompt_id}?${query}`, headers))[
    body.prompt_id
  ];
  const [file] = entry.outputs['9'].images;
  const view = `${holdover.url}/view?filename=${file.filename}&${query}`;
  const { status: seen } = await fetch(view, { headers });
  return { frames: socket.outline(body.prompt_id), view: seen };
}

describe('pass-through: each caller’s own key goes to the service', () => {
  let holdover: Holdover;
  beforeAll(async () => {
    holdover = await inFront();
  });
  afterAll(() => holdover.dispose());

  test.each([
    ['X-API-Key', bare({ 'X-API-Key': KEY })],
    ['Authorization: Bearer', bare({ Authorization: `Bearer ${KEY}` })],
    ['?token=', { headers: {}, query: `token=${KEY}` }],
  ] as const)(
    'a prompt runs for a caller that presents a good one as %s',
    async (_form, presented) => {
      const { frames, view } = await wholeRun(holdover, presented);
      expect(frames).toEqual(expect.arrayContaining(WHOLE));
      expect(view).toBe(200);
    },
  );

  test.each([
    ['none', bare({})],
    ['a wrong X-API-Key', bare({ 'X-API-Key': 'wrong' })],
    ['a wrong Bearer', bare({ Authorization: 'Bearer wrong' })],
    ['a wrong ?token=', { headers: {}, query: 'token=wrong' }],
    ['one that no header can carry', { headers: {}, query: 'token=%E2%82%AC' }],
  ] as const)('%s is 401 on HTTP and before the upgrade', async (_key, { headers, query }) => {
    for (const path of ['/queue', '/api/history', '/object_info', '/view?filename=x.png']) {
      const url = `${holdover.url}${path}${path.includes('?') ? '&' : '?'}${query}`;
      const answer = await fetch(url, { headers, redirect: 'manual' });
      expect([path, answer.status]).toEqual([path, 401]);
      const isHosted = path.startsWith('/api/') && 'X-API-Key' in headers;
      const told = { message: expect.any(String) };
      expect(await answer.json()).toMatchObject(isHosted ? told : { error: told });
    }
    const posted = await postPrompt(
      holdover.url,
      { prompt: flat() },
      { headers, path: `/prompt?${query}` },
    );
    expect(posted.status).toBe(401);
    await expect(connect(holdover.wsUrl, { headers, query })).rejects.toThrow('401');
  });

  test('no key is in the log of either', async () => {
    const misplaced = `note=1&other=${KEY}`;
    await fetch(`${holdover.url}/queue?${misplaced}`, { headers: { 'X-API-Key': KEY } });
    await expect.poll(() => holdover.log()).toContain('note=1');
    expect(holdover.log() + service.log()).not.toContain(KEY);
  });
});

describe('fixed: one key for all callers, from a file', () => {
  let holdover: Holdover;
  beforeAll(async () => {
    const file = join(await runFolder('key'), 'key');
    await writeFile(file, `${KEY}\n`);
    holdover = await inFront({ args: ['--upstream-key', file] });
  });
  afterAll(() => holdover.dispose());

  test('a prompt runs for a caller with a key the service does not know', async () => {
    const { frames, view } = await wholeRun(holdover, bare(alice));
    expect(frames).toEqual(expect.arrayContaining(WHOLE));
    expect(view).toBe(200);
    expect(holdover.log()).not.toContain(KEY);
  });

  test('a workflow that names a file of another user is refused as v1 refuses unknown files', async () => {
    await uploadInput(holdover.url, { bytes: await pngOf(), name: 'hers-too.png' }, alice);
    const sent = { prompt: loading('hers-too.png', 'hers-made') };
    const { body } = await postPrompt(holdover.url, sent, { headers: alice });
    await expect.poll(() => entryOf(holdover.url, body.prompt_id, alice)).toBeDefined();
    for (const name of [
      'hers-too.png',
      './hers-too.png',
      'hers-too.png [input]',
      'hers-made_00001_.png [output]',
      './hers-made_00001_.png [output]',
      '../output/hers-made_00001_.png',
      '../input/hers-made_00001_.png [output]',
    ]) {
      const stolen = { prompt: loading(name) };
      const refused = await postPrompt(holdover.url, stolen, { headers: bob });
      expect([name, refused.status, refused.body.node_errors?.['3']?.errors[0]]).toEqual([
        name,
        400,
        expect.objectContaining({
          type: 'custom_validation_failed',
          details: `image - Invalid image file: ${name}`,
        }),
      ]);
    }
  });

  test('users of the one account cannot stop each other’s prompts', async () => {
    const sent = { prompt: endless({ seed: 77 }), client_id: 'hers' };
    const { body } = await postPrompt(holdover.url, sent, { headers: alice });
    await untilRunning(holdover.url, alice);
    await interrupt(holdover.url, bob);
    await interrupt(holdover.url);
    const { status } = await getJson(`${holdover.url}/api/job/${body.prompt_id}/status`, alice);
    expect(status).toBe('executing');
    await interrupt(holdover.url, alice);
    await expect.poll(() => entryOf(holdover.url, body.prompt_id, alice)).toBeDefined();
  });

  test('with --local-token too, the token opens the door and stays here', async () => {
    const options = { args: ['--local-token', 'door'], env: { HOLDOVER_UPSTREAM_KEY: KEY } };
    const guarded = await inFront(options);
    onTestFinished(() => guarded.dispose());
    const door = { headers: { 'X-API-Key': 'door' } };
    expect((await postPrompt(guarded.url, { prompt: flat() }, door)).status).toBe(200);
    for (const headers of [{}, alice, { 'X-API-Key': KEY }] as Record<string, string>[]) {
      expect((await fetch(`${guarded.url}/queue`, { headers })).status).toBe(401);
      await expect(connect(guarded.wsUrl, { headers })).rejects.toThrow('401');
    }
  });

  test('a wrong one is 401 to the prompt, whose sender hears why', async () => {
    const wrong = await inFront({ env: { HOLDOVER_UPSTREAM_KEY: 'a-wrong-key' } });
    onTestFinished(() => wrong.dispose());
    const { status, body } = await postPrompt(wrong.url, { prompt: flat() });
    expect([status, body.error.type]).toEqual([401, 'unauthorized']);
    expect(JSON.stringify(body) + wrong.log()).not.toContain('a-wrong-key');
  });
});

test('a key that the service refuses is not remembered, and displaces no accepted one', async () => {
  const front = await inFront();
  onTestFinished(() => front.dispose());
  const accepted = { 'X-API-Key': KEY };
  const shown = async () =>
    JSON.stringify(await getJson(`${front.url}/holdover/api/traffic`, accepted));
  await shown();
  const refused = { 'X-API-Key': 'a-key-that-is-refused' };
  expect((await fetch(`${front.url}/queue`, { headers: refused })).status).toBe(401);
  const query = `?note=a-key-that-is-refused&other=${KEY}`;
  expect((await fetch(`${front.url}/queue${query}`, { headers: accepted })).status).toBe(200);
  await expect.poll(shown).toContain('/queue?note=a-key-that-is-refused&other=[removed]');
});
