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

/** A candidate that gives its seat up when told to. */
function candidate(seats: () => StreamSlots, name: Class) {
  const told: string[] = [];
  const self: StreamCandidate = {
    rank: () => CLASSES[name],
    wake: () => void told.push('wake'),
    preempt() {
      told.push('yield');
      seats().release(self);
    },
  };
  return { self, told };
}

test.each(
  NAMES.flatMap((seated, i) => NAMES.map((asking, j) => ({ seated, asking, gets: j < i }))),
)(
  'with one stream, a job that is $asking gets that of one that is $seated: $gets',
  ({ seated, asking, gets }) => {
    const seats: StreamSlots = createStreamSlots({ max: 1, clock: createFakeClock() });
    const [one, other] = [candidate(() => seats, seated), candidate(() => seats, asking)];
    expect(seats.acquire(one.self)).toBe(true);
    seats.acquire(other.self);
    expect(one.told).toEqual(gets ? ['yield'] : []);
    // Told that there is room now, it asks again.
    expect(other.told).toEqual(gets ? ['wake'] : []);
    expect(seats.acquire(other.self)).toBe(gets);
    expect(seats.openCount()).toBe(1);
  },
);
