import { expect, test } from 'vitest';
import { silentLogger } from '../../src/observability/log.ts';
import { PeriodicSweep } from '../../src/engine/periodic-sweep.ts';
import { createFakeClock } from '../support/fake-clock.ts';

function open(sweep: () => Promise<void>, first = async () => {}, log = silentLogger()) {
  const clock = createFakeClock();
  const periodic = new PeriodicSweep({ first, sweep, everyMs: 1000, clock, log });
  return { clock, periodic };
}

test('the sweep runs after the first step, then an interval after each run', async () => {
  const runs: string[] = [];
  const pushed = (run: string) => async () => void runs.push(run);
  const { clock, periodic } = open(pushed('task'), pushed('first'));
  periodic.start();
  await clock.advance(999);
  expect(runs).toEqual(['first', 'task']);
  await clock.advance(1);
  expect(runs).toHaveLength(3);
  await periodic.close();
  await clock.advance(10_000);
  expect(runs).toHaveLength(3);
  expect(clock.sleeping()).toBe(0);
});

test('a run that fails is logged, and the next one is tried', async () => {
  const logged: unknown[] = [];
  const log = { ...silentLogger(), error: (...line: unknown[]) => void logged.push(line) };
  let runs = 0;
  const fail = async () => {
    runs++;
    throw new Error('no disk');
  };
  const { clock, periodic } = open(fail, undefined, log as never);
  periodic.start();
  await clock.advance(1000);
  expect(runs).toBe(2);
  expect(logged[0]).toEqual([
    { event: 'retention.sweep_failed', err: new Error('no disk') },
    'a sweep of jobs and assets failed',
  ]);
  await periodic.close();
});

test('closing waits for a run under way', async () => {
  let isDone = false;
  const { clock, periodic } = open(async () => {
    await clock.sleep(100);
    isDone = true;
  });
  periodic.start();
  await clock.advance(0);
  const closed = periodic.close();
  await clock.advance(100);
  await closed;
  expect(isDone).toBe(true);
});
