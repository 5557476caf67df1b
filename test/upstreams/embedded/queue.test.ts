import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/protocol/job-api.ts';
import type { Graph } from '../../../src/protocol/v2.ts';
import {
  ANNA,
  BEN,
  collect,
  graph,
  isStep,
  runJob,
  until,
  value,
  words,
} from '../../support/app/jobs.ts';
import { openEngine, startEngine, tempDir } from './open.ts';

const show = (text: string) => graph({ 1: ['Show', { value: text }] });
const gate = (file: string) =>
  graph({ 1: ['Gate', { path: file }], 2: ['Sink', { value: ['1', 0] }] });

describe('the queue', () => {
  test('runs by order, then by arrival; without an order a job goes last', async () => {
    const engine = await openEngine();
    const ids: { [name: string]: string } = {};
    for (const [name, order] of [
      ['a', undefined],
      ['b', 5],
      ['front', -1],
      ['c', undefined],
      ['b2', 5],
    ] as const) {
      const request = {
        workflow: show(name),
        extraData: {},
        ...(order !== undefined && { order }),
      };
      ids[name] = value(await engine.submit(ANNA, request)).id;
    }
    const positions = new Map<string, number | null>();
    for (const [name, id] of Object.entries(ids))
      positions.set(name, value(await engine.get(ANNA, id)).queue_position);
    expect(positions).toEqual(
      new Map([
        ['a', 1],
        ['b', 2],
        ['front', 0],
        ['c', 4],
        ['b2', 3],
      ]),
    );
    const finished: string[] = [];
    const runs = Object.entries(ids).map(async ([name, id]) => {
      await collect(engine, id);
      finished.push(name);
    });
    engine.start();
    await Promise.all(runs);
    expect(finished).toEqual(['front', 'a', 'b', 'b2', 'c']);
  });

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

  test('users take turns, whatever their numbers are', async () => {
    const engine = await openEngine();
    const ids: { [name: string]: string } = {};
    const submit = async (name: string, caller: Caller, order?: number) => {
      const request = {
        workflow: show(name),
        extraData: {},
        ...(order !== undefined && { order }),
      };
      ids[name] = value(await engine.submit(caller, request)).id;
    };
    for (const name of ['a1', 'a2', 'a3']) await submit(name, ANNA, -5);
    for (const name of ['b1', 'b2']) await submit(name, BEN);
    await submit('b0', BEN, -1);
    const finished: string[] = [];
    const runs = Object.entries(ids).map(async ([name, id]) => {
      await collect(engine, id, name.startsWith('a') ? ANNA : BEN);
      finished.push(name);
    });
    const positionOf = async (name: string, caller: Caller) =>
      value(await engine.get(caller, ids[name] ?? '')).queue_position;
    expect(await positionOf('b0', BEN)).toBe(1);
    expect(await positionOf('a3', ANNA)).toBe(4);
    engine.start();
    await Promise.all(runs);
    expect(finished).toEqual(['a1', 'b0', 'a2', 'b1', 'a3', 'b2']);
  });

  test('the next free slot is of the user who has none', async () => {
    const file = path.join(await tempDir(), 'open');
    const engine = await startEngine({ limits: { concurrency: 2 } });
    const begun: string[] = [];
    const submit = async (caller: Caller, workflow: Graph) => {
      const { id } = value(await engine.submit(caller, { workflow, extraData: {} }));
      return { id, begins: until(engine, id, isStep, caller).then(() => begun.push(id)) };
    };
    const [one, two, three] = [
      await submit(ANNA, gate(file)),
      await submit(ANNA, graph({ 1: ['Spin', { seed: 1 }], 2: ['Sink', { value: ['1', 0] }] })),
      await submit(ANNA, graph({ 1: ['Spin', { seed: 2 }], 2: ['Sink', { value: ['1', 0] }] })),
    ];
    await Promise.all([one.begins, two.begins]);
    const bens = [await submit(BEN, gate(file)), await submit(BEN, gate(`${file}-never`))];
    expect(begun.toSorted()).toEqual([one.id, two.id].toSorted());
    await writeFile(file, '');
    for (const { begins } of bens) await begins;
    // Anna has a slot, Ben has the other, whatever waits.
    expect(value(await engine.get(ANNA, three.id)).status).toBe('queued');
    await engine.cancel(BEN, bens[1]?.id ?? '');
    await three.begins;
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

  test('a queued job is canceled at once', async () => {
    const engine = await openEngine();
    const { id } = value(await engine.submit(ANNA, { workflow: show('x'), extraData: {} }));
    const events = collect(engine, id);
    expect(value(await engine.cancel(ANNA, id))).toMatchObject({
      status: 'canceled',
      started_at: null,
    });
    expect(words(await events)).toEqual(['status queued', 'status canceled']);
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

  test('two jobs run at the same time with concurrency 2', async () => {
    const file = path.join(await tempDir(), 'open');
    const engine = await startEngine({ limits: { concurrency: 2 } });
    const jobs = [
      value(await engine.submit(ANNA, { workflow: gate(file), extraData: {} })),
      value(await engine.submit(BEN, { workflow: gate(file), extraData: {} })),
    ];
    await Promise.all([
      until(engine, jobs[0]?.id ?? '', isStep, ANNA),
      until(engine, jobs[1]?.id ?? '', isStep, BEN),
    ]);
    await writeFile(file, '');
    const ends = await Promise.all([
      collect(engine, jobs[0]?.id ?? '', ANNA),
      collect(engine, jobs[1]?.id ?? '', BEN),
    ]);
    for (const events of ends) expect(words(events).at(-1)).toBe('status succeeded');
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
