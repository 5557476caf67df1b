import { describe, expect, test } from 'vitest';
import { ANNA, BEN, collect, graph, runJob, value, words } from '../../support/app/jobs.ts';
import { openEngine, startEngine } from './open.ts';

const show = (text: string) => graph({ 1: ['Show', { value: text }] });

describe('the queue', () => {
  test('announces every move of a waiting job', async () => {
    const engine = await openEngine();
    const first = value(await engine.submit(ANNA, { workflow: show('1'), extraData: {} }));
    const second = value(await engine.submit(ANNA, { workflow: show('2'), extraData: {} }));
    const events = collect(engine, second.id);
    await engine.submit(ANNA, { workflow: show('3'), extraData: {}, order: -1 });
    await engine.cancel(ANNA, first.id);
    engine.start();
    const moves = (await events).flatMap((event) =>
      event.event === 'status' && event.data.status === 'queued' ? [event.data.queue_position] : [],
    );
    expect(moves).toEqual([1, 2, 1, 0]);
  });

  test('refuses with 429 queue_full and Retry-After when it is full, and leaves the key free', async () => {
    const engine = await openEngine({ limits: { maxQueued: 1 } });
    const request = { workflow: show('x'), extraData: {}, idempotencyKey: 'k' };
    const first = value(await engine.submit(ANNA, { ...request, idempotencyKey: 'first' }));
    const refused = await engine.submit(ANNA, request);
    expect(refused).toMatchObject({
      error: { status: 429, code: 'queue_full', retryAfterSeconds: expect.any(Number) },
    });
    await engine.cancel(ANNA, first.id);
    expect((await engine.submit(ANNA, request)).ok).toBe(true);
  });

  test('a queue one user has filled has room for another', async () => {
    const engine = await openEngine({ limits: { maxQueued: 2 } });
    const request = { workflow: show('x'), extraData: {} };
    value(await engine.submit(ANNA, request));
    value(await engine.submit(ANNA, request));
    const full = { error: { code: 'queue_full' } };
    expect(await engine.submit(ANNA, request)).toMatchObject(full);
    value(await engine.submit(BEN, request));
    expect(await engine.submit(BEN, request)).toMatchObject(full);
    // The room beyond the limit has an end, too.
    expect(await engine.submit({ user: 'carl' }, request)).toMatchObject(full);
  });

  test('a listener that comes right after submit sees the job start', async () => {
    const engine = await startEngine();
    const { events } = await runJob(engine, show('x'));
    expect(words(events).slice(0, 4)).toEqual([
      'status queued',
      'status running',
      'progress 0/1 - -',
      'started 1',
    ]);
  });

  test('parallel jobs of one user never give two files one name', async () => {
    const engine = await startEngine({ limits: { concurrency: 2 } });
    const runs = Array.from({ length: 6 }, (_, seed) =>
      runJob(
        engine,
        graph({ 1: ['Number', { value: seed }], 2: ['Save', { value: ['1', 0], prefix: 'p' }] }),
      ),
    );
    const names = (await Promise.all(runs)).map(({ job }) => job.outputs[0]?.name);
    expect(new Set(names).size).toBe(6);
  });

  test('the main thread goes on while a job computes', async () => {
    const engine = await startEngine();
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await runJob(engine, graph({ 1: ['Busy', { ms: 200 }], 2: ['Sink', { value: ['1', 0] }] }));
    clearInterval(timer);
    expect(turns).toBeGreaterThan(10);
  });
});
