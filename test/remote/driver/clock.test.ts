// The system's clock is set while the client waits: nothing is asked too late, nor given up early.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { fault, output } from '../../support/upstreams/hostile-v2.ts';
import { collect, words } from '../../support/app/jobs.ts';
import { CALLER, asked, openRemote } from './open.ts';

const HOUR_MS = 60 * 60_000;
const JUMPS = [
  ['an hour back', -HOUR_MS],
  ['a day forward', 24 * HOUR_MS],
] as const;

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() }));
afterEach(() => void vi.useRealTimers());

function jump(ms: number): void {
  vi.setSystemTime(Date.now() + ms);
}

test.each(JUMPS)('%s: a job that was looked at is looked at again', async (_, ms) => {
  const { upstream, remote } = await openRemote();
  const { id } = upstream.addJob({ status: 'running' });
  expect(await remote.get(CALLER, id)).toMatchObject({ value: { status: 'running' } });
  jump(ms);
  upstream.change(id, { status: 'succeeded', outputs: [output()] });
  await sleep(100);
  expect(await remote.get(CALLER, id)).toMatchObject({ value: { status: 'succeeded' } });
});

test.each(JUMPS)('%s: a service that asked for a pause is called after it', async (_, ms) => {
  const { upstream, remote } = await openRemote();
  const { id } = upstream.addJob({ status: 'running' });
  upstream.once('get', fault.refuse(429, 'rate_limited', { 'Retry-After': '1' }));
  const reading = remote.get(CALLER, id);
  await asked(upstream, 'get', 1);
  jump(ms);
  expect(await reading).toMatchObject({ ok: true });
  expect(await remote.get(CALLER, id)).toMatchObject({ ok: true });
});

test.each(JUMPS)('%s: a polled job is followed to its end', async (_, ms) => {
  const { upstream, remote } = await openRemote();
  upstream.always('events', fault.refuse(501, 'not_implemented'));
  const { id } = upstream.addJob();
  const listening = collect(remote, id, CALLER);
  await asked(upstream, 'get', 2);
  jump(ms);
  upstream.change(id, { status: 'running' });
  await asked(upstream, 'get', upstream.requests('get').length + 2);
  upstream.change(id, { status: 'succeeded', outputs: [output()] });
  expect(words(await listening)).toEqual([
    'status queued',
    'status running',
    'output 9',
    'status succeeded',
  ]);
});

test.each(JUMPS)('%s: a submission whose answer was lost is found by its label', async (_, ms) => {
  const { upstream, remote } = await openRemote({ format: { labels: 'map' } });
  upstream.once('submit', async (exchange) => {
    jump(ms);
    await fault.claimAndDie({ withJob: true })(exchange);
  });
  const workflow = { '1': { class_type: 'EmptyImage', inputs: {} } };
  const submission = { workflow, metadata: { 'holdover-key': 'one' } };
  const sentAtMs = Date.now();
  expect((await remote.submit(CALLER, { ...submission, extraData: {} })).ok).toBe(false);
  const found = await remote.search(CALLER, { ...submission, sentAtMs });
  const [id] = upstream.jobs.keys();
  expect(found).toMatchObject({ value: { kind: 'found', job: { id } } });
});
