// How a run of a job ends when other processes may have the job: without Redis, on a fake clock.
import { expect, test } from 'vitest';
import { StopRequest } from '../../../src/upstreams/jobs/stop-request.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { JobEnds, workerLost } from '../../../src/upstreams/distributed/job-runs.ts';
import type { QueueStop } from '../../../src/upstreams/jobs/job-queue.ts';
import { JobRun } from '../../../src/upstreams/distributed/job-run.ts';
import type { WriteResult } from '../../../src/upstreams/distributed-state/run-state.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const ROW = {
  id: 'j',
  user: 'anna',
  status: 'queued',
  order: 3,
  createdAtMs: 0,
  startedAtMs: null,
  completedAtMs: null,
  expiresAtMs: 0,
  workflowJson: '{}',
  provenanceJson: null,
  metadataJson: null,
  outputsJson: '[]',
  errorJson: null,
  extrasJson: '{"targets":[],"attempts":0,"reads":[]}',
};

/** The writes of a run, in their order, and what Redis answers to each. */
function open(answers: { readonly [act: string]: readonly (WriteResult | Error)[] } = {}) {
  const clock = createFakeClock();
  const acts: string[] = [];
  const left = new Map(Object.entries(answers).map(([act, list]) => [act, [...list]]));
  const act = async (name: string, more = ''): Promise<WriteResult> => {
    acts.push(more === '' ? name : `${name} ${more}`);
    const answer = left.get(name)?.shift() ?? 'ok';
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const runState = {
    append: () => act('append'),
    end: (_job: object, { status }: { status: string }) => act('end', status),
    requeue: (_job: object, attemptsReturned: number) => act('requeue', String(attemptsReturned)),
    expire: () => act('expire'),
    stillAlive: () => act('stillAlive'),
  } as never;
  const ends = new JobEnds({
    ledger: {
      jobs: {
        update: async (_id: string, { status }: { status: string }) => void act('ledger', status),
      },
      assets: {
        ofJob: async () => [{ id: 'kept' }, { id: 'stray' }],
        get: async (id: string) => ({ id }),
      },
    } as never,
    runState,
    assets: { removeAsset: async ({ id }) => void acts.push(`remove ${id}`) },
    outputRetention: { extend: async () => void acts.push('extend') },
    retentionMs: 1000,
    clock,
  });
  const claim = { fence: 1, attempts: 0 };
  const stop = new StopRequest<QueueStop>();
  const jobRun = new JobRun({ row: ROW, claim, stop, runState, clock, log: silentLogger() });
  return { acts, clock, ends, jobRun, stop };
}

const output = (id: string) => ({ id, job_id: 'j' }) as never;

test('an end is decided in Redis, stored in the ledger, and strays are removed', async () => {
  const { acts, ends, jobRun } = open();
  jobRun.job.outputs.push(output('kept'));
  await ends.finish(jobRun.fencedJob, jobRun.job, { status: 'succeeded' });
  expect(acts).toEqual(['end succeeded', 'ledger succeeded', 'expire', 'extend', 'remove stray']);
});

test('a cancel that came first decides the end', async () => {
  const { acts, ends, jobRun } = open({ end: ['cancel'] });
  await ends.finish(jobRun.fencedJob, jobRun.job, { status: 'succeeded' });
  expect(acts.slice(0, 3)).toEqual(['end succeeded', 'end canceled', 'ledger canceled']);
});

test('a stale end writes nothing', async () => {
  const { acts, ends, jobRun } = open({ end: ['stale'] });
  expect(await ends.finish(jobRun.fencedJob, jobRun.job, { status: 'succeeded' })).toBe('stale');
  expect(acts).toEqual(['end succeeded']);
});

test('a job is requeued every second until Redis takes it', async () => {
  const { acts, clock, ends, jobRun } = open({ requeue: [new Error('OOM'), new Error('OOM')] });
  const requeued = ends.requeue(jobRun);
  await clock.advance(1999);
  expect(acts).toEqual(['requeue 1', 'requeue 1']);
  await clock.advance(1);
  await requeued;
  expect(acts).toHaveLength(3);
});

test('a job whose lease is lost is not requeued any more', async () => {
  const { acts, clock, ends, jobRun } = open({ requeue: [new Error('OOM')] });
  const requeued = ends.requeue(jobRun);
  await clock.advance(500);
  jobRun.onLeaseLost();
  await clock.advance(500);
  await requeued;
  expect(acts).toEqual(['requeue 1']);
});

test('a process that closes leaves a job it cannot requeue to others', async () => {
  const { ends, jobRun, stop } = open({ requeue: [new Error('OOM')] });
  stop.request('shutdown');
  await expect(ends.requeue(jobRun)).rejects.toThrow('OOM');
});

test('events that could not be published use up the attempt', async () => {
  const { acts, ends, jobRun } = open({ append: [new Error('OOM')] });
  jobRun.job.feed.emit({ event: 'progress', data: {} as never });
  await jobRun.drain();
  expect([jobRun.isUnpublished, jobRun.job.stop.reason]).toEqual([true, 'shutdown']);
  await ends.requeue(jobRun);
  expect(acts.at(-1)).toBe('requeue 0');
});

test('a lost run removes what it made itself, and nothing that it took over', async () => {
  const { acts, ends, jobRun } = open();
  jobRun.job.outputs.push(output('mine'), { id: 'reused', job_id: 'other' } as never);
  await ends.discardResults(jobRun);
  expect(acts).toEqual(['remove mine', 'stillAlive']);
  expect(jobRun.isLost).toBe(true);
});

test('a stale reply to an event loses the lease, a cancel stops the job', async () => {
  const stale = open({ append: ['stale'] }).jobRun;
  stale.job.feed.emit({ event: 'progress', data: {} as never });
  await stale.drain();
  expect(stale.isLost).toBe(true);
  const canceled = open({ append: ['cancel'] }).jobRun;
  canceled.job.feed.emit({ event: 'progress', data: {} as never });
  await new Promise((resolve) => setImmediate(resolve));
  expect([canceled.isLost, canceled.job.status]).toEqual([false, 'canceling']);
});

test('a job whose workers crashed too often says how often', () => {
  expect(workerLost(3)).toMatchObject({
    status: 'failed',
    error: { code: 'worker_lost', message: 'the server died 3 times while running this job' },
  });
});
