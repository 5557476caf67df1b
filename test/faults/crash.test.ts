// Matrix D: kill -9 at every step of a prompt in front of a remote upstream. Rows without an
// upstream in them are elsewhere: F42 and F44 in test/restart, F45 in test/hostile.
import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf } from '../support/processes/invariants.ts';
import {
  finish,
  nameOf,
  runsToCompletion,
  staysRunning,
} from '../support/upstreams/job-scripts.ts';
import { flat } from '../support/graphs/workflows.ts';
import { type Client, type FaultSetup, SERVERS, SLOWER, openOwnSetup } from './open.ts';

vi.setConfig({ testTimeout: 40_000 * SLOWER, hookTimeout: 30_000 * SLOWER });

const FIXED = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };

/** Whose key upstream calls carry decides when a new process may go on: at once, or when they call. */
const MODES = [
  ['with a fixed key', FIXED],
  ['with keys passed through', {}],
] as const;

const dieAt = (moment: string) => ({ HOLDOVER_CRASH_AT: moment });

const keysOf = ({ upstream }: FaultSetup) => new Set(upstream.requests('submit').map(keyOf));

/** Posts into a process that dies of it, and starts the next one. */
async function postUntilKilled(setup: FaultSetup, client: Client, promptId: string): Promise<void> {
  const more = { prompt_id: promptId };
  await expect(client.post({ marker: promptId, more })).rejects.toThrow();
  await setup.restart();
}

/** The owner's next call. */
async function call(client: Client): Promise<void> {
  await client.reconnect();
  await client.queue();
}

