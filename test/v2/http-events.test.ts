import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type JobEvent, type Result, ok, refuse } from '../../src/protocol/job-api.ts';
import { type FakeJobs, JOB, JOB_ID, OUTPUT, STATUS } from '../support/upstreams/fake-jobs.ts';
import { type EventReader, type TestV2App, createTestV2App } from '../support/app/v2-routes.ts';

const GRAPH = { '1': { class_type: 'EmptyImage', inputs: { width: 8 } } };
const EVENTS = `/api/v2/jobs/${JOB_ID}/events`;

let app: TestV2App<FakeJobs>;
beforeEach(async () => void (app = await createTestV2App()));
afterEach(() => app.close());

function preview(step: number, bytes = Buffer.from([step])): JobEvent {
  return {
    event: 'preview',
    data: { node_id: '3', content_type: 'image/jpeg', bytes, x_with_step: true },
  };
}

function progress(step: number): JobEvent {
  return { event: 'progress', data: { value: 0, nodes_done: 0, nodes_total: 1, step } };
}

async function statusOf(reader: Promise<EventReader>): Promise<number> {
  return (await reader).status;
}

describe('GET events', () => {
  test('says at once that it is alive, in headers proxies understand', async () => {
    const reader = await app.listen(EVENTS);
    expect(reader.status).toBe(200);
    expect(reader.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'private, no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    expect(await reader.comment()).toBe('keep-alive');
    reader.leave();
  });

  test('sends every event in order and ends after the terminal status', async () => {
    const reader = await app.listen(EVENTS);
    app.jobs.emit(
      STATUS.queued,
      STATUS.running,
      progress(1),
      preview(1),
      { event: 'output', data: OUTPUT },
      STATUS.succeeded,
    );
    expect(await reader.rest()).toMatchObject([
      { event: 'status', data: { status: 'queued', queue_position: 0 } },
      { event: 'status', data: { status: 'running' } },
      { event: 'progress', data: { value: 0, nodes_done: 0, nodes_total: 1, step: 1 } },
      {
        event: 'preview',
        data: { node_id: '3', content_type: 'image/jpeg', x_with_step: true, data_base64: 'AQ==' },
      },
      { event: 'output', data: { ...OUTPUT, url: app.url + OUTPUT.url } },
      { event: 'status', data: { status: 'succeeded' } },
    ]);
    await app.jobs.listeners(0);
  });

  test.each([
    ['is told otherwise', ok({ ...JOB, status: 'failed' })],
    ['is gone', refuse(404, 'not_found', 'no')],
    ['cannot be read', new Error('the ledger is away')],
  ])('the terminal status comes alone where its job %s', async (_, answer) => {
    app.jobs.answers.get = answer as Result<never> | Error;
    const reader = await app.listen(EVENTS);
    app.jobs.emit(STATUS.succeeded);
    expect(await reader.rest()).toEqual([{ event: 'status', data: { status: 'succeeded' } }]);
  });

  // "A `status` event is pushed on every status transition [...]. Its job object omits `logs`."
  test('every status has the members of its job, one that is over by now as it was', async () => {
    const job = ok({ ...JOB, status: 'succeeded', started_at: 'then', outputs: [OUTPUT] });
    app.jobs.answers.get = job as Result<never>;
    const reader = await app.listen(EVENTS);
    app.jobs.emit(STATUS.queued, STATUS.running);
    app.jobs.hangUp();
    expect(await reader.rest()).toEqual([
      { event: 'status', data: { ...JOB, status: 'queued', queue_position: 0 } },
      {
        event: 'status',
        data: { ...JOB, status: 'running', started_at: 'then', queue_position: null },
      },
    ]);
  });

  test('sends what a node shows, line breaks and all', async () => {
    const reader = await app.listen(EVENTS);
    const shown: JobEvent[] = [
      {
        event: 'x_node',
        data: { node_id: '1', phase: 'finished', ui: { text: ['a\nb\r\n\u2028'] } },
      },
      { event: 'x_text', data: { node_id: '1', text: 'data: x\n\nevent: y' } },
    ];
    app.jobs.emit(...shown, STATUS.succeeded);
    expect((await reader.rest()).slice(0, 2)).toEqual(shown);
  });

  test('keeps an idle stream alive', async () => {
    await app.close();
    app = await createTestV2App({ streams: { keepAliveMs: 5 } });
    const reader = await app.listen(EVENTS);
    while (reader.comments.length < 3) await reader.comment();
    expect(reader.comments).toEqual(expect.arrayContaining(['keep-alive']));
    reader.leave();
  });

  test('ends when the source ends, so that the reader asks for the job', async () => {
    const reader = await app.listen(EVENTS);
    app.jobs.emit(STATUS.running);
    app.jobs.hangUp();
    expect(await reader.rest()).toMatchObject([STATUS.running]);
  });

  test('sends what it has when the source breaks, and ends', async () => {
    const reader = await app.listen(EVENTS);
    app.jobs.emit(STATUS.running);
    app.jobs.hangUp(new Error('lost'));
    await expect(reader.rest()).resolves.toMatchObject([STATUS.running]);
    await expect.poll(() => app.failures.length).toBe(1);
  });

  test('ends the subscription of a reader that goes away', async () => {
    const reader = await app.listen(EVENTS);
    await app.jobs.listeners(1);
    reader.leave();
    await app.jobs.listeners(0);
    expect(app.failures).toEqual([]);
  });
});

describe('the stream cap', () => {
  test('refuses a stream too many with 429 and Retry-After, per caller', async () => {
    const open = [await app.listen(EVENTS), await app.listen(EVENTS)];
    const refused = await app.ask(EVENTS);
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '5']);
    expect(refused.json()).toMatchObject({ error: { code: 'too_many_streams' } });
    const other = await app.listen(EVENTS, { user: 'ben' });
    expect(other.status).toBe(200);
    for (const reader of [...open, other]) reader.leave();
  });

  test('counts streams that are over no more', async () => {
    const first = await app.listen(EVENTS);
    const second = await app.listen(EVENTS);
    app.jobs.emit(STATUS.succeeded);
    await Promise.all([first.rest(), second.rest()]);
    await expect.poll(() => statusOf(app.listen(EVENTS))).toBe(200);
  });
});

