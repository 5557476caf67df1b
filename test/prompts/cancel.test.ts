// A cancel is recorded first, and reaches the job even when the upstream is down for a while.
import { expect, onTestFinished, test } from 'vitest';
import { PromptCanceller } from '../../src/prompts/cancel.ts';
import { JobCanceller } from '../../src/prompts/follow/cancel-job.ts';
import type { LivePrompt } from '../../src/prompts/live-prompt.ts';
import type { PromptParts } from '../../src/prompts/take-over-prompt.ts';
import { fakePorts } from './fake-ports.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const CALLER = { user: 'ann' };

function promptOf(more: object = {}): LivePrompt {
  const identity = { key: 'k', promptId: 'p', caller: CALLER, jobId: 'j' };
  const state = { status: 'queued', waitReason: 'job_queued' };
  return { ...identity, ...state, ...more } as unknown as LivePrompt;
}

type Given = {
  readonly failure?: Error;
  readonly isOwner?: boolean;
  /** True when it ended before it had a job. */
  readonly hasEnded?: boolean;
};

function openCancel(given: Given = {}) {
  const { isOwner = true, hasEnded = false, failure } = given;
  const clock = createFakeClock(5);
  const events: string[] = [];
  const live = new Set<LivePrompt>();
  const prompts = {
    askCancel: async (key: string, atMs: number) => void events.push(`${key} at ${atMs}`),
  };
  const eventLog = {
    isLeader: () => isOwner,
    requestCancel: async () => void events.push('tell the others'),
  };
  const ports = fakePorts({
    records: { prompts, eventLog },
    frames: { livePrompts: live },
    policy: { clock, deadlineClock: clock },
  });
  const parts = {
    submissions: { cancel: async () => hasEnded },
    follower: {
      find: () => promptOf(),
    },
    jobCanceller: {
      async cancelJob() {
        if (failure) throw failure;
        events.push('cancel the job');
      },
      cancelInBackground: () => void events.push('go on cancelling'),
    },
  };
  const canceller = new PromptCanceller(ports, parts as unknown as PromptParts);
  return { canceller, cancel: canceller.cancel, clock, events, live };
}

test('a cancel that another process recorded goes on when the ledger fails, and ends no process', async () => {
  const { canceller, events } = openCancel({ failure: new Error('Command timed out') });
  canceller.cancelRequested('k');
  await expect.poll(() => events).toEqual(['go on cancelling']);
});

test('the answer waits two seconds at most for the owner to remove a prompt from its outbox', async () => {
  const { cancel, clock, live } = openCancel({ isOwner: false });
  const prompt = promptOf({ waitReason: 'in_outbox', jobId: null, status: undefined });
  live.add(prompt);
  let isAnswered = false;
  const answered = cancel([prompt], CALLER).then(() => (isAnswered = true));
  await clock.advance(1900);
  expect(isAnswered).toBe(false);
  await clock.advance(200);
  await answered;
});

test('the answer waits for the history of a job that has ended', async () => {
  const { cancel, clock, live } = openCancel();
  const prompt = promptOf({ status: 'canceled' });
  live.add(prompt);
  let isAnswered = false;
  const answered = cancel([prompt], CALLER).then(() => (isAnswered = true));
  await clock.advance(500);
  expect(isAnswered).toBe(false);
  live.delete(prompt);
  await clock.advance(20);
  await answered;
});

/** A canceller whose upstream answers with these statuses; 0: cancelled. */
function openCanceller(statuses: number[]) {
  const clock = createFakeClock(0);
  const calls: number[] = [];
  const live = new Set<LivePrompt>();
  const api = {
    async cancel() {
      calls.push(clock.now());
      const status = statuses.length > 1 ? statuses.shift() : statuses[0];
      if (!status) return { ok: true, value: { status: 'canceled' } };
      return { ok: false, error: { status, code: 'x', message: '', details: null } };
    },
  };
  const canceller = new JobCanceller(
    fakePorts({ jobs: { api }, frames: { livePrompts: live }, policy: { deadlineClock: clock } }),
  );
  onTestFinished(() => canceller.close());
  const prompt = promptOf();
  live.add(prompt);
  return { canceller, clock, calls, prompt, live };
}

test('a cancel is retried with growing waits while the upstream is down', async () => {
  const { canceller, prompt, calls, clock } = openCanceller([503, 503, 503, 503, 503, 503, 0]);
  await canceller.cancelJob(prompt);
  await clock.advance(60_000);
  expect(calls).toEqual([0, 500, 1500, 3500, 7500, 15_500, 25_500]);
});

test('a refused cancel is not repeated', async () => {
  const { canceller, prompt, calls, clock } = openCanceller([409]);
  await canceller.cancelJob(prompt);
  await clock.advance(60_000);
  expect(calls).toEqual([0]);
});

test('retries end with the prompt, and after ten minutes', async () => {
  const { canceller, prompt, calls, clock, live } = openCanceller([503]);
  await canceller.cancelJob(prompt);
  await clock.advance(20 * 60_000);
  expect(calls.at(-1)).toBeLessThanOrEqual(610_000);
  const before = calls.length;
  await canceller.cancelJob(prompt);
  live.delete(prompt);
  await clock.advance(60_000);
  expect(calls).toHaveLength(before + 1);
});

test('a cancel in the background is tried again while the ledger fails', async () => {
  const clock = createFakeClock();
  let calls = 0;
  const api = {
    cancel: async () => {
      if (++calls < 3) throw new Error('Command timed out');
      return { ok: true, value: { status: 'canceled' } };
    },
  };
  const frames = { livePrompts: { has: () => true } };
  const canceller = new JobCanceller(
    fakePorts({ jobs: { api }, frames, policy: { deadlineClock: clock } }),
  );
  onTestFinished(() => canceller.close());
  const prompt = promptOf();
  canceller.cancelInBackground(prompt);
  await clock.advance(500);
  await clock.advance(1000);
  await expect.poll(() => [calls, prompt.status]).toEqual([3, 'canceled']);
});
