import { expect, test } from 'vitest';
import type { LiveJob } from '../../../src/upstreams/jobs/live-job.ts';
import { EventPublisher } from '../../../src/upstreams/distributed/event-publisher.ts';
import type { PublishItem } from '../../../src/upstreams/distributed-state/run-state.ts';
import type { NodeUi } from '../../../src/protocol/v2.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

function open() {
  const clock = createFakeClock();
  const ui: { [id: string]: NodeUi } = {};
  const job = { status: 'running', progress: null, outputs: [], ui, cachedNodes: [] };
  const told: PublishItem[] = [];
  const written: string[] = [];
  const publisher = new EventPublisher({
    fencedJob: { id: 'j', fence: 1 },
    job: () => job as unknown as LiveJob,
    clock,
    onResult() {},
    onError(error) {
      throw error;
    },
    runState: {
      async append(_held, items, fields) {
        told.push(...items);
        if (fields['ui'] !== undefined) written.push(fields['ui']);
        return 'ok';
      },
    },
  });
  const finish = async (id: string): Promise<void> => {
    ui[id] = { text: [`text ${id}`] };
    const data = { node_id: id, phase: 'finished', ui: ui[id] } as const;
    publisher.feed.emit({ event: 'x_node', data });
    // Each event goes out by itself: the worst case.
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  return { clock, told, written, publisher, finish };
}

test('what a small job shows is on record at every change', async () => {
  const { written, finish, publisher } = open();
  for (let i = 1; i <= 50; i++) await finish(String(i));
  await publisher.drain();
  expect(written).toHaveLength(50);
});

test('what a large job shows is written as often as it grows, not whole for each node', async () => {
  const { told, written, finish, publisher } = open();
  for (let i = 1; i <= 4000; i++) await finish(String(i));
  await publisher.drain();
  expect(told).toHaveLength(4000);
  const bytes = written.reduce((sum, text) => sum + text.length, 0);
  expect(bytes).toBeLessThan(10 * (written.at(-1)?.length ?? 0));
});

test('the last of it is written a second later, without another event', async () => {
  const { clock, written, finish } = open();
  for (let i = 1; i <= 500; i++) await finish(String(i));
  expect(Object.keys(JSON.parse(written.at(-1) ?? '{}')).length).toBeLessThan(500);
  await clock.advance(1000);
  expect(Object.keys(JSON.parse(written.at(-1) ?? '{}'))).toHaveLength(500);
});
