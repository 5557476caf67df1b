// A prompt its client was told of is sent again until its outcome is certain.
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/observability/log.ts';
import type { RetryResult, JobSearchResult } from '../../../src/prompts/submit/retry.ts';
import { DEFAULT_RETRY_POLICY } from '../../../src/prompts/submit/retry-policy.ts';
import {
  type AmbiguousSubmission,
  SubmissionRecovery,
  type SubmissionRecoveryOptions,
} from '../../../src/prompts/submit/recover.ts';
import { monotonicClock } from '../../../src/lib/clock.ts';
import type { Job } from '../../../src/protocol/v2.ts';
import { PLAN, examplePrompt } from './example-plan.ts';

const prompt = examplePrompt();
const job = { id: 'j' } as Job;
const error = { status: 500, code: 'x', message: '', details: null };
const ACCEPTED: RetryResult = { kind: 'accepted', plan: PLAN, job, nodeErrors: {} };
const KEY_USED: RetryResult = { kind: 'unknown', plan: PLAN, error, mayResend: false };
const CROWDED: RetryResult = { kind: 'no capacity', plan: PLAN, error };
const REFUSED = {
  kind: 'refused',
  plan: PLAN,
  error,
  refusal: { status: 400, body: { error: {}, node_errors: {} } },
} as RetryResult;

/** The outcome when searches and submissions give these results in order; the last one repeats. */
async function outcomeOf(
  clientKnows: AmbiguousSubmission['clientKnows'],
  {
    searches,
    sends,
    records = [true],
    isClosed = false,
  }: {
    searches: (JobSearchResult | Error)[];
    sends: (RetryResult | Error)[];
    /** The results of recording that the job is searched for. */
    records?: (boolean | Error)[];
    isClosed?: boolean;
  },
): Promise<{ outcome: string; sent: number; watched?: number }> {
  let sent = 0;
  let watched = 0;
  const next = <T>(list: (T | Error)[]): T => {
    const one = list.length > 1 ? list.shift() : list[0];
    if (one === undefined || one instanceof Error) throw one ?? new Error('nothing is expected');
    return one;
  };
  const outcome = await new Promise<string>((resolve) => {
    const submissionRecovery = new SubmissionRecovery({
      follower: {
        appendEntry: async () => next(records),
        finishWithoutJob: async (_: unknown, { kind }: { kind: string }) => resolve(kind),
        remove: async () => resolve('forgotten'),
      },
      submissionRetry: {
        findJob: async () => next(searches),
        async send() {
          sent += 1;
          return next(sends);
        },
      },
      linkJob: async (_prompt: unknown, _plan: unknown, { id }: Job) => resolve(`has ${id}`),
      promptEventLog: { isLeader: () => true },
      ledger: { prompts: { setPlan: async () => {} } },
      lateJobs: { cancelWhenFound: () => void (watched += 1) },
      retryPolicy: { ...DEFAULT_RETRY_POLICY, searchMs: { first: 1, last: 1 } },
      log: silentLogger(),
      deadlineClock: { ...monotonicClock, now: () => 0 },
    } as unknown as SubmissionRecoveryOptions);
    onTestFinished(() => submissionRecovery.close());
    if (isClosed) void submissionRecovery.close().then(() => setImmediate(resolve, 'nothing'));
    submissionRecovery.recover({ prompt, plan: PLAN, clientKnows, mayResend: true });
  });
  await new Promise(setImmediate);
  return { outcome, sent, ...(watched > 0 && { watched }) };
}

test('an accepted one without a job is sent again, until it has one', async () => {
  const sends = [new Error('the disk is full'), CROWDED, ACCEPTED];
  expect(await outcomeOf('accepted', { searches: ['none'], sends })).toEqual({
    outcome: 'has j',
    sent: 3,
  });
});

test('an accepted one is looked for again when the ledger could not be read', async () => {
  const searches = [new Error('the ledger is away'), 'no answer' as const, job];
  expect(await outcomeOf('accepted', { searches, sends: [CROWDED] })).toEqual({
    outcome: 'has j',
    sent: 1,
  });
});

test('an accepted one is looked for although that could not be recorded at first', async () => {
  const records = [new Error('the ledger is away'), true];
  expect(await outcomeOf('accepted', { searches: [job], sends: [], records })).toEqual({
    outcome: 'has j',
    sent: 0,
  });
});

test('an accepted one whose key was used, and that has no job for certain, is sent under another', async () => {
  expect(await outcomeOf('accepted', { searches: ['none'], sends: [KEY_USED, ACCEPTED] })).toEqual({
    outcome: 'has j',
    sent: 2,
  });
});

test('one whose keys leave no job again and again is lost', async () => {
  expect(await outcomeOf('accepted', { searches: ['none'], sends: [KEY_USED] })).toEqual({
    outcome: 'lost',
    sent: 4,
  });
});

test('one whose client was told that its outcome is unknown is not sent by itself', async () => {
  expect(await outcomeOf('unknown', { searches: ['none'], sends: [ACCEPTED] })).toEqual({
    outcome: 'lost',
    sent: 0,
  });
});

test('one whose client was told nothing is sent, as after a restart, but under no other key', async () => {
  expect(await outcomeOf('nothing', { searches: ['none'], sends: [CROWDED, ACCEPTED] })).toEqual({
    outcome: 'has j',
    sent: 2,
  });
  expect(await outcomeOf('nothing', { searches: ['none'], sends: [KEY_USED] })).toEqual({
    outcome: 'forgotten',
    sent: 1,
  });
});

test.each([
  ['accepted', 'failed'],
  ['nothing', 'forgotten'],
] as const)('a refusal ends one whose client was told %s: %s', async (clientKnows, outcome) => {
  expect(await outcomeOf(clientKnows, { searches: ['none'], sends: [REFUSED] })).toEqual({
    outcome,
    sent: 1,
  });
});

test('a refusal after a search that may not see every job: a late job is cancelled', async () => {
  expect(await outcomeOf('accepted', { searches: ['not seen'], sends: [REFUSED] })).toEqual({
    outcome: 'failed',
    sent: 1,
    watched: 1,
  });
});

test('one that comes after the close is left to the next process', async () => {
  const ready = { searches: ['none' as const], sends: [ACCEPTED], isClosed: true };
  expect(await outcomeOf('accepted', ready)).toEqual({ outcome: 'nothing', sent: 0 });
});
