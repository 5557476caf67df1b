// A service whose engine dies and forgets what waited there: a prompt that never began is sent
// again, one that began has ended.
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, expect, test, vi } from 'vitest';
import { type WireJob, fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf, markerOf } from '../support/processes/invariants.ts';
import {
  finish,
  outputOf,
  progressAt,
  runsToCompletion,
  staysRunning,
} from '../support/upstreams/job-scripts.ts';
import { type Client, SLOWER, useSharedSetup } from './open.ts';

const setup = useSharedSetup({
  env: { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' },
  // A submission that a busy machine answers late is not sent again.
  limits: { submitTimeoutMs: 10_000 },
});
vi.setConfig({ testTimeout: 40_000 * SLOWER, hookTimeout: 30_000 * SLOWER });

/** Jobs wait, and every call is answered as it should be. */
beforeEach(() => {
  const { upstream } = setup;
  upstream.script(undefined);
  for (const route of ['get', 'events', 'cancel', 'asset'] as const)
    upstream.always(route, (exchange) => exchange.honestly());
});

/** The answers of a service about the jobs that its engine lost. */
const WORDS: readonly (readonly [string, (job: WireJob) => void])[] = [
  ['knows nothing of it', ({ id }) => void setup.upstream.jobs.delete(id)],
  ['calls it expired', ({ id }) => setup.upstream.change(id, { status: 'expired' })],
  [
    'says that its worker was lost',
    ({ id }) =>
      setup.upstream.change(id, {
        status: 'failed',
        error: { code: 'worker_lost', message: 'its worker died', traceback: null },
      }),
  ],
];

/** The keys that a prompt was sent under. */
const keysOf = (marker: string): readonly string[] =>
  setup.upstream
    .requests('submit')
    .filter((sent) => markerOf(sent) === marker)
    .map(keyOf);

function jobOf(client: Client, marker: string): WireJob {
  const [job] = client.jobs(marker);
  if (!job) throw new Error(`${marker} has no job`);
  return job;
}

test.each(WORDS)(
  'a service that %s: what waited is sent again, once, and runs',
  async (_, lose) => {
    const client = await setup.client();
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.queue()).toEqual({ running: [promptId], pending: [] });
    setup.upstream.script(runsToCompletion());
    lose(jobOf(client, marker));
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    const [first, second, ...more] = keysOf(marker);
    expect([second, more]).toEqual([`${first}.again1`, []]);
    expect(client.outline(promptId).filter((word) => word === 'execution_start')).toHaveLength(1);
    expect(setup.holdover().log()).toMatch(RegExp(`prompt\\.resent.*${promptId}`));
  },
);

test('waiting prompts keep their order and stay in the queue while they are sent again', async () => {
  const client = await setup.client();
  const posts = [await client.post(), await client.post(), await client.post()];
  const ids = posts.map(({ promptId }) => promptId);
  const shown = async () => {
    const { running, pending } = await client.queue();
    return [...running, ...pending];
  };
  await expect.poll(shown).toEqual(ids);
  // The engine is down for a while: no call can tell what became of them.
  setup.upstream.always('get', fault.refuse(503, 'upstream_unreachable'));
  setup.upstream.always('events', fault.refuse(503, 'upstream_unreachable'));
  setup.upstream.jobs.clear();
  await delay(500);
  expect(await shown()).toEqual(ids);
  setup.upstream.always('get', (exchange) => exchange.honestly());
  setup.upstream.always('events', (exchange) => exchange.honestly());
  await expect.poll(() => setup.upstream.jobs.size, { timeout: 10_000 }).toBe(3);
  expect(await shown()).toEqual(ids);
  setup.upstream.script(runsToCompletion());
  for (const job of setup.upstream.jobs.values()) void runsToCompletion()(job, setup.upstream);
  for (const { promptId, marker } of posts) {
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    expect(client.jobs(marker)).toHaveLength(1);
  }
  expect(new Set(posts.flatMap(({ marker }) => keysOf(marker))).size).toBe(6);
});

test.each(WORDS)(
  'a service that %s: what had begun has ended, and is not sent again',
  async (_, lose) => {
    setup.upstream.script(staysRunning);
    const client = await setup.client();
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
    lose(jobOf(client, marker));
    expect((await client.ended(promptId)).status.status_str).toBe('error');
    expect(keysOf(marker)).toHaveLength(1);
  },
);

