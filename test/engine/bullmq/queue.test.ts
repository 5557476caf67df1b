import { writeFile } from 'node:fs/promises';

import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import type { AssetRow } from '../../../src/ledger/ledger.ts';
import { createSharedBlobs } from '../../../src/engine/bullmq/shared-blobs.ts';
import { TINY_WORKFLOWS } from '../memory/open.ts';
import { ANNA, collect, isStep, spooled, until, value } from '../../support/app/jobs.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { openQueueSetup, openServices, startQueued, useRedis } from './open.ts';

describe.skipIf(redisMissing() !== '')(`the queue in Redis${redisMissing()}`, () => {
  const redis = useRedis();
  const waitingOnly = { limits: { concurrency: 0 } };
  const submit = { workflow: TINY_WORKFLOWS.saving(1), extraData: {} };

  test('distinguishes large numbers that differ a little', async () => {
    const { queue } = openServices(await openQueueSetup(redis()));
    const orders = [1500.5, 1500.25, 1e15 + 1, 1e15, -1e15];
    for (const order of orders) await queue.add([{ id: `at${order}`, user: 'anna', order }]);
    const positions = await queue.positions(orders.map((order) => `at${order}`));
    expect(positions).toEqual([2, 1, 4, 3, 0]);
  });

  test('refuses jobs beyond the limit, also those of other processes', async () => {
    const setup = await openQueueSetup(redis());
    const limits = { concurrency: 0, maxQueued: 2 };
    const fronts = [await startQueued(setup, { limits }), await startQueued(setup, { limits })];
    for (const front of fronts) value(await front.submit(ANNA, submit));
    for (const front of fronts) {
      expect(await front.submit(ANNA, submit)).toMatchObject({ error: { code: 'queue_full' } });
    }
  });

  test('a late subscriber at another process gets the current state of the job', async () => {
    const setup = await openQueueSetup(redis());
    const here = await startQueued(setup);
    const there = await startQueued(setup, waitingOnly);
    const workflow = TINY_WORKFLOWS.endless(1);
    const { id } = value(await here.submit(ANNA, { workflow, extraData: {} }));
    await until(here, id, isStep);
    const seen: string[] = [];
    await until(there, id, (event) => seen.push(event.event) === 2);
    expect(seen).toEqual(['status', 'progress']);
    const rest = collect(there, id);
    value(await there.cancel(ANNA, id));
    expect((await rest).at(-1)).toMatchObject({ data: { status: 'canceled' } });
  });

  test('files that are made at the same time have different names', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup, waitingOnly);
    const seeds = [1, 2, 3, 4, 5, 6];
    const jobs = await Promise.all(
      seeds.map((seed) => front.submit(ANNA, { ...submit, workflow: TINY_WORKFLOWS.saving(seed) })),
    );
    await Promise.all([startQueued(setup), startQueued(setup)]);
    const ids = jobs.map((job) => value(job).id);
    await Promise.all(ids.map((id) => collect(front, id)));
    const names = await Promise.all(
      ids.map(async (id) => value(await front.get(ANNA, id)).outputs[0]?.name),
    );
    expect(new Set(names).size).toBe(seeds.length);
  });

  test('a job in the ledger that is not in the queue is added again', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup, waitingOnly);
    const { id } = value(await front.submit(ANNA, submit));
    const { redis: raw, keys } = openServices(setup);
    await raw.del(...(await raw.keys(`${keys.bullPrefix}:*`)));
    const events = collect(front, id);
    await startQueued(setup);
    expect((await events).at(-1)).toMatchObject({ data: { status: 'succeeded' } });
  });

  test('an end that was decided and not recorded is recorded, and its state expires', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup, waitingOnly);
    const { id } = value(await front.submit(ANNA, submit));
    const { queue, runs, ledger, redis: raw, keys } = openServices(setup);
    await queue.remove(id);
    const claim = await runs.seize(id);
    if (claim.kind === 'ended') throw new Error('it has ended before');
    const end = { status: 'canceled', completedAtMs: Date.now(), expiresAtMs: Date.now() + 60_000 };
    expect(await runs.end({ id, fence: claim.fence }, end)).toBe('ok');
    await startQueued(setup);
    await expect.poll(() => ledger.jobs.unfinished()).toEqual([]);
    expect(await ledger.jobs.get(id)).toMatchObject(end);
    const states = [keys.run(id), keys.eventStream(id)];
    const lifetimes = () => Promise.all(states.map((key) => raw.pttl(key)));
    await expect.poll(async () => (await lifetimes()).every((ms) => ms > 0)).toBe(true);
  });

  test('the state of a job expires when the worker that recorded its end died before', async () => {
    const setup = await openQueueSetup(redis());
    const engine = await startQueued(setup);
    const job = value(await engine.submit(ANNA, submit));
    await collect(engine, job.id);
    const { queue, redis: raw, keys } = openServices(setup);
    const run = keys.run(job.id);
    await expect.poll(() => raw.pttl(run)).toBeGreaterThan(0);
    await expect.poll(() => raw.exists(`${keys.ofBull}${job.id}`)).toBe(0);
    await raw.persist(run);
    await queue.add([{ id: job.id, user: ANNA.user, order: 0 }]);
    await expect.poll(() => raw.pttl(run)).toBeGreaterThan(0);
    await expect.poll(() => queue.waiting(ANNA.user)).toMatchObject({ all: 0 });
  });

  test('a job that kills every worker fails with worker_lost', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup, waitingOnly);
    const { id } = value(await front.submit(ANNA, submit));
    const { runs } = openServices(setup);
    for (const deaths of [0, 1, 2]) {
      const claim = await runs.claim(id, 0);
      expect(claim).toMatchObject({ kind: 'run', attempts: deaths });
      if (claim.kind === 'run') expect(await runs.begin({ id, fence: claim.fence })).toBe('ok');
    }
    const events = collect(front, id);
    await startQueued(setup);
    expect((await events).at(-1)).toMatchObject({ data: { status: 'failed' } });
    const job = value(await front.get(ANNA, id));
    expect(job).toMatchObject({ error: { code: 'worker_lost' }, started_at: expect.any(String) });
  });

  test('workers that die before the first node begins use up no attempt', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup, waitingOnly);
    const { id } = value(await front.submit(ANNA, submit));
    const { runs } = openServices(setup);
    for (let death = 0; death < 5; death++) {
      expect(await runs.claim(id, 0)).toMatchObject({ kind: 'run', attempts: 0 });
    }
    const events = collect(front, id);
    await startQueued(setup);
    expect((await events).at(-1)).toMatchObject({ data: { status: 'succeeded' } });
  });

  test('a run is counted once even if its begin is sent again, and not when its worker is alive', async () => {
    const setup = await openQueueSetup(redis());
    const { runs, queue, redis: raw, keys } = openServices(setup);
    const tries = () => raw.hget(keys.run('a'), 'attempts');
    await queue.add([{ id: 'a', user: 'anna', order: 0 }]);
    await runs.claim('a', 0);
    const slow = { id: 'a', fence: 1 };
    expect([await runs.begin(slow), await runs.begin(slow), await tries()]).toEqual([
      'ok',
      'ok',
      '1',
    ]);
    await runs.claim('a', 0);
    expect(await runs.begin(slow)).toBe('stale');
    await runs.begin({ id: 'a', fence: 2 });
    expect(await tries()).toBe('2');
    await runs.stillAlive(slow);
    await runs.stillAlive(slow);
    expect(await tries()).toBe('1');
  });

  test('an outage of Redis of some seconds uses up no attempt', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup);
    await startQueued(setup);
    const workflow = TINY_WORKFLOWS.endless(1);
    const { id } = value(await front.submit(ANNA, { workflow, extraData: {} }));
    await until(front, id, isStep);
    const { redis: raw, keys } = openServices(setup);
    const rest = collect(front, id);
    redis().pause();
    await delay(4700);
    redis().resume();
    // A worker that takes it for dead looks twice in this time.
    await delay(3000);
    expect(await raw.hmget(keys.run(id), 'attempts', 'fence')).toEqual(['1', '1']);
    value(await front.cancel(ANNA, id));
    expect((await rest).at(-1)).toMatchObject({ data: { status: 'canceled' } });
  }, 30_000);

  test('a job is returned and run again soon when Redis refuses the writes of its worker', async () => {
    const setup = await openQueueSetup(redis());
    const front = await startQueued(setup, waitingOnly);
    await startQueued(setup);
    const gate = path.join(setup.dataDir, 'gate');
    const workflow = {
      1: { class_type: 'Gate', inputs: { path: gate } },
      2: { class_type: 'Sink', inputs: { value: ['1', 0] } },
    };
    const { id } = value(await front.submit(ANNA, { workflow, extraData: {} }));
    await until(front, id, isStep);
    const rest = collect(front, id);
    const { redis: raw, keys } = openServices(setup);
    await raw.config('SET', 'maxmemory', '1mb');
    await writeFile(gate, '');
    await delay(2000);
    await raw.config('SET', 'maxmemory', '0');
    // The second run finds the first one's results: no node begins.
    const run = () => raw.hmget(keys.run(id), 'status', 'attempts');
    await expect.poll(run, { timeout: 15_000 }).toEqual(['succeeded', '1']);
    expect(Number(await raw.hget(keys.run(id), 'fence'))).toBeGreaterThan(1);
    expect((await rest).at(-1)).toMatchObject({ data: { status: 'succeeded' } });
  }, 40_000);

  test('a returned job gets its attempt back, unless its events were not published', async () => {
    const setup = await openQueueSetup(redis());
    const { runs, queue, redis: raw, keys } = openServices(setup);
    await queue.add([{ id: 'a', user: 'anna', order: 0 }]);
    for (const [triesBack, attempts] of [
      [0, 0],
      [1, 1],
      [1, 1],
    ] as const) {
      const { fence } = (await runs.claim('a', 0)) as { readonly fence: number };
      expect(await runs.begin({ id: 'a', fence })).toBe('ok');
      await runs.requeue({ id: 'a', fence }, triesBack);
      expect(await raw.hget(keys.run('a'), 'attempts')).toBe(String(attempts + 1 - triesBack));
    }
  });

  test('a former holder of a job cannot write, and no event is written twice', async () => {
    const setup = await openQueueSetup(redis());
    const { runs, queue, redis: raw, keys } = openServices(setup);
    await queue.add([{ id: 'a', user: 'anna', order: 0 }]);
    const first = await runs.claim('a', 0);
    expect(first).toMatchObject({ kind: 'run', fence: 1 });
    const said = [{ kind: 'e', n: 1, text: '{}', fields: {} }] as const;
    const told = () => raw.xlen(keys.eventStream('a'));
    expect(await runs.append({ id: 'a', fence: 1 }, said)).toBe('ok');
    expect(await runs.append({ id: 'a', fence: 1 }, said)).toBe('ok');
    expect(await told()).toBe(1);
    await runs.claim('a', 0);
    const stale = { id: 'a', fence: 1 };
    expect(await runs.append(stale, [{ ...said[0], n: 2, fields: { progress: '1' } }])).toBe(
      'stale',
    );
    expect(await runs.end(stale, { status: 'failed' })).toBe('stale');
    expect(await runs.requeue(stale, 1)).toBe('stale');
    expect(await runs.isCurrent(stale)).toBe(false);
    expect(await told()).toBe(1);
    const [state] = await runs.read(['a']);
    expect(state).toMatchObject({ status: 'running', end: undefined });
    expect(state).not.toHaveProperty('progress');
  });

  test('the results of a run so far are read together, and the next run begins without them', async () => {
    const setup = await openQueueSetup(redis());
    const { runs, queue } = openServices(setup);
    await queue.add([{ id: 'a', user: 'anna', order: 0 }]);
    await runs.claim('a', 0);
    const made = Array.from({ length: 12 }, (_, n) => ({
      kind: 'e' as const,
      n: n + 1,
      text: '{}',
      fields: { [`output:${n}`]: String(n), [`ui:${n}`]: `{"text":["${n}"]}`, progress: String(n) },
    }));
    expect(await runs.append({ id: 'a', fence: 1 }, made)).toBe('ok');
    const [state] = await runs.read(['a']);
    expect(state).toMatchObject({ outputs: made.map((_, n) => n), progress: 11 });
    expect(Object.keys(state?.ui ?? {})).toHaveLength(12);
    await runs.claim('a', 0);
    const [next] = await runs.read(['a']);
    expect(next).not.toHaveProperty('outputs');
    expect(next).not.toHaveProperty('ui');
    expect(next).not.toHaveProperty('progress');
  });

  test('a cancel that comes while the job succeeds still counts', async () => {
    const setup = await openQueueSetup(redis());
    const { runs, queue } = openServices(setup);
    await queue.add([{ id: 'a', user: 'anna', order: 0 }]);
    await runs.claim('a', 0);
    expect(await queue.cancel('a')).toBe(true);
    const held = { id: 'a', fence: 1 };
    expect(await runs.end(held, { status: 'succeeded' })).toBe('cancel');
    expect(await runs.end(held, { status: 'canceled' })).toBe('ok');
    expect(await queue.cancel('a')).toBe(false);
  });

  test('bytes another process records while they are removed here stay', async () => {
    const setup = await openQueueSetup(redis());
    const services = openServices(setup);
    const blobs = createFolderBlobs(path.join(setup.dataDir, 'blobs'));
    const file = await spooled('wanted');
    const row: AssetRow = {
      id: 'a',
      user: 'anna',
      hash: file.hash,
      sizeBytes: file.sizeBytes,
      contentType: 'text/plain',
      filePath: 'input/a',
      tagsJson: null,
      createdAtMs: 0,
      expiresAtMs: null,
      jobId: null,
    };
    await blobs.moveIntoPlace(file);
    const assets = {
      ...services.ledger.assets,
      // Between the count that said none and the removal.
      async countByHash(hash: string) {
        await services.ledger.assets.insert(row);
        return await services.ledger.assets.countByHash(hash);
      },
    };
    const shared = (ledger: typeof services.ledger) =>
      createSharedBlobs({ ...services, ...setup, blobs, ledger, clock: systemClock });
    await shared({ ...services.ledger, assets }).remove(file.hash);
    expect(await blobs.sizeOf(file.hash)).toBe(file.sizeBytes);
    await services.ledger.assets.remove('a');
    await shared(services.ledger).remove(file.hash);
    expect(await blobs.sizeOf(file.hash)).toBeUndefined();
  });

  test('bytes that are removed right after they were stored keep their marker', async () => {
    const setup = await openQueueSetup(redis());
    const services = openServices(setup);
    const blobs = createFolderBlobs(path.join(setup.dataDir, 'blobs'));
    const shared = createSharedBlobs({ ...services, ...setup, blobs, clock: systemClock });
    const file = await spooled('late');
    await shared.put(file);
    await shared.remove(file.hash);
    const marked: string[] = [];
    for await (const { hash } of blobs.listUnrecorded()) marked.push(hash);
    expect([marked, await blobs.sizeOf(file.hash)]).toEqual([[file.hash], file.sizeBytes]);
  });
});
