import { expect, test } from 'vitest';
import type { JobRun } from '../../../src/engine/jobs/job-run.ts';
import { EventPublisher } from '../../../src/engine/bullmq/event-publisher.ts';
import type { PublishItem } from '../../../src/engine/bullmq/run-state.ts';
import type { NodeUi } from '../../../src/protocol/v2.ts';

function open() {
  const ui: { [id: string]: NodeUi } = {};
  const job = { status: 'running', progress: null, outputs: [], ui, cachedNodes: [] };
  const told: PublishItem[] = [];
  const written = { bytes: 0 };
  const run = {
    job,
    applyResult() {},
    onPublishError(error: unknown) {
      throw error;
    },
  };
  const publisher = new EventPublisher(
    {
      async append(_held, items) {
        told.push(...items);
        for (const item of items) {
          if (item.kind === 'e') written.bytes += Object.values(item.fields).join('').length;
        }
        return 'ok';
      },
    },
    () => run as unknown as JobRun,
  );
  const finish = async (id: string): Promise<void> => {
    ui[id] = { text: [`text ${id}`] };
    const data = { node_id: id, phase: 'finished', ui: ui[id] } as const;
    publisher.emit({ event: 'x_node', data });
    // Each event goes out by itself: the worst case.
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  return { told, written, job, publisher, finish };
}

test('a large job writes each result once, not all results for each node', async () => {
  const { told, written, job, finish, publisher } = open();
  for (let i = 1; i <= 4000; i++) await finish(String(i));
  await publisher.drain();
  expect(told).toHaveLength(4000);
  expect(written.bytes).toBeLessThan(JSON.stringify(job.ui).length);
});