test('a job that turns up when it is cancelled has not been lost', async () => {
  const client = await setup.client();
  const { promptId, marker } = await client.post();
  const { id } = jobOf(client, marker);
  setup.upstream.always('get', fault.refuse(404, 'not_found'));
  setup.upstream.always('events', fault.refuse(404, 'not_found'));
  setup.upstream.always('cancel', ({ json }) => json(200, setup.upstream.jobs.get(id)));
  await expect.poll(() => setup.upstream.requests('cancel').length).toBeGreaterThan(0);
  setup.upstream.always('get', (exchange) => exchange.honestly());
  setup.upstream.always('events', (exchange) => exchange.honestly());
  void runsToCompletion()(jobOf(client, marker), setup.upstream);
  expect((await client.ended(promptId)).status.status_str).toBe('success');
  expect(keysOf(marker)).toHaveLength(1);
});

test('a service that drops a prompt as soon as it comes, and again, has decided', async () => {
  setup.upstream.script(async (job, server) => server.change(job.id, { status: 'expired' }));
  const client = await setup.client();
  const { promptId, marker } = await client.post();
  expect((await client.ended(promptId)).status.status_str).toBe('error');
  expect(await client.word(promptId)).toBe('lost');
  expect(keysOf(marker).map((key) => key.split('.')[1])).toEqual([
    undefined,
    'again1',
    'again2',
    'again3',
  ]);
});

/** A prompt whose job has made its file when its service dies. */
async function madeItsFile(client: Client) {
  const { upstream } = setup;
  upstream.script(async (job, server) => {
    await delay(100);
    server.change(job.id, { status: 'running' });
    const lost = outputOf(job);
    server.change(job.id, { outputs: [lost] });
    server.emit(job.id, 'output', lost);
  });
  const { promptId, marker } = await client.post();
  const files = async () => (await client.ask('/internal/files/output')).json as string[];
  const named = (name: string) => [expect.stringContaining(name)];
  await expect.poll(files, { timeout: 8_000 }).toEqual(named(`${marker}_00001_.png`));
  const job = jobOf(client, marker);
  upstream.always('asset', fault.refuse(404, 'not_found'));
  upstream.script(undefined);
  return {
    /** The job runs again, and makes it again. */
    async hasOneName(): Promise<void> {
      upstream.change(job.id, { outputs: [] });
      finish(upstream, job);
      const entry = await client.ended(promptId);
      const [image, second] = entry.outputs['9'].images;
      expect(second).toBeUndefined();
      expect(await files()).toEqual(named(image.filename));
    },
  };
}

test('a service that dies in the middle of a job, which runs again: its file has one name', async () => {
  const file = await madeItsFile(await setup.client());
  await file.hasOneName();
});

test('a prompt whose end was asked for is not sent again', async () => {
  const client = await setup.client();
  const { promptId, marker } = await client.post();
  setup.upstream.always('cancel', fault.refuse(503, 'upstream_unreachable'));
  void client.say('/queue', { delete: [promptId] });
  await expect.poll(() => setup.upstream.requests('cancel').length).toBeGreaterThan(0);
  setup.upstream.jobs.delete(jobOf(client, marker).id);
  await expect.poll(() => client.queue()).toEqual({ running: [], pending: [] });
  expect(keysOf(marker)).toHaveLength(1);
});

test('a Holdover that dies with its service, and between taking a job off and sending its prompt again', async () => {
  const [client, other] = [await setup.client(), await setup.client()];
  const file = await madeItsFile(other);
  const waits = await client.post();
  const began = await client.post();
  setup.upstream.change(jobOf(client, began.marker).id, {
    status: 'running',
    progress: progressAt(1, 3),
  });
  await expect.poll(() => client.word(began.promptId)).toMatch(/preparing|executing/);
  for (const { marker } of [waits, began]) setup.upstream.jobs.delete(jobOf(client, marker).id);
  setup.upstream.script(runsToCompletion());
  await setup.restart({ env: { HOLDOVER_CRASH_AT: 'after-detach' } });
  await setup.holdover().ended;
  await setup.restart();
  for (const each of [client, other]) await each.reconnect();
  // What was waiting is sent again, once; what had begun is not.
  expect((await client.ended(waits.promptId)).status.status_str).toBe('success');
  expect((await client.ended(began.promptId)).status.status_str).toBe('error');
  expect(client.jobs(waits.marker)).toHaveLength(1);
  expect(client.jobs(began.marker)).toHaveLength(0);
  expect(keysOf(waits.marker)).toHaveLength(2);
  await file.hasOneName();
});
