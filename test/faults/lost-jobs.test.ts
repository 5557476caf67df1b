// A service whose engine dies and forgets what waited there: a prompt that never began is sent
// again, one that began has ended.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { type WireJob, fault } from '../support/hostile-v2.ts';
import { keyOf } from '../support/invariants.ts';
import { finish, outputOf, progressAt, runs, staysRunning } from '../support/plays.ts';
import { type Client, type Scene, ownScene } from './open.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 30_000 });

const FIXED = { HOLDOVER_UPSTREAM_KEY: 'the-fixed-key' };

/** What the service says of the jobs its engine lost. */
const WORDS: readonly (readonly [string, (scene: Scene, job: WireJob) => void])[] = [
  ['knows nothing of it', ({ upstream }, { id }) => void upstream.jobs.delete(id)],
  ['calls it expired', ({ upstream }, { id }) => upstream.change(id, { status: 'expired' })],
  [
    'says that its worker was lost',
    ({ upstream }, { id }) =>
      upstream.change(id, {
        status: 'failed',
        error: { code: 'worker_lost', message: 'its worker died', traceback: null },
      }),
  ],
];

const keysOf = ({ upstream }: Scene) => upstream.requests('submit').map(keyOf);

function jobOf(client: Client, marker: string): WireJob {
  const [job] = client.jobs(marker);
  if (!job) throw new Error(`${marker} has no job`);
  return job;
}

test.each(WORDS)(
  'a service that %s: what waited is sent again, once, and runs',
  async (_, lose) => {
    const scene = await ownScene({ env: FIXED });
    const client = await scene.client();
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.queue()).toEqual({ running: [promptId], pending: [] });
    scene.upstream.play(runs());
    lose(scene, jobOf(client, marker));
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    const [first, second, ...more] = keysOf(scene);
    expect([second, more]).toEqual([`${first}.again1`, []]);
    expect(client.outline(promptId).filter((word) => word === 'execution_start')).toHaveLength(1);
    expect(scene.house().log()).toContain('prompt.resent');
  },
);

test('waiting prompts keep their order and stay in the queue while they are sent again', async () => {
  const scene = await ownScene({ env: FIXED });
  const client = await scene.client();
  const posts = [await client.post(), await client.post(), await client.post()];
  const ids = posts.map(({ promptId }) => promptId);
  const shown = async () => {
    const { running, pending } = await client.queue();
    return [...running, ...pending];
  };
  await expect.poll(shown).toEqual(ids);
  // The engine is down for a while: nobody can say what became of them.
  scene.upstream.always('get', fault.refuse(503, 'upstream_unreachable'));
  scene.upstream.always('events', fault.refuse(503, 'upstream_unreachable'));
  scene.upstream.jobs.clear();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await shown()).toEqual(ids);
  scene.upstream.always('get', (exchange) => exchange.honestly());
  scene.upstream.always('events', (exchange) => exchange.honestly());
  await expect.poll(() => scene.upstream.jobs.size, { timeout: 10_000 }).toBe(3);
  expect(await shown()).toEqual(ids);
  scene.upstream.play(runs());
  for (const job of scene.upstream.jobs.values()) void runs()(job, scene.upstream);
  for (const { promptId, marker } of posts) {
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    expect(client.jobs(marker)).toHaveLength(1);
  }
  expect(new Set(keysOf(scene)).size).toBe(6);
});

test.each(WORDS)(
  'a service that %s: what had begun has ended, and is not sent again',
  async (_, lose) => {
    const scene = await ownScene({ env: FIXED });
    scene.upstream.play(staysRunning);
    const client = await scene.client();
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.word(promptId)).toMatch(/preparing|executing/);
    lose(scene, jobOf(client, marker));
    expect((await client.ended(promptId)).status.status_str).toBe('error');
    expect(keysOf(scene)).toHaveLength(1);
  },
);

test('a job that turns up when it is cancelled has not been lost', async () => {
  const scene = await ownScene({ env: FIXED });
  const client = await scene.client();
  const { promptId, marker } = await client.post();
  const { id } = jobOf(client, marker);
  scene.upstream.always('get', fault.refuse(404, 'not_found'));
  scene.upstream.always('events', fault.refuse(404, 'not_found'));
  scene.upstream.always('cancel', ({ json }) => json(200, scene.upstream.jobs.get(id)));
  await expect.poll(() => scene.upstream.requests('cancel').length).toBeGreaterThan(0);
  scene.upstream.always('get', (exchange) => exchange.honestly());
  scene.upstream.always('events', (exchange) => exchange.honestly());
  void runs()(jobOf(client, marker), scene.upstream);
  expect((await client.ended(promptId)).status.status_str).toBe('success');
  expect(keysOf(scene)).toHaveLength(1);
});