describe('kill -9', () => {
  test('F36 before the prompt was read: nothing of it is anywhere', async () => {
    const setup = await openOwnSetup();
    const client = await setup.client();
    const body = JSON.stringify({ prompt: {}, prompt_id: 'half' });
    const socket = dial(setup.holdover().port, '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(
      `POST /prompt HTTP/1.1\r\nHost: 127.0.0.1:${setup.holdover().port}\r\nX-API-Key: ${client.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 20)}`,
    );
    await setup.restart();
    await call(client);
    expect(await client.queue()).toEqual({ running: [], pending: [] });
    expect(setup.upstream.requests('submit')).toEqual([]);
  });

  test('F37 between the intent and the submission: it is submitted once', async () => {
    const setup = await openOwnSetup({ firstEnv: dieAt('after-intent') });
    setup.upstream.script(runsToCompletion());
    const client = await setup.client();
    await postUntilKilled(setup, client, 'f37');
    expect(setup.upstream.requests('submit')).toEqual([]);
    await call(client);
    expect((await client.ended('f37')).status.status_str).toBe('success');
    expect(client.jobs('f37')).toHaveLength(1);
    expect(keysOf(setup).size).toBe(1);
    await setup.check();
  });

  test.each(MODES)(
    'F38 between the submission and the job’s id, %s: the job is found, not made again',
    async (_, env) => {
      const setup = await openOwnSetup({ env: { ...env }, firstEnv: dieAt('after-submit') });
      setup.upstream.script(runsToCompletion());
      const client = await setup.client();
      await postUntilKilled(setup, client, 'f38');
      expect(client.jobs('f38')).toHaveLength(1);
      await call(client);
      expect((await client.ended('f38')).status.status_str).toBe('success');
      expect(client.jobs('f38')).toHaveLength(1);
      expect(keysOf(setup).size).toBe(1);
      await setup.check();
    },
  );

  test('F39 between the job’s id and the answer: the prompt is there and runs', async () => {
    const setup = await openOwnSetup({ env: FIXED, firstEnv: dieAt('after-attach') });
    setup.upstream.script(runsToCompletion());
    const client = await setup.client();
    await postUntilKilled(setup, client, 'f39');
    await call(client);
    expect((await client.ended('f39')).status.status_str).toBe('success');
    expect(client.jobs('f39')).toHaveLength(1);
    expect(setup.upstream.requests('submit')).toHaveLength(1);
    await setup.check();
  });

  test('F39 a client whose answer was lost sends its prompt again under its own id: the same prompt, one job', async () => {
    const setup = await openOwnSetup({ env: FIXED, firstEnv: dieAt('after-attach') });
    setup.upstream.script(staysRunning);
    const client = await setup.client();
    await postUntilKilled(setup, client, 'again');
    await client.reconnect();
    const { status, promptId } = await client.post({
      marker: 'again',
      more: { prompt_id: 'again' },
    });
    expect([status, promptId]).toEqual([200, 'again']);
    const [job, second] = client.jobs('again');
    expect(second).toBeUndefined();
    if (job) finish(setup.upstream, job);
    expect((await client.ended('again')).status.status_str).toBe('success');
    expect(setup.upstream.requests('submit')).toHaveLength(1);
    await setup.check();
  });

  test('with prompts that wait for room: they are submitted in their order, under the keys they had', async () => {
    const setup = await openOwnSetup();
    setup.upstream.always('submit', fault.refuse(429, 'queue_full'));
    const client = await setup.client();
    const posts = [await client.post(), await client.post(), await client.post()];
    const before = keysOf(setup);
    await setup.restart();
    setup.upstream.script(runsToCompletion());
    setup.upstream.always('submit', (exchange) => exchange.honestly());
    await call(client);
    for (const { promptId } of posts) {
      expect((await client.ended(promptId)).status.status_str).toBe('success');
    }
    const made = [...setup.upstream.jobs.values()].map(nameOf);
    expect(made).toEqual(posts.map(({ marker }) => `${marker}_00001_.png`));
    for (const key of before) expect([...keysOf(setup)]).toContain(key);
    expect(keysOf(setup).size).toBe(3);
    await setup.check();
  });

  test('right after a prompt was put aside, before its client learnt it: it runs once or not at all', async () => {
    const setup = await openOwnSetup({ env: FIXED, firstEnv: dieAt('after-outbox') });
    setup.upstream.always('submit', fault.refuse(429, 'queue_full'));
    const client = await setup.client();
    await postUntilKilled(setup, client, 'aside');
    setup.upstream.script(runsToCompletion());
    setup.upstream.always('submit', (exchange) => exchange.honestly());
    await call(client);
    await expect
      .poll(() => client.queue(), { timeout: 8_000 })
      .toEqual({ running: [], pending: [] });
    expect(client.jobs('aside').length).toBeLessThanOrEqual(1);
    expect(keysOf(setup).size).toBe(1);
  });

  test.each([
    ['runs', false],
    ['is over', true],
  ])(
    'of a prompt whose outcome is unknown: the job of another user with the same workflow that %s stays theirs',
    async (_, isOver) => {
      const setup = await openOwnSetup({
        env: FIXED,
        args: ['--limits', '{"upstream":{"labels":"none"}}'],
      });
      const { upstream } = setup;
      upstream.script(staysRunning);
      const [ann, bob] = [await setup.client(), await setup.client()];
      const prompt = flat({ prefix: 'same' });
      const theirs = await bob.post({ marker: 'same', prompt });
      const [job] = bob.jobs('same');
      if (job && isOver) finish(upstream, job);
      if (isOver) await bob.ended(theirs.promptId);
      upstream.once('submit', async ({ server, req }) => {
        server.keys.add(String(req.headers['idempotency-key']));
        await setup.holdover().kill9();
      });
      const more = { prompt_id: 'of-ann' };
      await expect(ann.post({ marker: 'ann', prompt, more })).rejects.toThrow();
      await setup.restart();
      await bob.reconnect();
      await ann.reconnect();
      const entry = await ann.ended('of-ann');
      if (job && !isOver) finish(upstream, job);
      expect([await ann.word('of-ann'), entry.outputs]).toEqual(['lost', {}]);
      expect(Object.keys((await bob.ended(theirs.promptId)).outputs)).toHaveLength(1);
    },
  );

  test('F40 while forty prompts run: all of them end, under their numbers', async () => {
    const setup = await openOwnSetup();
    const { upstream } = setup;
    upstream.script(staysRunning);
    const client = await setup.client();
    const posts = await Promise.all(Array.from({ length: 40 }, () => client.post()));
    const numbers = new Map(posts.map(({ promptId, json }) => [promptId, json.number]));
    await setup.restart();
    upstream.streams.most = upstream.streams.open;
    const submits = upstream.requests('submit').length;
    await call(client);
    const jobs = [...upstream.jobs.values()];
    // Some ended while no server followed them.
    for (const job of jobs.slice(0, 20)) finish(upstream, job);
    await expect.poll(async () => (await client.queue()).running.length).toBeGreaterThan(0);
    for (const job of jobs.slice(20)) finish(upstream, job);
    for (const { promptId } of posts) {
      const entry = await client.ended(promptId, 10_000);
      expect([entry.status.status_str, entry.prompt[0]]).toEqual([
        'success',
        numbers.get(promptId),
      ]);
    }
    expect(upstream.streams.most).toBeLessThanOrEqual(6 * SERVERS);
    expect(upstream.requests('submit')).toHaveLength(submits);
    await setup.check();
  });
});

test('F42 SIGTERM while a prompt runs upstream: exits with 0, and does not stop the job', async () => {
  const setup = await openOwnSetup();
  setup.upstream.script(staysRunning);
  const client = await setup.client();
  const { promptId, marker } = await client.post();
  await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
  const closed = once(client.socket.socket, 'close');
  expect(await setup.holdover().terminate()).toBe(0);
  expect((await closed)[0]).toBe(1001);
  const [job] = client.jobs(marker);
  expect(job?.status).toBe('running');
  expect(setup.upstream.requests('cancel')).toEqual([]);
  if (job) finish(setup.upstream, job);
  await setup.restart();
  await call(client);
  expect((await client.ended(promptId)).status.status_str).toBe('success');
});
