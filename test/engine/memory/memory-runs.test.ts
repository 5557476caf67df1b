import { expect, test } from 'vitest';
import type { JobRow } from '../../../src/ledger/ledger.ts';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { createLazyJson } from '../../../src/lib/lazy-json.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { MemoryRuns, createLiveJobs } from '../../../src/engine/memory/memory-runs.ts';
import { type FinalEnd, toEndedJob } from '../../../src/engine/jobs/job-lifecycle.ts';
import { type LiveJob, unstarted } from '../../../src/engine/jobs/live-job.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

function open() {
  const clock = createFakeClock(5_000);
  const job: LiveJob = {
    ...unstarted(),
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
  };
  const live = new Map<string, LiveJob>([[job.id, job]]);
  const patches: Partial<JobRow>[] = [];
  const faults: Error[] = [];
  const closing = new AbortController();
  const jobs = {
    async update(_id: string, patch: Partial<JobRow>) {
      const fault = faults.shift();
      if (fault) throw fault;
      patches.push(patch);
    },
  };
  const unfinished = { ledger: { jobs } as never, withLock: createKeyedMutex(), live };
  const runs = new MemoryRuns({
    ...unfinished,
    closing: closing.signal,
    clock,
    log: silentLogger(),
  });
  const end = (how: FinalEnd) =>
    runs.end(job, toEndedJob(job, { end: how, atMs: clock.now(), retentionMs: 1000 }));
  const claim = async () => {
    const claimed = await runs.claim('j', new AbortController().signal);
    if (claimed.kind !== 'run') throw new Error(claimed.kind);
    return claimed.run;
  };
  const liveJobs = createLiveJobs(unfinished);
  return { clock, job, live, patches, faults, runs, end, claim, closing, liveJobs };
}

test('the end of a job is written again every second until the ledger takes it', async () => {
  const { clock, job, live, patches, faults, end } = open();
  faults.push(new Error('disk full'), new Error('disk full'));
  const finished = end({ status: 'succeeded' });
  await clock.advance(1999);
  expect([patches.length, live.size, job.status]).toEqual([0, 1, 'queued']);
  await clock.advance(1);
  await finished;
  expect(patches).toMatchObject([
    { status: 'succeeded', completedAtMs: 5_000, expiresAtMs: 6_000 },
  ]);
  expect([live.size, job.status]).toEqual([0, 'succeeded']);
});

test('a job whose end cannot be stored while the process ends stays for the next one', async () => {
  const { clock, live, patches, faults, runs, end, closing } = open();
  faults.push(...Array.from({ length: 3 }, () => new Error('disk full')));
  const refused = expect(end({ status: 'succeeded' })).rejects.toThrow('disk full');
  await clock.advance(500);
  closing.abort();
  await refused;
  expect([patches, live.size, await runs.seize('j')]).toEqual([[], 1, undefined]);
});

test('subscribers hear of the end only when it is durable', async () => {
  const { clock, job, faults, end } = open();
  faults.push(new Error('disk full'));
  const seen: string[] = [];
  const reading = (async () => {
    for await (const { event, data } of job.feed.subscribe(new AbortController().signal)) {
      if (event === 'status') seen.push(data.status);
    }
  })();
  void end({ status: 'canceled' });
  await clock.advance(999);
  expect(seen).toEqual(['queued']);
  await clock.advance(1);
  await reading;
  expect(seen).toEqual(['queued', 'canceled']);
});

test('a job that is over is not written any more', async () => {
  const { job, live, patches, runs, liveJobs } = open();
  live.clear();
  await runs.begin(job);
  await liveJobs.recordCancel(job.id);
  expect(patches).toEqual([]);
});

test('a cancel during the last node still counts', () => {
  const { job } = open();
  job.stop.abort('canceled');
  const ended = toEndedJob(job, { end: { status: 'succeeded' }, atMs: 7, retentionMs: 3 });
  expect(ended).toMatchObject({ status: 'canceled', completedAtMs: 7, expiresAtMs: 10 });
});
