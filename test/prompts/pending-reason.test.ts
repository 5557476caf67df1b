// Each reason to be pending is known in one place, and each has its words for an operator.
import { describe, expect, test } from 'vitest';
import {
  type JobQueueReason,
  PENDING_REASONS,
  type PendingReason,
  type WaitReason,
  isInOutbox,
  pendingReasonOf,
  pendingRow,
} from '../../src/prompts/pending-reason.ts';
import type { JobStatus } from '../../src/protocol/v2.ts';

const REASONS = Object.keys(PENDING_REASONS) as PendingReason[];

const OF_QUEUE = {
  workers_busy: 'workers_busy',
  no_worker: 'no_worker',
  paused: 'paused',
  stalled: 'stalled',
  retry_delayed: 'retry_delayed',
  queue_unreachable: 'queue_unreachable',
  not_started: 'not_started',
  upstream_unhealthy: 'upstream_unhealthy',
} as const satisfies { readonly [reason in JobQueueReason]: reason };

const isOfPrompt = (reason: PendingReason): reason is WaitReason =>
  !Object.hasOwn(OF_QUEUE, reason) && reason !== 'no_key';

type Facts = Parameters<typeof pendingReasonOf>[0];

const factsOf = (more: Partial<Facts> = {}): Facts => ({
  status: undefined,
  cancelRequested: false,
  waitReason: 'submitting',
  lacksCredential: false,
  ...more,
});

const ask = (facts: Facts, queue: JobQueueReason = 'workers_busy') =>
  pendingReasonOf(facts, async () => queue);

describe('a pending prompt', () => {
  test('whose key is not stored waits for that before anything else', async () => {
    expect(await ask(factsOf({ waitReason: 'in_outbox', lacksCredential: true }))).toBe('no_key');
  });
});

test('the queue is asked only about a prompt that has a job', async () => {
  const asked = pendingReasonOf(factsOf(), async () => {
    throw new Error('asked');
  });
  expect(await asked).toBe('submitting');
});

test.each<JobStatus>(['running', 'succeeded', 'failed', 'canceled'])(
  'a prompt whose job is %s is not pending',
  async (status) => {
    expect(await ask(factsOf({ status, waitReason: 'job_queued' }))).toBeNull();
  },
);

test('a prompt whose end was requested is not pending', async () => {
  expect(await ask(factsOf({ cancelRequested: true }))).toBeNull();
});

test('the prompts in the outbox are those whose reason says so', () => {
  const found = REASONS.filter(isOfPrompt).filter((waitReason) => isInOutbox({ waitReason }));
  for (const reason of found) expect(pendingRow(reason).text).toMatch(/^It waits in the outbox\b/);
  expect(found).toEqual([
    'in_outbox',
    'earlier_prompts',
    'no_room',
    'unreachable',
    'refused_for_now',
    'job_lost',
  ]);
});
