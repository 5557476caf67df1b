// Matrix D: kill -9 at every step of a prompt in front of a remote upstream. Rows without an
// upstream in them are elsewhere: F42 and F44 in test/restart, F45 in test/hostile.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { type Hook, fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf, markerOf } from '../support/processes/invariants.ts';
import {
  finish,
  nameOf,
  runsToCompletion,
  staysRunning,
} from '../support/upstreams/job-scripts.ts';
import { flat } from '../support/graphs/workflows.ts';
import {
  type Client,
  type FaultSetup,
  SERVERS,
  SLOWER,
  openOwnSetup,
  useSharedSetup,
} from './open.ts';

const FIXED = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };

/** With keys passed through: what is the upstream's for each client. */
const setup = useSharedSetup();
vi.setConfig({ testTimeout: 60_000 * SLOWER });

const theirs = ({ key }: Client) => setup.upstream.of(key);

/** Posts into a process that dies of it. */
async function postUntilKilled(client: Client, promptId: string): Promise<void> {
  const more = { prompt_id: promptId };
  await expect(client.post({ marker: promptId, more })).rejects.toThrow();
}

/** The owner's next call. */
async function call(client: Client): Promise<void> {
  await client.reconnect();
  await client.queue();
}

/** The beginning of a call, whose end never comes. */
async function postHalf({ key }: Client): Promise<void> {
  const { port } = setup.holdover();
  const body = JSON.stringify({ prompt: {}, prompt_id: 'half' });
  const socket = dial(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(
    `POST /prompt HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 20)}`,
  );
}

const sentFor = ({ upstream }: FaultSetup, promptId: string) =>
  upstream.requests('submit').filter((each) => markerOf(each) === promptId);

/**
 * Posts into a process that dies once a job is stored. The ledger is the same from the intent to the answer of the
 * service: prompts without an answer stand for the moments before it.
 */
async function dieOfThree(own: FaultSetup, client: Client): Promise<void> {
  own.upstream.script(staysRunning);
  const steps: readonly (readonly [string, Hook])[] = [
    // F37 between the intent and the job: it is submitted again, under its key.
    ['intended', fault.hang()],
    // F38 between the job and its id: the job is found, not made again.
    ['submitted', (exchange) => void exchange.server.makeJob(exchange)],
    // F39 between the job's id and the answer: the prompt is there, also for a client that sends it again.
    ['attached', (exchange) => exchange.honestly()],
  ];
  const lost: Promise<void>[] = [];
  for (const [promptId, submit] of steps) {
    own.upstream.once('submit', submit);
    lost.push(postUntilKilled(client, promptId));
    await expect.poll(() => sentFor(own, promptId)).toHaveLength(1);
  }
  await Promise.all(lost);
}

describe('kill -9', () => {
  test('F36, F38, F40 with keys passed through, at once: each owner finds what became of its prompts', async () => {
    const { upstream } = setup;
    // F40 while forty prompts run: all of them end, under their numbers.
    const many = await setup.client();
    upstream.script(staysRunning, many.key);
    const posts = await Promise.all(Array.from({ length: 40 }, () => many.post()));
    // Prompts that wait for room: they are submitted in their order, under the keys they had.
    const waiting = await setup.client();
    const keys = () => new Set(theirs(waiting).requests('submit').map(keyOf));
    theirs(waiting).always('submit', fault.refuse(429, 'queue_full'));
    const waits = [await waiting.post(), await waiting.post(), await waiting.post()];
    const before = keys();
    // F36 before the prompt was read: nothing of it is anywhere.
    const half = await setup.client();
    await postHalf(half);
    // F38 between the submission and the job's id: the job is found when its owner calls, not made again.
    const client = await setup.client();
    const promptId = randomUUID();
    theirs(client).once('submit', async (exchange) => {
      exchange.server.makeJob(exchange);
      await setup.holdover().kill9();
    });
    await postUntilKilled(client, promptId);
    await setup.restart();
    upstream.streams.most = upstream.streams.open;

    await call(half);
    expect(await half.queue()).toEqual({ running: [], pending: [] });
    expect(theirs(half).requests('submit')).toEqual([]);

    await call(client);
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    expect(client.jobs(promptId)).toHaveLength(1);
    expect(theirs(client).requests('submit')).toHaveLength(1);

    theirs(waiting).always('submit', (exchange) => exchange.honestly());
    await call(waiting);
    for (const one of waits)
      expect((await waiting.ended(one.promptId)).status.status_str).toBe('success');
    const made = theirs(waiting).jobs().map(nameOf);
    expect(made).toEqual(waits.map(({ marker }) => `${marker}_00001_.png`));
    for (const key of before) expect([...keys()]).toContain(key);
    expect(keys().size).toBe(3);

    await call(many);
    const jobs = theirs(many).jobs();
    // Some ended while no server followed them.
    for (const job of jobs.slice(0, 20)) finish(upstream, job);
    await expect.poll(async () => (await many.queue()).running.length).toBeGreaterThan(0);
    for (const job of jobs.slice(20)) finish(upstream, job);
    for (const post of posts) {
      const { status, prompt } = await many.ended(post.promptId, 10_000);
      expect([status.status_str, prompt[0]]).toEqual(['success', post.json.number]);
    }
    expect(upstream.streams.most).toBeLessThanOrEqual(6 * SERVERS);
    expect(theirs(many).requests('submit')).toHaveLength(40);
    await setup.check();
  });

  test('F37 to F39 at each step of a submission: one job under one key', async () => {
    const dieAt = (moment: string) => ({ HOLDOVER_CRASH_AT: moment });
    const limits = { submitTimeoutMs: 10_000 };
    const own = await openOwnSetup({ env: FIXED, limits, firstEnv: dieAt('after-attach') });
    const { upstream } = own;
    const client = await own.client();
    const queued = async () => {
      const { running, pending } = await client.queue();
      return [...running, ...pending].toSorted();
    };

    await dieOfThree(own, client);
    await own.restart({ env: dieAt('after-outbox') });
    await call(client);
    await expect.poll(queued).toEqual(['attached', 'intended', 'submitted']);
    const again = await client.post({ marker: 'attached', more: { prompt_id: 'attached' } });
    expect([again.status, again.promptId]).toEqual([200, 'attached']);
    for (const [promptId, submits] of [
      ['intended', 2],
      ['submitted', 1],
      ['attached', 1],
    ] as const) {
      await expect.poll(() => client.jobs(promptId)).toHaveLength(1);
      for (const job of client.jobs(promptId)) finish(upstream, job);
      expect((await client.ended(promptId)).status.status_str).toBe('success');
      expect(client.jobs(promptId)).toHaveLength(1);
      const keys = sentFor(own, promptId).map(keyOf);
      expect([keys.length, new Set(keys).size]).toEqual([submits, 1]);
    }

    // Right after a prompt was put aside, before its client learnt it: it runs once or not at all.
    upstream.script(runsToCompletion());
    upstream.always('submit', fault.refuse(429, 'queue_full'));
    await postUntilKilled(client, 'aside');
    await own.restart();
    upstream.always('submit', (exchange) => exchange.honestly());
    await call(client);
    await expect.poll(queued, { timeout: 8_000 }).toEqual([]);
    expect(client.jobs('aside').length).toBeLessThanOrEqual(1);
    expect(new Set(sentFor(own, 'aside').map(keyOf)).size).toBe(1);
    await own.check();
  });

  test('of a prompt whose outcome is unknown: jobs of another user with the same workflow, running or over, stay theirs', async () => {
    const own = await openOwnSetup({
      env: FIXED,
      args: ['--limits', '{"upstream":{"labels":"none"}}'],
    });
    const { upstream } = own;
    upstream.script(staysRunning);
    const [ann, bob] = [await own.client(), await own.client()];
    const prompt = flat({ prefix: 'same' });
    const over = await bob.post({ marker: 'same', prompt });
    const [first] = bob.jobs('same');
    if (first) finish(upstream, first);
    await bob.ended(over.promptId);
    const runs = await bob.post({ marker: 'same', prompt });
    upstream.once('submit', async ({ server, req }) => {
      server.keys.add(String(req.headers['idempotency-key']));
      await own.holdover().kill9();
    });
    const more = { prompt_id: 'of-ann' };
    await expect(ann.post({ marker: 'ann', prompt, more })).rejects.toThrow();
    await own.restart();
    await bob.reconnect();
    await ann.reconnect();
    const entry = await ann.ended('of-ann');
    expect([await ann.word('of-ann'), entry.outputs]).toEqual(['lost', {}]);
    const second = bob.jobs('same').find(({ id }) => id !== first?.id);
    if (second) finish(upstream, second);
    for (const { promptId } of [over, runs])
      expect(Object.keys((await bob.ended(promptId)).outputs)).toHaveLength(1);
  });
});

test('F42 SIGTERM while a prompt runs upstream: exits with 0, and does not stop the job', async () => {
  const client = await setup.client();
  setup.upstream.script(staysRunning, client.key);
  const { promptId, marker } = await client.post();
  await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
  const closed = once(client.socket.socket, 'close');
  expect(await setup.holdover().terminate()).toBe(0);
  expect((await closed)[0]).toBe(1001);
  const [job] = client.jobs(marker);
  expect(job?.status).toBe('running');
  expect(theirs(client).requests('cancel')).toEqual([]);
  if (job) finish(setup.upstream, job);
  await setup.restart();
  await call(client);
  expect((await client.ended(promptId)).status.status_str).toBe('success');
});
