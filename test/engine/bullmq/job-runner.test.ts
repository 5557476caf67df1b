// How a run of a job ends when other processes may have the job: without Redis, on a fake clock.
import { expect, test } from 'vitest';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { RedisRuns } from '../../../src/engine/bullmq/redis-runs.ts';
import type { JobRun, WriteResult } from '../../../src/engine/jobs/job-run.ts';
import { JobRunner } from '../../../src/engine/jobs/job-runner.ts';
import type { LiveJob } from '../../../src/engine/jobs/live-job.ts';
import type { JobEnd } from '../../../src/engine/jobs/job-lifecycle.ts';
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
    claim: async () => ({ kind: 'run', fence: 1, attempts: 0 }),
    append: () => act('append'),
    end: (_job: object, { status }: { status: string }) => act('end', status),
    requeue: (_job: object, attemptsReturned: number) => act('requeue', String(attemptsReturned)),
    expire: () => act('expire'),
    stillAlive: () => act('stillAlive'),
  } as never;
  const ledger = {
    jobs: {
      get: async () => ROW,
      update: async (_id: string, { status }: { status: string }) => void act('ledger', status),
    },
    assets: {
      ofJob: async () => (acts.length === 0 ? [] : [{ id: 'kept' }, { id: 'stray' }]),
      get: async (id: string) => ({ id }),
    },
  } as never;
  const log = silentLogger();
  const runs = new RedisRuns({ runState, clock, ledger, log });
  const stop = new AbortController();
  /** Runs the job; `nodes` stands for what its nodes do. */
  const run = async (nodes: (job: LiveJob) => Promise<JobEnd>) => {
    const runner = new JobRunner({
      ledger,
      runs,
      threads: { run: nodes },
      assets: { removeAsset: async ({ id }) => void acts.push(`remove ${id}`) },
      withLock: createKeyedMutex(),
      limits: { retentionMs: 1000 },
      clock,
      log,
    });
    return await runner.run('j', stop.signal);
  };
  const begin = async (): Promise<JobRun> => {
    const claim = await runs.claim('j', stop.signal);
    if (claim.kind !== 'run') throw new Error(claim.kind);
    return claim.run;
  };
  return { acts, clock, runs, run, begin, stop };
}

const output = (id: string) => ({ id, job_id: 'j' }) as never;

test('a job whose lease is lost is not requeued any more', async () => {
  const { acts, clock, runs, begin } = open({ requeue: [new Error('OOM')] });
  const run = await begin();
  const requeued = runs.requeue(run);
  await clock.advance(500);
  run.onLeaseLost();
  await clock.advance(500);
  await requeued;
  expect(acts).toEqual(['requeue 1']);
});

test('a process that closes leaves a job it cannot requeue to others', async () => {
  const { run, stop } = open({ requeue: [new Error('OOM')] });
  stop.abort('shutdown');
  await expect(run(async () => ({ status: 'interrupted' }))).rejects.toThrow('OOM');
});

test('a lost run removes the files it made, and no others', async () => {
  const { acts, run, stop } = open();
  const outcome = await run(async (job) => {
    job.outputs.push(output('mine'), { id: 'reused', job_id: 'other' } as never);
    stop.abort('lost');
    return { status: 'interrupted' };
  });
  expect(outcome).toBe('over');
  expect(acts).toEqual(['remove mine', 'stillAlive']);
});