test('a service that drops a prompt as soon as it comes, and again, has decided', async () => {
  const scene = await ownScene({ env: FIXED });
  scene.upstream.play(async (job, server) => server.change(job.id, { status: 'expired' }));
  const client = await scene.client();
  const { promptId } = await client.post();
  expect((await client.ended(promptId)).status.status_str).toBe('error');
  expect(await client.word(promptId)).toBe('lost');
  expect(keysOf(scene).map((key) => key.split('.')[1])).toEqual([
    undefined,
    'again1',
    'again2',
    'again3',
  ]);
});

test.each([
  ['a service that dies', async () => {}],
  ['a service and its Holdover that die', (scene: Scene) => scene.restart()],
] as const)(
  '%s in the middle of a job, which runs again: its file has one name',
  async (_, die) => {
    const scene = await ownScene({ env: FIXED });
    const { upstream } = scene;
    upstream.play(async (job, server) => {
      await delay(100);
      server.change(job.id, { status: 'running' });
      const lost = outputOf(job);
      server.change(job.id, { outputs: [lost] });
      server.emit(job.id, 'output', lost);
    });
    const client = await scene.client();
    const { promptId, marker } = await client.post();
    const files = async () => (await client.ask('/internal/files/output')).json as string[];
    await expect
      .poll(files, { timeout: 8_000 })
      .toEqual([expect.stringContaining(`${marker}_00001_.png`)]);
    const job = jobOf(client, marker);
    upstream.always('asset', fault.refuse(404, 'not_found'));
    await die(scene);
    upstream.change(job.id, { outputs: [] });
    finish(upstream, job);
    await client.reconnect();
    const entry = await client.ended(promptId);
    const [image, second] = entry.outputs['9'].images;
    expect(second).toBeUndefined();
    expect(await files()).toEqual([expect.stringContaining(image.filename)]);
  },
);

test('a prompt whose end was asked for is not sent again', async () => {
  const scene = await ownScene({ env: FIXED });
  const client = await scene.client();
  const { promptId, marker } = await client.post();
  scene.upstream.always('cancel', fault.refuse(503, 'upstream_unreachable'));
  void client.say('/queue', { delete: [promptId] });
  await expect.poll(() => scene.upstream.requests('cancel').length).toBeGreaterThan(0);
  scene.upstream.jobs.delete(jobOf(client, marker).id);
  await expect.poll(() => client.queue()).toEqual({ running: [], pending: [] });
  expect(keysOf(scene)).toHaveLength(1);
});

test('killed between taking the job off and sending the prompt again: it is sent once', async () => {
  const scene = await ownScene({
    env: FIXED,
    firstEnv: { HOLDOVER_CRASH_AT: 'after-detach' },
  });
  const client = await scene.client();
  const { promptId, marker } = await client.post();
  scene.upstream.play(runs());
  scene.upstream.jobs.delete(jobOf(client, marker).id);
  await expect.poll(() => fetch(scene.house().url).catch(() => 'dead')).toBe('dead');
  await scene.restart();
  await client.reconnect();
  expect((await client.ended(promptId)).status.status_str).toBe('success');
  expect(client.jobs(marker)).toHaveLength(1);
  expect(keysOf(scene)).toHaveLength(2);
});

test('both die at once: what was waiting is sent again, what had begun is not', async () => {
  const scene = await ownScene({ env: FIXED });
  const client = await scene.client();
  const waits = await client.post();
  const began = await client.post();
  scene.upstream.change(jobOf(client, began.marker).id, {
    status: 'running',
    progress: progressAt(1, 3),
  });
  await expect.poll(() => client.word(began.promptId)).toMatch(/preparing|executing/);
  scene.upstream.jobs.clear();
  scene.upstream.play(runs());
  await scene.restart();
  await client.reconnect();
  expect((await client.ended(waits.promptId)).status.status_str).toBe('success');
  expect((await client.ended(began.promptId)).status.status_str).toBe('error');
  expect(client.jobs(waits.marker)).toHaveLength(1);
  expect(client.jobs(began.marker)).toHaveLength(0);
});
