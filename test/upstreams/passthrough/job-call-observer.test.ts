import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import {
  type JobCall,
  createJobCallObserver,
} from '../../../src/upstreams/passthrough/job-call-observer.ts';
import { ANNA } from '../../support/app/jobs.ts';

test('a job is noticed whose answer repeats a workflow of megabytes', async () => {
  const onJobCall = vi.fn<(call: JobCall) => void>();
  const observe = createJobCallObserver(onJobCall);
  const req = { method: 'POST', headers: {} } as IncomingMessage;
  const workflow = { 1: { class_type: 'Load', inputs: { image: 'A'.repeat(3_900_000) } } };
  const observer = observe({ req, res: {} as ServerResponse }, '/api/v2/jobs', ANNA);
  observer?.onRequest(Buffer.from(JSON.stringify({ workflow })));
  const copy = observer?.onAnswer({ status: 201, coding: undefined });
  copy?.add(Buffer.from(JSON.stringify({ id: 'j', status: 'queued', x_workflow: workflow })));
  copy?.end('whole');
  await expect.poll(() => onJobCall.mock.calls).toHaveLength(1);
  const [[call] = []] = onJobCall.mock.calls;
  expect(call).toMatchObject({ kind: 'submitted', job: { id: 'j' } });
  expect(call?.kind === 'submitted' && (await call.body())).toEqual({ workflow });
});
