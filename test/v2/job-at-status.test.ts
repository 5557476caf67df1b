import { expect, test } from 'vitest';
import type { Job } from '../../src/protocol/v2.ts';
import { jobAtStatus } from '../../src/v2/job-at-status.ts';
import { JOB, OUTPUT } from '../support/upstreams/fake-jobs.ts';

const PROGRESS = { value: 1, nodes_done: 1, nodes_total: 1 };
const ENDED: Job = {
  ...JOB,
  status: 'failed',
  started_at: '2026-08-01T00:00:01Z',
  completed_at: '2026-08-01T00:00:02Z',
  progress: PROGRESS,
  outputs: [OUTPUT],
  error: { code: 'node_execution_error', message: 'no' },
  metrics: { queue_ms: 1000, execution_ms: 1000 },
  x_ui: {},
};
const UNFINISHED = {
  completed_at: null,
  queue_position: null,
  progress: null,
  outputs: [],
  error: null,
};

test('a job that ended is shown as it began', () => {
  const { x_ui: _, ...shown } = ENDED;
  expect(jobAtStatus(ENDED, 'running')).toEqual({
    ...shown,
    ...UNFINISHED,
    status: 'running',
    metrics: { queue_ms: 1000, execution_ms: null },
  });
});

test('a job that ended is shown as it waited', () => {
  const { x_ui: _, ...shown } = ENDED;
  expect(jobAtStatus(ENDED, 'queued')).toEqual({
    ...shown,
    ...UNFINISHED,
    status: 'queued',
    started_at: null,
    metrics: { queue_ms: null, execution_ms: null },
  });
});

test('a job that is there, or not yet, is shown as it is', () => {
  const running = { ...JOB, status: 'running', progress: PROGRESS, outputs: [OUTPUT] } as const;
  expect(jobAtStatus(running, 'running')).toEqual(running);
  expect(jobAtStatus(running, 'canceling')).toEqual({ ...running, status: 'canceling' });
});

test('an end is shown as it is, and as no other', () => {
  expect(jobAtStatus(ENDED, 'failed')).toBe(ENDED);
  expect(jobAtStatus(ENDED, 'succeeded')).toBeUndefined();
  expect(jobAtStatus({ ...JOB, status: 'running' }, 'canceled')).toBeUndefined();
});
