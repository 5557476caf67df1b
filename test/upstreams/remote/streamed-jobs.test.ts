import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/protocol/json.ts';
import { fault, frame, output } from '../../support/upstreams/hostile-v2.ts';
import { collect, value } from '../../support/app/jobs.ts';
import { CALLER, type Opened, openRemote } from './open.ts';

const WORKFLOW = { 1: { class_type: 'Any', inputs: {} } };
const QUEUED = frame('status', { status: 'queued', queue_position: 0 });
const RUNNING = frame('status', { status: 'running' });
const BEGUN = frame('status', { status: 'running', x_cached_nodes: ['7'] });
const OUTPUT = frame('output', { ...output(), x_with_step: true });
const FINISHED = frame('x_node', { node_id: '1', phase: 'finished', ui: { text: ['a'] } });
const SUCCEEDED = frame('status', { status: 'succeeded' });
const ALL = [QUEUED, RUNNING, BEGUN, OUTPUT, FINISHED, SUCCEEDED];

/** Submits a job whose streams are these; the service has it as succeeded when they are opened. */
async function runStreams(
  { upstream, remote }: Opened,
  streams: readonly (readonly string[])[],
  answered: object = { x_workflow: WORKFLOW },
) {
  upstream.once('submit', ({ json, server }) => json(201, { ...server.addJob({}), ...answered }));
  const { id } = value(await remote.submit(CALLER, { workflow: WORKFLOW, extraData: {} }));
  for (const frames of streams) {
    upstream.once('events', (exchange) => {
      exchange.server.change(id, { status: 'succeeded', outputs: [output()] });
      return fault.sse(frames.join(''))(exchange);
    });
  }
  return { id, events: await collect(remote, id, CALLER) };
}

describe('the stream of a new job of another Holdover', () => {
  test('makes a read needless when it has carried all of the job', async () => {
    const opened = await openRemote();
    const { events } = await runStreams(opened, [ALL]);
    expect(opened.upstream.requests('get')).toEqual([]);
    const end = events.at(-1);
    expect(end).toMatchObject({ event: 'status', data: { status: 'succeeded' } });
    const job = end?.event === 'status' ? end.data.job : undefined;
    expect(job).toMatchObject({ x_ui: { 1: { text: ['a'] } }, x_cached_nodes: ['7'] });
    expect(job?.outputs).toEqual([expect.not.objectContaining({ x_with_step: true })]);
    expect(job).not.toHaveProperty('x_workflow');
  });

  test('comes before any read of a job that was submitted past this client', async () => {
    const { upstream, remote } = await openRemote();
    const job = upstream.addJob();
    remote.noteSubmitted(CALLER, { ...job, x_workflow: WORKFLOW } as unknown as JsonObject);
    upstream.once('events', (exchange) => {
      exchange.server.change(job.id, { status: 'succeeded', outputs: [output()] });
      return fault.sse(ALL.join(''))(exchange);
    });
    const words = (await collect(remote, job.id, CALLER)).map(({ event }) => event);
    expect(words.filter((event) => event === 'x_node')).toHaveLength(1);
    expect(upstream.requests('get')).toEqual([]);
  });

  test('gives no other caller a job without its times: that one is read', async () => {
    const opened = await openRemote({ limits: { snapshotMs: 10_000 } });
    const { id } = await runStreams(opened, [ALL]);
    expect(value(await opened.remote.get(CALLER, id)).status).toBe('succeeded');
    expect(opened.upstream.requests('get')).toHaveLength(1);
  });

  test.each<[string, readonly (readonly string[])[]]>([
    ['began while it ran', [ALL.slice(1)]],
    ['began with an output', [[OUTPUT, ...ALL]]],
    ['was queued again', [[QUEUED, BEGUN, OUTPUT, ...ALL]]],
    ['began to run twice', [[QUEUED, BEGUN, OUTPUT, BEGUN, OUTPUT, SUCCEEDED]]],
    ['was being cancelled', [[QUEUED, BEGUN, frame('status', { status: 'canceling' }), SUCCEEDED]]],
    ['never began to run', [[QUEUED, SUCCEEDED]]],
    ['failed', [[QUEUED, BEGUN, frame('status', { status: 'failed' })]]],
    ['broke off before', [[QUEUED, BEGUN, OUTPUT], ALL]],
  ])('is followed by a read when the job %s', async (_, streams) => {
    const opened = await openRemote();
    const { events } = await runStreams(opened, streams);
    expect(opened.upstream.requests('get').length).toBeGreaterThan(0);
    expect(events.at(-1)?.data).toEqual({ status: 'succeeded' });
  });

  test('is followed by a read when another service runs the job', async () => {
    const opened = await openRemote();
    await runStreams(opened, [ALL], {});
    expect(opened.upstream.requests('get').length).toBeGreaterThan(0);
  });
});