describe('a job its reader has just submitted', () => {
  const submit = async (): Promise<unknown> =>
    app.ask('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow: GRAPH }) });

  test('is reported from its very start, to the first who listens', async () => {
    await submit();
    app.jobs.emit(STATUS.queued, STATUS.running, progress(1));
    const first = await app.listen(EVENTS);
    const second = await app.listen(EVENTS);
    await app.jobs.listeners(3);
    app.jobs.emit(progress(2), STATUS.succeeded);
    expect((await first.rest()).map(({ event }) => event)).toEqual([
      'status',
      'status',
      'progress',
      'progress',
      'status',
    ]);
    expect((await second.rest()).map(({ event }) => event)).toEqual(['progress', 'status']);
  });

  test('is not sent to another user from what was kept', async () => {
    await submit();
    app.jobs.emit(STATUS.running, progress(1));
    const other = await app.listen(EVENTS, { user: 'ben' });
    await app.jobs.listeners(3);
    app.jobs.emit(STATUS.succeeded);
    expect((await other.rest()).map(({ event }) => event)).toEqual(['status']);
  });
});

describe('a slow reader', () => {
  const COUNT = 400;

  test('misses previews but the latest, and nothing else', async () => {
    const reader = await app.listen(EVENTS);
    const picture = Buffer.alloc(256 * 1024, 7);
    for (let step = 1; step <= COUNT; step++) {
      app.jobs.emit(
        preview(step, Buffer.concat([Buffer.from([step % 256]), picture])),
        progress(step),
      );
    }
    app.jobs.emit(STATUS.succeeded);
    const events = await reader.rest();
    const steps = events
      .filter(({ event }) => event === 'progress')
      .map(({ data }) => (data as { step: number }).step);
    const pictures = events
      .filter(({ event }) => event === 'preview')
      .map(({ data }) => data as { data_base64: string });
    expect(steps).toEqual(Array.from({ length: COUNT }, (_, i) => i + 1));
    expect(pictures.length).toBeLessThan(COUNT / 2);
    expect(Buffer.from(pictures.at(-1)?.data_base64 ?? '', 'base64')[0]).toBe(COUNT % 256);
    expect(events.at(-1)).toEqual(STATUS.succeeded);
  });

  test('that takes nothing at all is cut off', async () => {
    await app.close();
    app = await createTestV2App({ streams: { keepAliveMs: 10 } });
    const reader = await app.listen(EVENTS);
    // More than the kernel's buffers on both sides hold.
    const node = {
      event: 'x_text',
      data: { node_id: '1', text: 'x'.repeat(1024 * 1024) },
    } as const;
    for (let i = 0; i < 64; i++) app.jobs.emit(node);
    await app.jobs.listeners(0);
    await expect(reader.rest()).rejects.toThrow();
  });
});
