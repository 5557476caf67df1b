import { expect, test } from 'vitest';
import { createMessageBatch } from '../../../src/upstreams/execution/message-batch.ts';
import type { FromWorker } from '../../../src/upstreams/jobs/worker-protocol.ts';

function open() {
  const sent: string[][] = [];
  const state = { nowMs: 0 };
  const port = {
    postMessage: (messages: readonly FromWorker[]) =>
      void sent.push(messages.map(({ type }) => type)),
  };
  return { sent, state, batch: createMessageBatch(port as never, () => state.nowMs) };
}

const started = { type: 'started', nodeId: '1', classType: 'A' } as const;
const finished = { type: 'finished', nodeId: '1' } as const;

test('messages of one turn are sent together when it is over', async () => {
  const { sent, batch } = open();
  batch.post(started);
  await Promise.resolve();
  batch.post(finished);
  expect(sent).toEqual([]);
  await expect.poll(() => sent).toEqual([['started', 'finished']]);
});

test('a question and the end are sent at once, with all before them', () => {
  const { sent, batch } = open();
  batch.post(started);
  batch.post({ type: 'question', id: 1, kind: 'handled', ask: null });
  batch.post(finished);
  batch.post({ type: 'end', end: { kind: 'succeeded' } });
  expect(sent).toEqual([
    ['started', 'question'],
    ['finished', 'end'],
  ]);
});

test('during long work a message is sent when it has waited for some milliseconds', () => {
  const { sent, state, batch } = open();
  batch.post(started);
  state.nowMs = 4;
  batch.flushOverdue();
  expect(sent).toEqual([]);
  state.nowMs = 5;
  batch.flushOverdue();
  batch.flushOverdue();
  expect(sent).toEqual([['started']]);
});
