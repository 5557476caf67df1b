import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/observability/log.ts';
import type { JobSearchResult } from '../../../src/prompts/submit/retry.ts';
import { createLateJobs } from '../../../src/prompts/submit/late-jobs.ts';
import { DEFAULT_RETRY_POLICY } from '../../../src/prompts/submit/retry-policy.ts';
import { KEY_LABEL, withNewKey } from '../../../src/prompts/submit/plan.ts';
import {
  SubmissionRecovery,
  type SubmissionRecoveryOptions,
} from '../../../src/prompts/submit/recover.ts';
import {
  type ClientKnows,
  type JobNotFound,
  nextRecoveryAction,
} from '../../../src/prompts/submit/recovery-rules.ts';
import type { Job } from '../../../src/protocol/v2.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { PLAN, examplePrompt } from './example-plan.ts';

// One table says what becomes of a submission of unknown outcome.

const SECOND = 1000;
const WINDOW = DEFAULT_RETRY_POLICY.searchWindowMs;

const outcome = (
  clientKnows: ClientKnows,
  seen: JobNotFound,
  mayResend: 'yes' | 'no',
  forMs: number,
) =>
  nextRecoveryAction(DEFAULT_RETRY_POLICY, {
    clientKnows,
    lastResult: seen,
    mayResend: mayResend === 'yes',
    unchangedForMs: forMs,
    searchedForMs: forMs,
  });

test.each([
  // Its client was told an error: what the service lacks is given up within seconds.
  ['unknown', 'not listed', 'no', 0, 'wait'],
  ['unknown', 'not listed', 'no', 3 * SECOND, 'not taken'],
  ['unknown', 'engine down', 'no', 3 * SECOND, 'not known'],
  ['unknown', 'not seen', 'no', 3 * SECOND, 'wait'],
  ['unknown', 'not seen', 'no', WINDOW, 'not known'],
  ['unknown', 'no answer', 'no', WINDOW, 'not known'],
  // It was told that the prompt is accepted: it is sent until it has a job.
  ['accepted', 'none', 'yes', 0, 'send'],
  ['accepted', 'none', 'no', 0, 'send with new key'],
  ['accepted', 'not listed', 'yes', 0, 'send'],
  ['accepted', 'not listed', 'no', 30 * SECOND, 'wait'],
  ['accepted', 'not listed', 'no', 61 * SECOND, 'send with new key'],
  ['accepted', 'engine down', 'no', 100 * WINDOW, 'wait'],
  ['accepted', 'no answer', 'no', WINDOW, 'not known'],
  // It was told nothing, as the process died.
  ['nothing', 'none', 'yes', 0, 'send'],
  ['nothing', 'none', 'no', 0, 'remove'],
  ['nothing', 'not listed', 'yes', 0, 'send'],
  ['nothing', 'not listed', 'no', 3 * SECOND, 'not taken'],
] as const)(
  'told %s, %s, may resend: %s, for %i ms: %s',
  (clientKnows, seen, mayResend, forMs, what) => {
    expect(outcome(clientKnows, seen, mayResend, forMs)).toBe(what);
  },
);

test('no row but that of an accepted prompt sends under another key', () => {
  const seen: JobNotFound[] = ['none', 'not listed', 'not seen', 'engine down', 'no answer'];
  for (const clientKnows of ['unknown', 'nothing'] as const)
    for (const what of seen)
      for (const key of ['yes', 'no'] as const)
        expect(outcome(clientKnows, what, key, 100 * WINDOW)).not.toBe('send with new key');
});

test('a new key is another one each time, and says whose it is', () => {
  const plan = { ...PLAN, idempotencyKey: 'k.2' };
  expect(withNewKey(plan).idempotencyKey).toBe('k.again1');
  expect(withNewKey(withNewKey(plan)).idempotencyKey).toBe('k.again2');
});

describe('a prompt that is looked for and deleted', () => {
  const prompt = examplePrompt();
  const late = { id: 'late', metadata: { [KEY_LABEL]: 'k' } } as unknown as Job;

  async function withdrawn(looks: JobSearchResult[]) {
    const clock = createFakeClock();
    const ends: string[] = [];
    const cancelled: string[] = [];
    const retryPolicy = { ...DEFAULT_RETRY_POLICY, searchMs: { first: 1, last: 1 } };
    const submissionRetry = {
      findJob: async (): Promise<JobSearchResult> =>
        (looks.length > 1 ? looks.shift() : looks[0]) ?? 'no answer',
      send: async () => {
        throw new Error('nothing is to be sent');
      },
    };
    const jobs = {
      cancel: async (_: unknown, id: string) => {
        cancelled.push(id);
        return { ok: true as const, value: late };
      },
    };
    const common = { submissionRetry, retryPolicy, log: silentLogger(), deadlineClock: clock };
    const lateJobs = createLateJobs({ ...common, jobs } as unknown as Parameters<
      typeof createLateJobs
    >[0]);
    const submissionRecovery = new SubmissionRecovery({
      ...common,
      lateJobs,
      follower: {
        appendEntry: async () => true,
        finishWithoutJob: async (_: unknown, { kind }: { kind: string }) => void ends.push(kind),
        remove: async () => void ends.push('forgotten'),
      },
      linkJob: async () => void ends.push('linked'),
      promptEventLog: { isLeader: () => true },
      ledger: { prompts: { setPlan: async () => {} } },
    } as unknown as SubmissionRecoveryOptions);
    onTestFinished(async () => {
      await submissionRecovery.close();
      await lateJobs.close();
    });
    submissionRecovery.recover({ prompt, plan: PLAN, clientKnows: 'unknown', mayResend: false });
    expect(await submissionRecovery.cancel(prompt)).toBe(true);
    expect(ends).toEqual(['canceled']);
    expect(await submissionRecovery.cancel(prompt)).toBe(false);
    await clock.advance(1000);
    return { ends, cancelled };
  }

  test('has ended at once, and the job that turns up later is cancelled, once', async () => {
    const { ends, cancelled } = await withdrawn(['no answer', 'engine down', 'not listed', late]);
    expect([ends, cancelled]).toEqual([['canceled'], ['late']]);
  });

  test('has ended at once, and a job without its label is left alone', async () => {
    const { ends, cancelled } = await withdrawn(['no answer', { id: 'theirs' } as Job]);
    expect([ends, cancelled]).toEqual([['canceled'], []]);
  });
});
