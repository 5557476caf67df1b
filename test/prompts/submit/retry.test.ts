// Searching for the job of a prompt, and sending its plan again.
import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/observability/log.ts';
import type { LivePrompt } from '../../../src/prompts/live-prompts.ts';
import { createSubmissionRetry } from '../../../src/prompts/submit/retry.ts';
import {
  DEFAULT_RETRY_POLICY,
  backoffMs,
  retryAfterMs,
  withJitter,
} from '../../../src/prompts/submit/retry-policy.ts';
import type { JobNotFound } from '../../../src/prompts/submit/recovery-rules.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { PLAN, examplePrompt } from './example-plan.ts';

const HOUR = 60 * 60_000;

function open(found: object, refused?: object) {
  const clock = createFakeClock(0);
  const sent: string[] = [];
  const submissionRetry = createSubmissionRetry({
    jobs: { recover: async () => found },
    ledger: { prompts: { hasJob: async () => false } },
    sender: {
      async send() {
        sent.push('send');
        return { kind: 'accepted' };
      },
      async sendUnchanged() {
        sent.push('send unchanged');
        return refused ? { kind: 'refused', error: refused } : { kind: 'accepted' };
      },
    },
    clock,
    log: silentLogger(),
  } as unknown as Parameters<typeof createSubmissionRetry>[0]);
  const send = (seen: JobNotFound, more: Partial<LivePrompt> = {}) =>
    submissionRetry.send(examplePrompt(more), PLAN, seen);
  const findJob = () => submissionRetry.findJob(examplePrompt(), PLAN);
  return { clock, sent, send, findJob };
}

test.each<[string, object, string]>([
  ['certainly none', { ok: true, value: { isCertain: true } }, 'none'],
  ['not in the complete list', { ok: true, value: { isListed: true } }, 'not listed'],
  ['not in a part of the list', { ok: true, value: {} }, 'not seen'],
  ['no list at this service', { ok: false, error: { status: 405 } }, 'not seen'],
  [
    'an engine that is down',
    { ok: false, error: { status: 503, engineDown: true } },
    'engine down',
  ],
  ['a service that fails', { ok: false, error: { status: 500 } }, 'no answer'],
])('a search that finds %s', async (_, found, result) => {
  expect(await open(found).findJob()).toBe(result);
});

test('a search returns the job it finds', async () => {
  const job = { id: 'j' };
  expect(await open({ ok: true, value: { job } }).findJob()).toBe(job);
});

test('a plan without a job is sent as if for the first time', async () => {
  const { send, sent } = open({});
  await send('none');
  expect(sent).toEqual(['send']);
});

test('a plan that may have a job is sent unchanged', async () => {
  const { send, sent } = open({});
  await send('not seen');
  expect(sent).toEqual(['send unchanged']);
});

test('nothing is sent after the lifetime of a key, nor for a prompt that is to end', async () => {
  const { clock, send, sent } = open({});
  expect(await send('none', { cancelRequested: true })).toMatchObject({ kind: 'unknown' });
  await clock.advance(21 * HOUR);
  expect(await send('none')).toMatchObject({ kind: 'unknown', mayResend: false });
  expect(sent).toEqual([]);
});

test('a refusal of the content is final only when the search could see jobs', async () => {
  const refusal = { status: 422, code: 'invalid_workflow' };
  expect((await open({}, refusal).send('not listed')).kind).toBe('refused');
  expect((await open({}, refusal).send('no answer')).kind).toBe('later');
});

test('the wait after a capacity refusal stays within its bounds', () => {
  const waitMs = (retryAfterSeconds?: number) =>
    retryAfterMs(
      DEFAULT_RETRY_POLICY,
      retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
    );
  expect([waitMs(), waitMs(0), waitMs(30), waitMs(3600)]).toEqual([2000, 1000, 30_000, 60_000]);
});

test('the wait doubles with each failure, up to its limit', () => {
  const waits = [0, 1, 4, 5, 400].map((failures) => backoffMs(DEFAULT_RETRY_POLICY, failures));
  expect(waits).toEqual([1000, 2000, 16_000, 30_000, 30_000]);
});

test('jitter adds a fifth at most', () => {
  for (let i = 0; i < 50; i++) {
    expect(withJitter(1000)).toBeGreaterThanOrEqual(1000);
    expect(withJitter(1000)).toBeLessThanOrEqual(1200);
  }
});
