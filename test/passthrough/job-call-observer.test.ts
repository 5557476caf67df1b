import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { expect, test, vi } from 'vitest';
import { type JobCall, JobCallObserver } from '../../src/passthrough/job-call-observer.ts';
import { ANNA } from '../support/app/jobs.ts';

/** A submission with a body that has not been read yet. */
function submissionOf(body: object): IncomingMessage {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-length': String(bytes.length) };
  return Object.assign(Readable.from([bytes]), { method: 'POST', headers }) as never;
}

/** Observes one submission whose answer has these bytes. */
function submit(
  jobCalls: JobCallObserver,
  req: IncomingMessage,
  ...answer: readonly Buffer[]
): void {
  const observer = jobCalls.observerFor({ req, res: {} as ServerResponse }, '/api/v2/jobs', ANNA);
  observer?.onRequest?.();
  observer?.onAnswer({ status: 201, coding: undefined, body: Readable.from(answer) });
}

test('of many submissions at a time, each workflow is copied', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const jobCalls = new JobCallObserver(onJobCall);
  const answer = Buffer.from('{"id":"j","status":"queued"}');
  for (let seed = 0; seed < 100; seed++) {
    submit(jobCalls, submissionOf({ workflow: { 1: { inputs: { seed } } } }), answer);
  }
  await expect.poll(() => onJobCall.mock.calls).toHaveLength(100);
  const seeds = onJobCall.mock.calls.map(
    async ([call]) => call.kind === 'submitted' && (await call.body()),
  );
  expect(await Promise.all(seeds)).toEqual(
    Array.from({ length: 100 }, (_, seed) => ({ workflow: { 1: { inputs: { seed } } } })),
  );
});
