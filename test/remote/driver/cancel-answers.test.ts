import { expect, test } from 'vitest';
import { type Hook, fault, frame, output } from '../../support/upstreams/hostile-v2.ts';
import { collect, value, words } from '../../support/app/jobs.ts';
import { CALLER, asked, openRemote } from './open.ts';

// An end that one call is told is the end for all who listen, though no stream says it.

/** A stream that says how things stand and then nothing; nothing else asks for the job by itself. */
async function openSilent(status: string, snapshotMs = 10_000) {
  const streamCheckMs = { opening: 60_000, first: 60_000, last: 60_000 };
  const limits = { streamIdleTimeoutMs: 60_000, streamCheckMs, snapshotMs };
  const opened = await openRemote({ limits });
  opened.upstream.always('events', fault.sse(frame('status', { status }), 'hold'));
  const { id } = opened.upstream.addJob({ status });
  const listening = collect(opened.remote, id, CALLER);
  await asked(opened.upstream, 'events', 1);
  const reads = opened.upstream.requests('get').length;
  const newReads = () => opened.upstream.requests('get').length - reads;
  return { ...opened, id, listening, newReads };
}

const becoming =
  (fields: { readonly status: string }): Hook =>
  async (exchange) => {
    exchange.server.change(exchange.id, fields);
    exchange.json(200, exchange.server.jobs.get(exchange.id));
  };

test('a cancel answered with expired: one more question, then the end', async () => {
  const { upstream, remote, id, listening, newReads } = await openSilent('queued');
  upstream.once('cancel', becoming({ status: 'expired' }));
  expect(value(await remote.cancel(CALLER, id)).status).toBe('expired');
  expect(words(await listening)).toEqual(['status queued', 'status expired']);
  expect(newReads()).toBe(1);
});

test('a cancel answered with expired of a job that has just succeeded: its outputs are reported', async () => {
  const { upstream, remote, id, listening } = await openSilent('running');
  upstream.once('cancel', ({ json, server }) => {
    json(200, { ...server.jobs.get(id), status: 'expired' });
    server.change(id, { status: 'succeeded', outputs: [output()] });
  });
  expect(value(await remote.cancel(CALLER, id)).status).toBe('succeeded');
  expect(words(await listening)).toEqual(['status running', 'output 9', 'status succeeded']);
});

test.each([
  ['a question of another caller', (remote: Remote, id: string) => remote.get(CALLER, id)],
  ['a list', (remote: Remote) => remote.list(CALLER, {})],
])('an end that %s is told ends it for all', async (_, ask) => {
  const { upstream, remote, id, listening } = await openSilent('running', 40);
  Object.assign(upstream.jobs.get(id) ?? {}, { status: 'succeeded', outputs: [output()] });
  // An answer about the job that was read before is out of date by then.
  await new Promise((resolve) => setTimeout(resolve, 60));
  await ask(remote, id);
  expect(words(await listening)).toEqual(['status running', 'output 9', 'status succeeded']);
});

type Remote = Awaited<ReturnType<typeof openRemote>>['remote'];

test('an answer that arrives after the event that ended the job does not make it run again', async () => {
  const limits = { snapshotMs: 10_000, readTimeoutMs: 10_000, readBudgetMs: 10_000 };
  const { upstream, remote } = await openRemote({ limits });
  const { id } = upstream.addJob({ status: 'running' });
  const job = { ...upstream.jobs.get(id), status: 'canceled' };
  upstream.always('events', fault.sse(frame('status', job), 'hold'));
  let answer = (): void => {};
  upstream.once('cancel', async ({ json }) => {
    await new Promise<void>((resolve) => (answer = resolve));
    json(200, { ...upstream.jobs.get(id), status: 'canceling' });
  });
  const cancelling = remote.cancel(CALLER, id);
  await asked(upstream, 'cancel', 1);
  await collect(remote, id, CALLER);
  answer();
  await cancelling;
  expect(value(await remote.get(CALLER, id)).status).toBe('canceled');
});
