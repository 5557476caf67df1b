import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { expect, test, vi } from 'vitest';
import {
  type JobCall,
  createJobCallObserver,
} from '../../../src/upstreams/passthrough/job-call-observer.ts';
import { ANNA } from '../../support/app/jobs.ts';

/** A submission with a body that has not been read yet. */
function submissionOf(body: object): IncomingMessage {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = { 'content-length': String(bytes.length) };
  return Object.assign(Readable.from([bytes]), { method: 'POST', headers }) as never;
}

test('a job is noticed whose answer repeats a workflow of megabytes', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const observe = createJobCallObserver(onJobCall);
  const workflow = { 1: { class_type: 'Load', inputs: { image: 'A'.repeat(3_900_000) } } };
  const req = submissionOf({ workflow });
  const observer = observe({ req, res: {} as ServerResponse }, '/api/v2/jobs', ANNA);
  observer?.onRequest();
  const copy = observer?.onAnswer({ status: 201, coding: undefined });
  copy?.add(Buffer.from(JSON.stringify({ id: 'j', status: 'queued', x_workflow: workflow })));
  copy?.end('whole');
  await expect.poll(() => onJobCall.mock.calls).toHaveLength(1);
  const [[call] = []] = onJobCall.mock.calls;
  expect(call).toMatchObject({ kind: 'submitted', job: { id: 'j' } });
  expect(call?.kind === 'submitted' && (await call.body())).toEqual({ workflow });
});

test('an answer that is cut off, or too long and no job, is none', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const observe = createJobCallObserver(onJobCall);
  const req = { method: 'POST', headers: {} } as IncomingMessage;
  const observer = observe({ req, res: {} as ServerResponse }, '/api/v2/jobs', ANNA);
  const page = observer?.onAnswer({ status: 200, coding: undefined });
  page?.add(Buffer.from('<html>'));
  page?.add(Buffer.alloc(6 * 2 ** 20));
  page?.end('whole');
  const half = observer?.onAnswer({ status: 200, coding: undefined });
  half?.add(Buffer.from('{"no":"job"'));
  half?.end('cut off');
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(onJobCall).not.toHaveBeenCalled();
});

test('of many submissions at a time, each workflow is copied', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const observe = createJobCallObserver(onJobCall);
  const answer = Buffer.from('{"id":"j","status":"queued"}');
  for (let seed = 0; seed < 100; seed++) {
    const req = submissionOf({ workflow: { 1: { inputs: { seed } } } });
    const observer = observe({ req, res: {} as ServerResponse }, '/api/v2/jobs', ANNA);
    observer?.onRequest();
    const copy = observer?.onAnswer({ status: 201, coding: undefined });
    copy?.add(answer);
    copy?.end('whole');
  }
  await expect.poll(() => onJobCall.mock.calls).toHaveLength(100);
  const seeds = onJobCall.mock.calls.map(
    async ([call]) => call.kind === 'submitted' && (await call.body()),
  );
  expect(await Promise.all(seeds)).toEqual(
    Array.from({ length: 100 }, (_, seed) => ({ workflow: { 1: { inputs: { seed } } } })),
  );
});
