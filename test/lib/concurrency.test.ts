import { describe, expect, test } from 'vitest';
import { createAdaptiveSemaphore, createKeyedMutex } from '../../src/lib/concurrency.ts';

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
