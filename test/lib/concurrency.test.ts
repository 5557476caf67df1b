import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  BackgroundTasks,
  Latch,
  createAdaptiveSemaphore,
  createFairSemaphore,
  createKeyedMutex,
  createMutex,
  createSemaphore,
} from '../../src/lib/concurrency.ts';

type Job = { readonly name: string; readonly finish: () => void; readonly fail: () => void };

/** Work that ends when the test says so, and a record of what has started. */
function createWork() {
  const started: Job[] = [];
  const work = (name: string) => () =>
    new Promise<string>((resolve, reject) =>
      started.push({ name, finish: () => resolve(name), fail: () => reject(new Error(name)) }),
    );
  return { work, started, names: () => started.map(({ name }) => name) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a fair semaphore', () => {
  test('lets the users of waiting work take turns', async () => {
    const run = createFairSemaphore(2);
    const { work, started, names } = createWork();
    const results = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map((name) =>
      run(name.slice(0, 1), work(name)),
    );
    for (let i = 0; i < results.length; i++) {
      await settled();
      expect(names()).toHaveLength(Math.min(i + 2, results.length));
      started[i]?.finish();
    }
    expect(names()).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
    expect(await Promise.all(results)).toContain('b2');
  });

  test('settles as the work does, and goes on after a failure', async () => {
    const run = createFairSemaphore(1);
    const { work, started } = createWork();
    const failing = run('a', work('a1'));
    const next = run('a', work('a2'));
    await settled();
    started[0]?.fail();
    await expect(failing).rejects.toThrow('a1');
    await settled();
    started[1]?.finish();
    expect(await next).toBe('a2');
  });
});

describe('a mutex', () => {
  test('runs one piece of work at a time, in the order it came', async () => {
    const run = createMutex();
    const { work, started, names } = createWork();
    const results = ['a', 'b', 'c'].map((name) => run(work(name)));
    await settled();
    expect(names()).toEqual(['a']);
    started[0]?.finish();
    await settled();
    expect(names()).toEqual(['a', 'b']);
    started[1]?.finish();
    await settled();
    started[2]?.finish();
    expect(await Promise.all(results)).toEqual(['a', 'b', 'c']);
  });

  test('goes on after a failure, which its own caller receives', async () => {
    const run = createMutex();
    const { work, started, names } = createWork();
    const first = run(work('a'));
    const second = run(work('b'));
    await settled();
    started[0]?.fail();
    await expect(first).rejects.toThrow('a');
    await settled();
    expect(names()).toEqual(['a', 'b']);
    started[1]?.finish();
    expect(await second).toBe('b');
  });
});

test('a semaphore runs at most so many at a time', async () => {
  const run = createSemaphore(2);
  const { work, started, names } = createWork();
  for (const name of ['a', 'b', 'c', 'd']) void run(work(name));
  await settled();
  expect(names()).toEqual(['a', 'b']);
  started[1]?.finish();
  await settled();
  expect(names()).toEqual(['a', 'b', 'c']);
});

test('a keyed mutex lets work of different keys run together', async () => {
  const run = createKeyedMutex();
  const { work, started, names } = createWork();
  void run('x', work('x1'));
  void run('x', work('x2'));
  void run('y', work('y1'));
  await settled();
  expect(names()).toEqual(['x1', 'y1']);
  started[0]?.finish();
  await settled();
  expect(names()).toEqual(['x1', 'y1', 'x2']);
  started[2]?.finish();
  await settled();
  expect(await run('x', async () => 'x3')).toBe('x3');
});

describe('an adaptive semaphore', () => {
  async function startedOf(semaphore: ReturnType<typeof createAdaptiveSemaphore>, count: number) {
    let started = 0;
    for (let i = 0; i < count; i++) void semaphore.acquire().then(() => started++);
    await settled();
    return () => started;
  }

  test('makes one attempt at a time after a refusal for lack of room', async () => {
    const semaphore = createAdaptiveSemaphore(4);
    const started = await startedOf(semaphore, 8);
    expect(started()).toBe(4);
    semaphore.release('no capacity');
    for (let i = 0; i < 2; i++) semaphore.release('other');
    await settled();
    expect(started()).toBe(4);
    semaphore.release('other');
    await settled();
    expect(started()).toBe(5);
  });

  test('doubles its limit with every success, up to the maximum', async () => {
    const semaphore = createAdaptiveSemaphore(4);
    const started = await startedOf(semaphore, 40);
    for (let i = 0; i < 4; i++) semaphore.release('no capacity');
    await settled();
    expect(started()).toBe(5);
    semaphore.release('passed');
    await settled();
    expect(started()).toBe(7);
    for (let i = 0; i < 2; i++) semaphore.release('passed');
    await settled();
    expect(started()).toBe(11);
    for (let i = 0; i < 4; i++) semaphore.release('passed');
    await settled();
    expect(started()).toBe(15);
  });
});

describe('background tasks', () => {
  test('an error of a task is reported, and the task ends without one', async () => {
    const tasks = new BackgroundTasks();
    const errors: unknown[] = [];
    await tasks.run(
      () => {
        throw new Error('broken');
      },
      (error) => void errors.push(error),
    );
    expect(errors).toEqual([new Error('broken')]);
  });

  test('closing stops the tasks and waits for them; their errors are of no interest', async () => {
    const tasks = new BackgroundTasks();
    const errors: unknown[] = [];
    let hasEnded = false;
    const task = async () => {
      await delay(60_000, undefined, { signal: tasks.signal }).finally(() => (hasEnded = true));
    };
    void tasks.run(task, (error) => void errors.push(error));
    await tasks.close();
    expect([hasEnded, errors]).toEqual([true, []]);
  });
});

test('a latch resolves for those who waited and for those who ask later', async () => {
  const latch = new Latch();
  let opened = 0;
  const count = () => void opened++;
  void latch.opened().then(count);
  void latch.opened().then(count);
  await settled();
  expect(opened).toBe(0);
  latch.open();
  void latch.opened().then(count);
  await settled();
  expect(opened).toBe(3);
});
