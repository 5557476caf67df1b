// Random faults over many prompts: whatever happens, I1 to I10 hold.
import { setTimeout as tick } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { type Hook, type Route, fault, frame } from '../support/upstreams/hostile-v2.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { seeded } from '../support/graphs/seeded.ts';
import { type Client, openOwnSetup, SLOWER } from './open.ts';

vi.setConfig({ testTimeout: 60_000 * SLOWER, hookTimeout: 30_000 * SLOWER });

const honest: Hook = (exchange) => exchange.honestly();

/** The possible faults of one request; most requests have none. */
const FAULTS: {
  readonly [route in 'submit' | 'get' | 'events' | 'list' | 'cancel']: readonly Hook[];
} = {
  submit: [
    fault.reset(),
    fault.hang(),
    fault.claimAndDie({ withJob: true }),
    fault.claimAndDie({ withJob: false }),
    fault.claimAndDie({ withJob: true, last: fault.refuse(503, 'upstream_unreachable') }),
    fault.claimAndDie({ withJob: true, last: fault.cut(30, { id: 'x'.repeat(100) }) }),
    fault.refuse(500, 'upstream_error'),
    fault.refuse(429, 'queue_full', { 'Retry-After': '1' }),
    fault.refuse(429, 'rate_limited'),
    fault.late(150),
    fault.html(502),
  ],
  get: [
    fault.reset(),
    fault.hang(),
    fault.refuse(503, 'upstream_unreachable'),
    fault.refuse(429, 'rate_limited'),
    fault.html(),
    fault.late(100),
  ],
  events: [
    fault.reset(),
    fault.hang(),
    fault.sse('event: status\ndata: {"status":"run', 'reset'),
    fault.sse(frame('status', { status: 'running' })),
    fault.sse(frame('status', { status: 'succeeded' })),
    fault.drip(20),
    fault.refuse(429, 'too_many_streams'),
    fault.refuse(503, 'upstream_unreachable'),
  ],
  list: [
    fault.reset(),
    fault.refuse(503, 'upstream_unreachable'),
    fault.refuse(429, 'rate_limited'),
  ],
  cancel: [fault.reset(), fault.hang(), fault.refuse(500, 'upstream_error')],
};

test('eighty prompts of four users under random faults, then all is as it should be', async () => {
  const { seed, random } = seeded();
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const setup = await openOwnSetup();
  const { upstream, proxy } = setup;
  upstream.script(runsToCompletion());
  for (const [route, faults] of Object.entries(FAULTS) as [Route, readonly Hook[]][]) {
    upstream.always(route, (exchange) => (random() < 0.3 ? pick(faults) : honest)(exchange));
  }
  const clients = await Promise.all(Array.from({ length: 4 }, () => setup.client()));

  async function use(client: Client): Promise<void> {
    for (let i = 0; i < 20; i += 1) {
      const { promptId } = await client.post();
      if (random() < 0.15) await client.say('/api/queue', { delete: [promptId] });
      if (random() < 0.1) await client.say('/interrupt');
      await tick(random() * 40);
    }
  }

  async function disturb(): Promise<void> {
    for (let i = 0; i < 8; i += 1) {
      await tick(100 + random() * 300);
      const what = pick(['cut', 'cut', 'slow', 'down'] as const);
      if (what === 'cut') proxy.cut(pick(['fin', 'rst'] as const));
      if (what === 'slow') proxy.set('down', { latencyMs: 30, sliceBytes: 64 });
      if (what === 'down') await proxy.down();
      await tick(random() * 150);
      await proxy.up();
      proxy.restore();
    }
  }

  await Promise.all([...clients.map(use), disturb()]);
  for (const route of Object.keys(FAULTS) as Route[]) upstream.always(route, honest);
  const left = async () => {
    const counts = await Promise.all(clients.map((client) => client.ask('/prompt')));
    return counts.reduce((sum, { json }) => sum + json.exec_info.queue_remaining, 0);
  };
  await expect.poll(left, { timeout: 20_000, interval: 100, message: `seed ${seed}` }).toBe(0);
  await tick(100);
  expect(setup.run.posts.filter(({ status }) => status === 200).length).toBeGreaterThan(20);
  try {
    await setup.check();
  } catch (cause) {
    throw new Error(`HOLDOVER_TEST_SEED=${seed}: ${(cause as Error).message}`, { cause });
  }
});
