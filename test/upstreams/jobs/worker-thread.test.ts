import { expect, onTestFinished, test } from 'vitest';
import { createRunFlags } from '../../../src/upstreams/jobs/worker-protocol.ts';
import { createWorkerThread } from '../../../src/upstreams/jobs/worker-thread.ts';
import { tempDir } from '../embedded/open.ts';

test('a job that comes while its thread is terminated runs on a new one', async () => {
  const thread = createWorkerThread({
    nodesModule: new URL('../embedded/tiny-nodes.mjs', import.meta.url).href,
    spoolDir: await tempDir(),
    blobsDir: await tempDir(),
    cacheBytes: 0,
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
    hasBegun: true,
    flags: createRunFlags(),
  } as const;
  expect(await thread.run(request, () => {})).toEqual({ kind: 'succeeded' });
  void thread.terminate();
  expect(await thread.run(request, () => {})).toEqual({ kind: 'succeeded' });
});
