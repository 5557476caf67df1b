import { expect, test } from 'vitest';
import { createRateGate } from '../../../src/upstreams/remote-calls/accounts.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

/** The longest wait of a gate that is closed for a second, its jitter included. */
const LONGEST_MS = 1_200;

test('an open gate lets every caller through at once', async () => {
  const gate = createRateGate(createFakeClock());
  expect(gate.waitMs()).toBe(0);
  expect(await gate.waitUntilOpen({ budgetMs: 0 })).toBe(true);
});

test('a closed gate holds callers back until it opens, and the longest closure counts', async () => {
  const clock = createFakeClock();
  const gate = createRateGate(clock);
  gate.closeFor(1_000);
  gate.closeFor(500);
  expect(gate.waitMs()).toBe(1_000);
  let isThrough = false;
  void gate.waitUntilOpen({ budgetMs: 5_000 }).then(() => (isThrough = true));
  await clock.advance(999);
  expect(isThrough).toBe(false);
  await clock.advance(LONGEST_MS - 999);
  expect(isThrough).toBe(true);
});

test('a caller whose budget is shorter than the closure is refused without a wait', async () => {
  const clock = createFakeClock();
  const gate = createRateGate(clock);
  gate.closeFor(1_000);
  expect(await gate.waitUntilOpen({ budgetMs: 999 })).toBe(false);
  expect(clock.sleeping()).toBe(0);
});

test('a caller waits on when the gate is closed again meanwhile, as far as its budget goes', async () => {
  const clock = createFakeClock();
  const gate = createRateGate(clock);
  gate.closeFor(1_000);
  const patient = gate.waitUntilOpen({ budgetMs: 10_000 });
  const hasty = gate.waitUntilOpen({ budgetMs: 2_000 });
  await clock.advance(500);
  gate.closeFor(5_000);
  await clock.advance(LONGEST_MS - 500);
  expect(await hasty).toBe(false);
  await clock.advance(6_000);
  expect(await patient).toBe(true);
});

test('a caller that gives up leaves the wait', async () => {
  const clock = createFakeClock();
  const gate = createRateGate(clock);
  gate.closeFor(1_000);
  const stop = new AbortController();
  const waiting = gate.waitUntilOpen({ budgetMs: 5_000, signal: stop.signal });
  stop.abort();
  await expect(waiting).rejects.toThrow('aborted');
  expect(clock.sleeping()).toBe(0);
});
