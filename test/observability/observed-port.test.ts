import { expect, test } from 'vitest';
import { CallCauses } from '../../src/observability/call-causes.ts';
import { listV2Calls } from '../../src/observability/log.ts';
import {
  type CallHandlers,
  type PortSubscriber,
  observePort,
} from '../../src/observability/observed-port.ts';
import { type JobApi, type JobEvent, ok } from '../../src/protocol/job-api.ts';
import { JOB_ID, fakeJobs } from '../support/upstreams/fake-jobs.ts';

const ANN = { user: 'ann' };
const causes = new CallCauses(() => undefined);

function observe(jobs: JobApi, ...subscribers: readonly PortSubscriber[]): JobApi {
  return observePort(jobs, { subscribers, causes });
}

function streamOf(events: AsyncIterable<JobEvent>): JobApi {
  return { events: async () => ok(events) } as unknown as JobApi;
}

const signal = new AbortController().signal;

test('a subscriber gets the beginning of each call, and how it ends', async () => {
  const records: string[] = [];
  const fake = fakeJobs();
  const jobs = observe(fake, ({ operation, caller, jobId }) => {
    const note = (what: string) => () => void records.push(what);
    records.push(`${operation} of ${caller?.user}, job ${jobId}`);
    return { onAnswer: ({ ok: isOk }) => note(`ok: ${isOk}`)(), onFailure: note('failed') };
  });
  await jobs.get(ANN, JOB_ID);
  await jobs.get(ANN, 'unknown');
  fake.answers.get = new Error('broken');
  await expect(jobs.get(ANN, JOB_ID)).rejects.toThrow('broken');
  await jobs.health();
  expect(records).toEqual([
    `GET /api/v2/jobs/{id} of ann, job ${JOB_ID}`,
    'ok: true',
    'GET /api/v2/jobs/{id} of ann, job unknown',
    'ok: false',
    `GET /api/v2/jobs/{id} of ann, job ${JOB_ID}`,
    'failed',
    'GET /api/v2/health of undefined, job undefined',
    'ok: true',
  ]);
});

test('the v2 calls of a request are listed in order until it is answered, and those of no other', async () => {
  const jobs = observe(fakeJobs(), listV2Calls);
  const [mine, theirs] = [{ user: 'ann' }, { user: 'ann' }];
  const request = {};
  causes.linkCaller(mine, request);
  const calls: string[] = [];
  causes.causeOf(request).v2Calls = calls;
  await jobs.get(mine, JOB_ID);
  await jobs.get(theirs, JOB_ID);
  await jobs.health();
  await jobs.cancel(mine, JOB_ID);
  causes.causeOf(request).v2Calls = undefined;
  await jobs.list(mine, {});
  expect(calls).toEqual(['GET /api/v2/jobs/{id}', 'POST /api/v2/jobs/{id}/cancel']);
});

test('a call and its job belong to the prompt that the request submits', async () => {
  const found: (string | undefined)[] = [];
  const jobs = observe(fakeJobs(), (call) => ({ onAnswer: () => void found.push(call.promptId) }));
  const submitter = { user: 'ann' };
  causes.causeOf(submitter).promptId = 'prompt-7';
  await jobs.submit(submitter, { workflow: {}, extraData: {} });
  await jobs.get({ user: 'ann' }, JOB_ID);
  await jobs.get({ user: 'bob' }, JOB_ID);
  expect(found).toEqual(['prompt-7', 'prompt-7', undefined]);
});

test('the end of an iteration ends the source at once, also while it waits', async () => {
  let isEnded = false;
  const ends: string[] = [];
  const waiting = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise<never>(() => {}),
      async return() {
        isEnded = true;
        return { done: true as const, value: undefined };
      },
    }),
  };
  const handlers: CallHandlers = { onStreamEnd: () => void ends.push('end') };
  const stream = await observe(streamOf(waiting), () => handlers).events(ANN, JOB_ID, signal);
  const iterator = stream.ok ? stream.value[Symbol.asyncIterator]() : undefined;
  void iterator?.next();
  await iterator?.return?.();
  expect([isEnded, ends]).toEqual([true, ['end']]);
});
