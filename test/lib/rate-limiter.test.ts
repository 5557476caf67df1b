import { expect, test } from 'vitest';
import { createTurnQueue } from '../../src/lib/rate-limiter.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** Turns of ten a second, and the times at which they began. */
function open() {
  const clock = createFakeClock(0);
  const turns = createTurnQueue({ perSecond: 10, clock });
  const begun: string[] = [];
  const request = (name: string, dueInMs = 0) =>
    turns.request(dueInMs, () => begun.push(`${name} ${clock.now()}`));
  return { clock, begun, request };
}

test('turns begin in the order in which they are due, evenly spaced', async () => {
  const { clock, begun, request } = open();
  request('later', 1_000);
  request('first');
  request('second');
  await clock.advance(150);
  expect(begun).toEqual(['first 0', 'second 100']);
  request('third');
  await clock.advance(1_000);
  expect(begun).toEqual(['first 0', 'second 100', 'third 200', 'later 300']);
});

test('after a quiet time a turn begins at once, and the next ones are spaced', async () => {
  const { clock, begun, request } = open();
  request('a');
  await clock.advance(60_000);
  for (const name of ['b', 'c']) request(name);
  await clock.advance(1_000);
  expect(begun).toEqual(['a 0', 'b 60000', 'c 60100']);
});

test('a call that yields does not wait for ever', async () => {
  const { clock, begun, request } = open();
  request('patient', 1_000);
  for (let i = 0; i < 30; i++) {
    for (const name of ['eager', 'too']) request(name);
    await clock.advance(100);
  }
  expect(begun.filter((each) => each.startsWith('patient'))).toEqual(['patient 2000']);
});

test('a turn that is taken back is not given, and delays no other', async () => {
  const { clock, begun, request } = open();
  request('a');
  request('b')();
  request('c');
  await clock.advance(1_000);
  expect(begun).toEqual(['a 0', 'c 100']);
});
