import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { type JobCall, createJobCallObserver } from '../../src/passthrough/job-call-observer.ts';
import { ANNA } from '../support/app/jobs.ts';

/** A submission with a body that has not been read yet. */
function submissionOf(body: object): IncomingMessage {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-length': String(bytes.length) };
  return Object.assign(Readable.from([bytes]), { method: 'POST', headers }) as never;
}

/** Observes one submission whose answer has these bytes. */
function submit(
  observe: ReturnType<typeof createJobCallObserver>,
  req: IncomingMessage,
  ...answer: readonly Buffer[]
): void {
  const observer = observe({ req, res: {} as ServerResponse }, '/api/v2/jobs', ANNA);
  observer?.onRequest?.();
  observer?.onAnswer({ status: 201, coding: undefined, body: Readable.from(answer) });
}

test('a job is noticed whose answer repeats a workflow of megabytes', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const workflow = { 1: { class_type: 'Load', inputs: { image: 'A'.repeat(3_900_000) } } };
  const answer = JSON.stringify({ id: 'j', status: 'queued', x_workflow: workflow });
  submit(createJobCallObserver(onJobCall), submissionOf({ workflow }), Buffer.from(answer));
  await expect.poll(() => onJobCall.mock.calls).toHaveLength(1);
  const [[call] = []] = onJobCall.mock.calls;
  expect(call).toMatchObject({ kind: 'submitted', job: { id: 'j' } });
  expect(call?.kind === 'submitted' && (await call.body())).toEqual({ workflow });
});

test('an answer that is cut off, or too long and no job, is none', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const observe = createJobCallObserver(onJobCall);
  submit(observe, submissionOf({}), Buffer.from('<html>'), Buffer.alloc(6 * 2 ** 20));
  const observer = observe({ req: submissionOf({}), res: {} as never }, '/api/v2/jobs', ANNA);
  const body = new Readable({ read() {} });
  observer?.onAnswer({ status: 200, coding: undefined, body });
  body.push('{"no":"job"}');
  await new Promise((resolve) => setTimeout(resolve, 20));
  body.destroy();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(onJobCall).not.toHaveBeenCalled();
});

test('of many submissions at a time, each workflow is copied', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const observe = createJobCallObserver(onJobCall);
  const answer = Buffer.from('{"id":"j","status":"queued"}');
  for (let seed = 0; seed < 100; seed++) {
    submit(observe, submissionOf({ workflow: { 1: { inputs: { seed } } } }), answer);
  }
  await expect.poll(() => onJobCall.mock.calls).toHaveLength(100);
  const seeds = onJobCall.mock.calls.map(
    async ([call]) => call.kind === 'submitted' && (await call.body()),
  );
  expect(await Promise.all(seeds)).toEqual(
    Array.from({ length: 100 }, (_, seed) => ({ workflow: { 1: { inputs: { seed } } } })),
  );
});
