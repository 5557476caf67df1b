// Memory for the jobs of a service is bounded, however many there are and whatever they contain.
import { expect, test } from 'vitest';
import { ok } from '../../../src/protocol/job-api.ts';
import type { JobEvent } from '../../../src/protocol/job-api.ts';
import type { Graph, Job } from '../../../src/protocol/v2.ts';
import type { Account } from '../../../src/remote/calls/accounts.ts';
import { Snapshots } from '../../../src/remote/events/snapshots.ts';
import { Subscribers } from '../../../src/remote/events/subscribers.ts';
import { JOB, OUTPUT } from '../../support/upstreams/fake-jobs.ts';

const ACCOUNT = { id: 'a' } as Account;
const MIB_TEXT = 'x'.repeat(2 ** 20);

function open(more: (id: string) => Partial<Job>, count = 40) {
  const client = { clock: { now: () => 0 }, limits: { snapshotMs: 1000 } };
  const snapshots = new Snapshots(client as never);
  const ids = Array.from({ length: count }, (_, i) => `job ${i}`);
  for (const id of ids) snapshots.store(ACCOUNT, { ...JOB, id, ...more(id) });
  return { snapshots, known: ids.filter((id) => snapshots.latest(ACCOUNT, id)) };
}

test('large jobs displace older ones', async () => {
  const { snapshots, known } = open(() => ({ outputs: [{ ...OUTPUT, name: MIB_TEXT }] }));
  expect(known.length).toBeGreaterThan(10);
  expect(known.length).toBeLessThan(20);
  expect(await snapshots.get(ACCOUNT, 'job 39')).toMatchObject(ok({ id: 'job 39' }));
});

test('long names of members displace older jobs, too', () => {
  const { known } = open(() => ({ metrics: { [MIB_TEXT]: 1 } }));
  expect(known.length).toBeGreaterThan(10);
  expect(known.length).toBeLessThan(20);
});

test('a job of very many small values is kept', () => {
  const metrics = Object.fromEntries(Array.from({ length: 300_000 }, (_, i) => [`m${i}`, i]));
  expect(open(() => ({ metrics }), 1).known).toEqual(['job 0']);
});

test('a workflow in the answer to a submission is not kept', () => {
  const workflow: Graph = { 1: { class_type: 'A', inputs: { text: MIB_TEXT } } };
  const { snapshots, known } = open(() => ({ x_workflow: workflow }));
  expect(known).toHaveLength(40);
  expect(snapshots.latest(ACCOUNT, 'job 0')).not.toHaveProperty('x_workflow');
});

test.each([
  ['/api/v2/jobs/j', '/api/v2/jobs/j/workflow'],
  ['/api/v2/jobs/j?region=eu', '/api/v2/jobs/j/workflow?region=eu'],
])('the workflow of a job is below its link %s', (self, target) => {
  const links = { targetOf: (link: string) => link };
  const client = { clock: { now: () => 0 }, limits: { snapshotMs: 1000 }, links };
  const snapshots = new Snapshots(client as never);
  snapshots.store(ACCOUNT, { ...JOB, id: 'j', urls: { ...JOB.urls, self } });
  expect(snapshots.workflowTarget(ACCOUNT, 'j')).toBe(target);
});

test('a stream without end names no more than 100,000 outputs', async () => {
  const subscribers = new Subscribers(() => {});
  const events = subscribers.subscribe(new AbortController().signal)[Symbol.asyncIterator]();
  subscribers.publish({ event: 'status', data: { status: 'running' } });
  await events.next();
  for (let i = 0; i < 100_100; i++) {
    subscribers.publish({ event: 'output', data: { ...OUTPUT, id: `o${i}` } });
    if (i < 100_000) await events.next();
  }
  subscribers.publish({ event: 'status', data: { status: 'succeeded' } });
  const { value } = (await events.next()) as { value: JobEvent };
  expect(value).toMatchObject({ event: 'status', data: { status: 'succeeded' } });
});
