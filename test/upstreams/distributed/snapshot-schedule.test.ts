import { expect, test } from 'vitest';
import { SnapshotSchedule } from '../../../src/upstreams/distributed/event-publisher.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

test('a status is due at once', () => {
  const schedule = new SnapshotSchedule(createFakeClock());
  expect([schedule.hasChanges(), schedule.isDue()]).toEqual([false, false]);
  schedule.add('status');
  expect([schedule.hasChanges(), schedule.isDue()]).toEqual([true, true]);
  expect([...schedule.takeDue()]).toEqual(['status']);
  expect(schedule.hasChanges()).toBe(false);
});

test('outputs of a small job are due at each, of a large one when a quarter has been added', () => {
  const schedule = new SnapshotSchedule(createFakeClock());
  let written = 0;
  for (let i = 1; i <= 1000; i++) {
    schedule.add('output');
    written += schedule.takeDue().size;
  }
  // 100, then 125, 157, 197 … of a thousand.
  expect(written).toBe(110);
  expect([schedule.hasChanges(), schedule.isDue()]).toEqual([true, false]);
});

test('what is left is due a second after it was written last', async () => {
  const clock = createFakeClock();
  const schedule = new SnapshotSchedule(clock);
  for (let i = 1; i <= 101; i++) {
    schedule.add('x_node');
    schedule.takeDue();
  }
  schedule.add('x_node');
  expect(schedule.isDue()).toBe(false);
  await clock.advance(1000);
  expect([...schedule.takeDue()]).toEqual(['x_node']);
});
