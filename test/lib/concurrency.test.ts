import { expect, test } from 'vitest';
import { createKeyedMutex } from '../../src/lib/concurrency.ts';

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
