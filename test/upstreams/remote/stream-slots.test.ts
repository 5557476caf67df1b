import { expect, test } from 'vitest';
import {
  type StreamCandidate,
  RANK,
  type StreamSlots,
  createStreamSlots,
} from '../../../src/upstreams/remote-events/stream-slots.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const CLASSES = {
  'watched, running': 0,
  'watched, queued': RANK.queued,
  'unwatched, running': RANK.unwatched,
  'unwatched, queued': RANK.unwatched + RANK.queued,
} as const;
type Class = keyof typeof CLASSES;
const NAMES = Object.keys(CLASSES) as Class[];

/** A candidate that releases its slot when told to. */
function candidate(slots: () => StreamSlots, name: Class) {
  const told: string[] = [];
  const self: StreamCandidate = {
    rank: () => CLASSES[name],
    wake: () => void told.push('wake'),
    preempt() {
      told.push('yield');
      slots().release(self);
    },
  };
  return { self, told };
}

test.each(
  NAMES.flatMap((holder, i) => NAMES.map((asking, j) => ({ holder, asking, gets: j < i }))),
)(
  'with one stream, a job that is $asking gets that of one that is $holder: $gets',
  ({ holder, asking, gets }) => {
    const slots: StreamSlots = createStreamSlots({ max: 1, clock: createFakeClock() });
    const [one, other] = [candidate(() => slots, holder), candidate(() => slots, asking)];
    expect(slots.acquire(one.self)).toBe(true);
    slots.acquire(other.self);
    expect(one.told).toEqual(gets ? ['yield'] : []);
    // Told that there is room now, it asks again.
    expect(other.told).toEqual(gets ? ['wake'] : []);
    expect(slots.acquire(other.self)).toBe(gets);
    expect(slots.openCount()).toBe(1);
  },
);
