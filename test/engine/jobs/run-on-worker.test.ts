// A job on a worker thread that does what the test says, on a clock that the test advances.
import { expect, test } from 'vitest';
import type { Blobs } from '../../../src/blobs/blobs.ts';
import { DEFAULT_LIMITS } from '../../../src/engine/job-engine.ts';
import { createLazyJson } from '../../../src/lib/lazy-json.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { type LiveJob, unstarted } from '../../../src/engine/jobs/live-job.ts';
import { type RunnerOptions, runOnWorker } from '../../../src/engine/jobs/run-on-worker.ts';
import type {
  FromWorker,
  RunRequest,
  StoredOutput,
} from '../../../src/engine/jobs/worker-protocol.ts';
import type { NodeDef } from '../../../src/nodes/node.ts';
import type { Graph } from '../../../src/protocol/v2.ts';
import { graph } from '../../support/app/jobs.ts';
import type { ThreadEnd, WorkerThread } from '../../../src/engine/jobs/worker-thread.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

type Message = Exclude<FromWorker, { type: 'end' }>;

const LOST: ThreadEnd = { kind: 'lost', reason: 'terminated', outOfMemory: false };

/** A worker thread without a thread: the test sends its messages and ends its run. */
function fakeThread() {
  let finish: (end: ThreadEnd) => void = () => {};
  const state = {
    request: undefined as RunRequest | undefined,
    send: (_message: Message): void => {},
    replies: [] as unknown[],
    terminations: 0,
    end: (end: ThreadEnd) => finish(end),
    isStopped: () => Atomics.load(state.request?.stopFlag ?? new Int32Array(1), 0) === 1,
  };
  const thread: Pick<WorkerThread, keyof WorkerThread> = {
    run(request, onMessage) {
      state.request = request;
      state.send = onMessage;
      return new Promise((resolve) => (finish = resolve));
    },
    reply: (message) => void state.replies.push(message),
    forget() {},
    async terminate() {
      state.terminations++;
      finish(LOST);
    },
  };
  return { thread: thread as WorkerThread, state };
}

/** The files of a job: none exists. */
const fileLookup = {
  nodes: new Map([['Load', { fileInputs: ['file'] } as unknown as NodeDef]]),
  byId: async () => undefined,
  byPath: async () => undefined,
};

function start(
  options: Partial<RunnerOptions> & { readonly sync?: Blobs['sync'] } = {},
  workflow: Graph = {},
) {
  const { sync = async () => {} } = options;
  const clock = createFakeClock();
  const { thread, state } = fakeThread();
  const job: LiveJob = {
    ...unstarted(),
    id: 'j',
    user: 'anna',
    order: 0,
    createdAtMs: 0,
    expiresAtMs: 0,
    workflow: createLazyJson(workflow),
    targets: Object.keys(workflow),
    provenance: null,
    metadata: null,
    reads: new Set(),
  };
  const end = runOnWorker(job, thread, {
    limits: { ...DEFAULT_LIMITS, jobTimeMs: 60_000, stopGraceMs: 10_000 },
    clock,
    log: silentLogger(),
    jobFiles: { blobs: { sync }, fileLookupOf: () => fileLookup },
    answer: async () => null as never,
    ...options,
  });
  return { clock, job, end, state };
}

test('a job that succeeds leaves no timer behind', async () => {
  const { clock, end, state } = start();
  await clock.advance(59_999);
  state.end({ kind: 'succeeded' });
  expect(await end).toEqual({ status: 'succeeded' });
  await clock.advance(0);
  expect(clock.sleeping()).toBe(0);
});

test('a canceled job that stops in time keeps its thread', async () => {
  const { clock, end, job, state } = start();
  await clock.advance(0);
  job.stop.abort('canceled');
  expect(state.isStopped()).toBe(true);
  state.end({ kind: 'stopped' });
  expect(await end).toEqual({ status: 'canceled' });
  await clock.advance(60_000);
  expect(state.terminations).toBe(0);
});

test('a shutdown ends the thread sooner', async () => {
  const { clock, end, job, state } = start();
  await clock.advance(0);
  job.stop.abort('shutdown');
  await clock.advance(999);
  expect(state.terminations).toBe(0);
  await clock.advance(1);
  expect(state.terminations).toBe(1);
  expect((await end).status).toBe('interrupted');
});

test('a lost thread fails the job, out of memory by its own code', async () => {
  const { clock, end, state } = start();
  await clock.advance(0);
  state.end({ kind: 'lost', reason: 'heap', outOfMemory: true });
  expect(await end).toMatchObject({ status: 'failed', error: { code: 'out_of_memory' } });
});

test('requests are answered in the order of the messages, and a failure is a reply', async () => {
  const answers: string[] = [];
  const { clock, end, state } = start({
    answer: async (_job, { kind }) => {
      answers.push(kind);
      if (kind === 'read') throw Object.assign(new Error('/secret/path'), { code: 'EIO' });
      return null as never;
    },
  });
  await clock.advance(0);
  state.send({ type: 'request', id: 1, kind: 'begin', args: [] });
  state.send({
    type: 'request',
    id: 2,
    kind: 'read',
    args: ['a hash'],
  });
  await clock.advance(0);
  expect(answers).toEqual(['begin', 'read']);
  expect(state.replies).toEqual([
    { type: 'reply', id: 1, value: null },
    { type: 'reply', id: 2, failure: 'the engine could not do this: EIO', code: 'EIO' },
  ]);
  state.end({ kind: 'succeeded' });
  await end;
});

test('a job whose files are gone does not reach the worker', async () => {
  const workflow = graph({ 1: ['Load', { file: 'gone.png' }] });
  const { end, state } = start({}, workflow);
  expect(await end).toMatchObject({ status: 'failed', error: { code: 'missing_asset' } });
  expect(state.request).toBeUndefined();
});

test.each([
  ['are synced', async () => {}],
  ['that cannot be synced do not fail it', () => Promise.reject(new Error('EIO'))],
])('the files of a job that has ended %s', async (_, end) => {
  const synced: string[] = [];
  const sync = (hashes: readonly string[]): Promise<void> => {
    synced.push(...hashes);
    return end();
  };
  const { clock, end: ended, job, state } = start({ sync });
  await clock.advance(0);
  job.outputs.push({ id: 'o', hash: 'blake3:1' } as StoredOutput);
  expect(synced).toEqual([]);
  state.end({ kind: 'succeeded' });
  expect(await ended).toEqual({ status: 'succeeded' });
  await expect(job.filesOnDisk?.()).resolves.toBeUndefined();
  expect(synced).toEqual(['blake3:1']);
});

const FAILED: ThreadEnd = { kind: 'failed', errorJson: '{}' };

test.each([
  ['rejects when Redis was away, so that it is tried again', 'Command timed out', 'Command timed'],
  ['has failed for any other reason', 'no such column', undefined],
])('a job whose file could not be recorded %s', async (_, reason, rejection) => {
  const { state, end } = start({
    answer: async () => {
      throw new Error('the ledger could not be written', { cause: new Error(reason) });
    },
  });
  const settled = end.then(
    ({ status }) => status,
    (error: Error) => String(error.cause),
  );
  await expect.poll(() => state.request).toBeDefined();
  state.send({ type: 'request', id: 1, kind: 'save', args: [] } as unknown as Message);
  await expect.poll(() => state.replies.length).toBe(1);
  state.end(FAILED);
  expect(await settled).toContain(rejection ?? 'failed');
});
