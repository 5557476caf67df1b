import { expect, test } from 'vitest';
import { createCallLog } from '../../src/observability/call-log.ts';
import { JOB_ID, fakeJobs } from '../support/upstreams/fake-jobs.ts';

test('v2 calls of a request are noted, in order, and those of no other', async () => {
  const trace = createCallLog();
  const jobs = trace.wrap(fakeJobs());
  const [mine, theirs] = [{ user: 'anna' }, { user: 'anna' }];
  const calls: string[] = [];
  trace.begin(mine, calls);
  await jobs.get(mine, JOB_ID);
  await jobs.get(theirs, JOB_ID);
  await jobs.health();
  await jobs.cancel(mine, JOB_ID);
  trace.end(mine);
  await jobs.list(mine, {});
  expect(calls).toEqual(['GET /api/v2/jobs/{id}', 'POST /api/v2/jobs/{id}/cancel']);
});

test('the outcome of each call is given to the counter', async () => {
  const told: string[] = [];
  const fake = fakeJobs();
  const jobs = createCallLog().wrap(fake, ({ operation, outcome }) => {
    told.push(`${operation} ${outcome}`);
  });
  await jobs.get({ user: 'anna' }, JOB_ID);
  await jobs.get({ user: 'anna' }, 'unknown');
  fake.answers.get = new Error('broken');
  await expect(jobs.get({ user: 'anna' }, JOB_ID)).rejects.toThrow('broken');
  expect(told).toEqual([
    'GET /api/v2/jobs/{id} ok',
    'GET /api/v2/jobs/{id} 4xx',
    'GET /api/v2/jobs/{id} broken',
  ]);
});
