import { expect, test } from 'vitest';
import type { JobRow } from '../../../src/ledger/ledger.ts';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { createLazyJson } from '../../../src/lib/lazy-json.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { createJobLifecycle, toEndedJob } from '../../../src/upstreams/jobs/job-lifecycle.ts';
import { type LiveJob, newJob } from '../../../src/upstreams/jobs/live-job.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

function open() {
  const clock = createFakeClock(5_000);
  const job = newJob({
    id: 'j',
    user: 'anna',
    order: 0,
    createdAtMs: 0,
    expiresAtMs: 0,
    workflow: createLazyJson({}),
    targets: [],
    provenance: null,
    metadata: null,
    reads: new Set(),
  });
  const live = new Map<string, LiveJob>([[job.id, job]]);
  const patches: Partial<JobRow>[] = [];
  const faults: Error[] = [];
  const lifecycle = createJobLifecycle({
    ledger: {
      jobs: {
        async update(_id: string, patch: Partial<JobRow>) {
          const fault = faults.shift();
          if (fault) throw fault;
          patches.push(patch);
        },
      },
    } as never,
    withLock: createKeyedMutex(),
    live,
    retentionMs: 1000,
    clock,
    log: silentLogger(),
  });
  return { clock, job, live, patches, faults, lifecycle };
}

test('the end of a job is written again every second until the ledger takes it', async () => {
  const { clock, job, live, patches, faults, lifecycle } = open();
  faults.push(new Error('disk full'), new Error('disk full'));
  const finished = lifecycle.finish(job, { status: 'succeeded' });
  await clock.advance(1999);
  expect([patches.length, lifecycle.isEnding(job), job.status]).toEqual([0, true, 'queued']);
  await clock.advance(1);
  await finished;
  expect(patches).toMatchObject([
    { status: 'succeeded', completedAtMs: 5_000, expiresAtMs: 6_000 },
  ]);
  expect([live.size, lifecycle.isEnding(job), job.status]).toEqual([0, false, 'succeeded']);
});

test('subscribers hear of the end only when it is durable', async () => {
  const { clock, job, faults, lifecycle } = open();
  faults.push(new Error('disk full'));
  const seen: string[] = [];
  const reading = (async () => {
    for await (const { event, data } of job.feed.subscribe(new AbortController().signal)) {
      if (event === 'status') seen.push(data.status);
    }
  })();
  void lifecycle.finish(job, { status: 'canceled' });
  await clock.advance(999);
  expect(seen).toEqual(['queued']);
  await clock.advance(1);
  await reading;
  expect(seen).toEqual(['queued', 'canceled']);
});

test('an orderly stop gives the attempt back, and the results of the run go', async () => {
  const { job, patches, lifecycle } = open();
  await lifecycle.countAttempt(job);
  expect(job.attempts).toBe(1);
  Object.assign(job, { status: 'running', startedAtMs: 5_000 });
  await lifecycle.suspend(job);
  expect(job).toMatchObject({ status: 'queued', attempts: 0, startedAtMs: null, outputs: [] });
  expect(patches.at(-1)).toMatchObject({ status: 'queued', startedAtMs: null });
});

test('a job that is over is not written any more', async () => {
  const { job, live, patches, lifecycle } = open();
  live.clear();
  await lifecycle.save(job);
  expect(patches).toEqual([]);
});

test('a cancel during the last node still counts', () => {
  const { job } = open();
  job.stop.request('canceled');
  const ended = toEndedJob(job, { end: { status: 'succeeded' }, atMs: 7, retentionMs: 3 });
  expect(ended).toMatchObject({ status: 'canceled', completedAtMs: 7, expiresAtMs: 10 });
});
