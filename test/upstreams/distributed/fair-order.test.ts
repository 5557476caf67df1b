// Whose job a worker takes next is decided in Redis, when it has room for one.
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createJobQueue } from '../../../src/upstreams/jobs/fair-order.ts';
import { createQueueKeys } from '../../../src/upstreams/distributed-state/redis-keys.ts';
import { RunStateStore } from '../../../src/upstreams/distributed-state/run-state.ts';
import { openRedis } from '../../../src/lib/redis.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { TINY_WORKFLOWS } from '../embedded/open.ts';
import { ANNA, BEN, collect, isStep, until, value } from '../../support/app/jobs.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { openQueueSetup, startQueued, useRedis } from './open.ts';

describe.skipIf(redisMissing() !== '')(`turns over Redis${redisMissing()}`, () => {
  const redis = useRedis();

  async function hands() {
    const setup = await openQueueSetup(redis());
    const links = {
      ...openRedis(setup.url, { log: silentLogger() }),
      prefix: setup.prefix,
      channels: setup.prefix,
    };
    onTestFinished(() => links.close());
    const keys = createQueueKeys(links);
    return {
      raw: links.commands,
      keys,
      runs: new RunStateStore({ redis: links.commands, keys }),
    };
  }

  /** A worker takes what is next, and begins with it. */
  async function begin({ runs }: Awaited<ReturnType<typeof hands>>, ticket: string) {
    const id = await runs.take(ticket);
    if (id === undefined) return undefined;
    const claim = await runs.claim(id, 0);
    return claim.kind === 'run' ? { id, fence: claim.fence } : undefined;
  }

  test('a free worker is for the user who has none, and users take turns', async () => {
    const setup = await hands();
    const { runs } = setup;
    for (const id of ['a1', 'a2', 'a3', 'a4']) await runs.enqueue({ id, user: 'anna', order: 0 });
    const first = await begin(setup, 'a1');
    expect([first?.id, (await begin(setup, 'a2'))?.id]).toEqual(['a1', 'a2']);
    for (const [id, order] of [
      ['b1', 7],
      ['b2', 7],
      ['b0', -7],
    ] as const)
      await runs.enqueue({ id, user: 'ben', order });
    expect(await runs.positions(['a3', 'a4', 'b0', 'b1', 'b2', 'a1'])).toEqual([
      2,
      4,
      0,
      1,
      3,
      null,
    ]);
    await runs.end(first!, { status: 'succeeded' });
    expect((await begin(setup, 'a3'))?.id).toBe('b0');
    // One runs of each; Anna's latest has just ended.
    expect((await begin(setup, 'a4'))?.id).toBe('b1');
    expect((await begin(setup, 'b0'))?.id).toBe('a3');
  });

  test('whatever comes and goes, it is as in a single process, and as was shown', async () => {
    const act = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          user: fc.constantFrom('a', 'b', 'c'),
          order: fc.integer({ min: -2, max: 2 }),
        }),
      },
      { weight: 2, arbitrary: fc.constant('take' as const) },
      { weight: 1, arbitrary: fc.constant('end' as const) },
      { weight: 1, arbitrary: fc.constant('withdraw' as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
        const setup = await hands();
        const queue = createJobQueue<{ id: string; user: string; order: number }>(() => {});
        const running: { job: { id: string; user: string; order: number }; fence: number }[] = [];
        for (const [i, what] of acts.entries()) {
          if (typeof what === 'object') {
            queue.add({ id: `${i}`, ...what });
            await setup.runs.enqueue({ id: `${i}`, ...what });
          } else if (what === 'take') {
            const job = queue.take();
            const taken = await begin(setup, `ticket${i}`);
            expect(taken?.id).toBe(job?.id);
            if (job && taken) running.push({ job, fence: taken.fence });
          } else if (what === 'end') {
            const over = running.shift();
            if (!over) continue;
            queue.ended(over.job);
            await setup.runs.end({ id: over.job.id, fence: over.fence }, { status: 'succeeded' });
          } else {
            const last = queue.waiting().at(-1);
            if (!last) continue;
            queue.remove(last.id);
            expect(await setup.runs.withdraw(last.id)).toBe(true);
          }
          const ids = queue.waiting().map(({ id }) => id);
          expect(await setup.runs.positions(ids)).toEqual(ids.map((_, place) => place));
        }
      }),
      { numRuns: 25 },
    );
  });

  test('a ticket leads to its job again until that is over, given back or lost', async () => {
    const setup = await hands();
    const { runs, raw, keys } = setup;
    for (const id of ['a', 'b', 'c']) await runs.enqueue({ id, user: 'anna', order: 0 });
    const first = await begin(setup, 'c');
    expect([first?.id, await runs.take('c')]).toEqual(['a', 'a']);
    await runs.requeue(first!, { order: 0, attemptsReturned: 1 });
    expect(await runs.take('x')).toBe('a');
    const second = await begin(setup, 'x');
    expect(await runs.end(second!, { status: 'succeeded' })).toBe('ok');
    expect([await runs.take('x'), await runs.take('y'), await runs.take('z')]).toEqual([
      'b',
      'c',
      undefined,
    ]);
    // Their tickets are not in the library's queue: no worker would ever run them.
    for (const id of ['b', 'c']) await runs.enqueue({ id, user: 'anna', order: 0 });
    expect(await runs.positions(['b', 'c'])).toEqual([0, 1]);
    await raw.set(`${keys.bullPrefix}:jobs:w`, 'there');
    expect(await runs.take('w')).toBe('b');
    await runs.enqueue({ id: 'b', user: 'anna', order: 0 });
    expect(await runs.positions(['b', 'c'])).toEqual([null, 0]);
  });

  test('a job whose ticket is with a worker for another one gets another', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup, { limits: { concurrency: 0, sweepIntervalMs: 200 } });
    const workflow = TINY_WORKFLOWS.endless(1);
    const other = value(await front.submit(ANNA, { workflow, extraData: {} })).id;
    const begins = until(front, other, isStep);
    await startQueued(setup);
    await begins;
    const links = { ...openRedis(setup.url, { log: silentLogger() }), prefix: setup.prefix };
    onTestFinished(() => links.close());
    const keys = createQueueKeys({ ...links, channels: setup.prefix });
    const saving = { workflow: TINY_WORKFLOWS.saving(1), extraData: {} };
    const { id } = value(await front.submit(ANNA, saving));
    // As if the first worker had been given it by this name: nothing can be added for it.
    await links.commands.lrem(`${keys.bullPrefix}:jobs:wait`, 0, id);
    const ends = collect(front, id);
    await startQueued(setup);
    expect((await ends).at(-1)).toMatchObject({ data: { status: 'succeeded' } });
    await front.cancel(ANNA, other);
  });

  test('what is over is forgotten', async () => {
    const setup = await hands();
    const { runs, raw, keys } = setup;
    for (const id of ['a', 'b']) await runs.enqueue({ id, user: 'anna', order: 0 });
    const job = await begin(setup, 'a');
    await runs.end(job!, { status: 'succeeded' });
    await runs.withdraw('b');
    await runs.drop((await runs.take('b')) ?? 'b', 'b');
    const left = await Promise.all([
      raw.zcard(keys.waiting),
      raw.zcard(keys.userTurns),
      raw.hlen(keys.heldJobs),
      raw.hlen(keys.tickets),
      raw.zcard(`${keys.waitingOf}anna`),
    ]);
    expect(left).toEqual([0, 0, 0, 0, 0]);
  });

  test('two workers run the one prompt of a user between the many of another', async () => {
    const setup = await openQueueSetup(redis());
    const limits = { concurrency: 0, maxQueued: 20 };
    const front = await startQueued(setup, { limits });
    const submit = async (caller: typeof ANNA, workflow = TINY_WORKFLOWS.saving(1)) =>
      value(await front.submit(caller, { workflow, extraData: {} })).id;
    const spinning = [];
    for (const seed of [1, 2]) spinning.push(await submit(ANNA, TINY_WORKFLOWS.endless(seed)));
    const starts = spinning.map((id) => until(front, id, isStep));
    await Promise.all([startQueued(setup), startQueued(setup)]);
    await Promise.all(starts);
    const many: string[] = [];
    for (let i = 0; i < limits.maxQueued; i++) many.push(await submit(ANNA));
    const one = await submit(BEN);
    expect(value(await front.get(BEN, one)).queue_position).toBe(0);
    const full = await front.submit(ANNA, { workflow: TINY_WORKFLOWS.saving(1), extraData: {} });
    expect(full).toMatchObject({ error: { code: 'queue_full' } });
    const ends = [collect(front, one, BEN), ...many.map((id) => collect(front, id))];
    await front.cancel(ANNA, spinning[0] ?? '');
    await Promise.all(ends);
    const startOf = async (id: string, caller = ANNA) =>
      value(await front.get(caller, id)).started_at ?? '';
    const bens = await startOf(one, BEN);
    const annas = await Promise.all(many.map((id) => startOf(id)));
    expect(annas.filter((at) => at < bens)).toEqual([]);
    expect(annas).toEqual(annas.toSorted());
    await front.cancel(ANNA, spinning[1] ?? '');
  });
});
