import { expect, onTestFinished, test } from 'vitest';
import type { FromWorker } from '../../../src/engine/jobs/worker-protocol.ts';
import { WorkerThread } from '../../../src/engine/jobs/worker-thread.ts';

test('a job that comes while its thread is terminated runs on a new one', async () => {
  const thread = new WorkerThread({
    nodesModule: new URL('../memory/tiny-nodes.mjs', import.meta.url).href,
    cacheBytes: 0,
    spoolDir: '',
  });
  onTestFinished(() => thread.terminate());
  const request = {
    type: 'run',
    user: 'anna',
    workflowJson: JSON.stringify({ 1: { class_type: 'Show', inputs: { value: 'fine' } } }),
    targets: ['1'],
    files: new Map(),
    provenanceJson: null,
    memoryLimitBytes: 2 ** 20,
    stopFlag: new Int32Array(new SharedArrayBuffer(4)),
  } as const;
  const answer = (message: FromWorker): void => {
    if (message.type === 'request') thread.reply({ type: 'reply', id: message.id, value: null });
  };
  expect(await thread.run(request, answer)).toEqual({ kind: 'succeeded' });
  void thread.terminate();
  expect(await thread.run(request, answer)).toEqual({ kind: 'succeeded' });
});
