// The outbox sends the waiting prompts of a user one after the other, at the pace of the upstream.
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/observability/log.ts';
import { Outbox, type OutboxOptions } from '../../../src/prompts/submit/outbox.ts';
import type { SubmissionPlan } from '../../../src/prompts/submit/plan.ts';
import { LeadershipLost } from '../../../src/prompts/prompt-event-log.ts';
import { DEFAULT_RETRY_POLICY } from '../../../src/prompts/submit/retry-policy.ts';
import type { SendResult } from '../../../src/prompts/submit/send.ts';
import type { WaitReason } from '../../../src/prompts/pending-reason.ts';
import type { LivePrompt } from '../../../src/prompts/live-prompts.ts';
import type { V2Error } from '../../../src/protocol/job-api.ts';
import type { Job } from '../../../src/protocol/v2.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const JOB = { id: 'job' } as Job;
const error: V2Error = { status: 429, code: 'queue_full', message: '', details: null };
const BUSY_FOR_5_S = { ...error, retryAfterSeconds: 5 };
const REFUSAL = { status: 400, body: { error: {}, node_errors: {} } };

type Result = (plan: SubmissionPlan) => SendResult;

const accepted: Result = (plan) => ({ kind: 'accepted', plan, job: JOB, nodeErrors: {} });
const busy: Result = (plan) => ({ kind: 'no capacity', plan, error: BUSY_FOR_5_S });
const unreachable: Result = (plan) => ({ kind: 'unsent', plan, error });
const unknown: Result = (plan) => ({ kind: 'unknown', plan, error, mayResend: false });
const refused =
  (status: number, code = error.code): Result =>
  (plan) =>
    ({ kind: 'refused', plan, error: { ...error, status, code }, refusal: REFUSAL }) as SendResult;

/** An outbox whose upstream answers with these results, the last one again and again. */
function open(
  results: readonly (Result | Error)[] = [accepted],
  { limit = 10, appendMs = 0, whileLinking = () => {} } = {},
) {
  const clock = createFakeClock(0);
  const waits: number[] = [];
  const events: string[] = [];
  const reasons: string[] = [];
  const waiting = new Set<LivePrompt>();
  const lost = new Set<string>();
  const answers = [...results];
  const note = (event: string) => async (prompt: LivePrompt) =>
    void events.push(`${event} ${prompt.key}`);
  const options = {
    ledger: {
      prompts: {
        async setPlan(key: string, { intentJson }: { intentJson: string }) {
          events.push(`store ${key} ${(JSON.parse(intentJson) as { where: string }).where}`);
        },
      },
    },
    livePrompts: {
      inOutbox: () => waiting,
      removeFromOutbox: (prompt: LivePrompt) => void waiting.delete(prompt),
      setWaitReason(prompt: LivePrompt, reason: WaitReason) {
        prompt.waitReason = reason;
        reasons.push(`${prompt.key} ${reason}`);
      },
    },
    promptEventLog: { isLeader: (key: string) => !lost.has(key) },
    follower: {
      async appendEntry(prompt: LivePrompt) {
        if (appendMs > 0) await clock.sleep(appendMs);
        waiting.add(prompt);
        prompt.waitReason = 'in_outbox';
        return true;
      },
      async finishWithoutJob({ key }: LivePrompt, { kind }: { kind: string }) {
        events.push(`finish ${key} ${kind}`);
      },
      remove: note('remove'),
    },
    sender: {
      async send(_caller: unknown, plan: SubmissionPlan) {
        events.push(`store ${plan.promptKey} away`);
        const answer = answers.length > 1 ? answers.shift() : answers[0];
        if (answer instanceof Error || !answer) throw answer ?? new Error('no answer');
        events.push(`send ${plan.promptKey} at ${Math.floor(clock.now() / 1000)} s`);
        return answer(plan);
      },
    },
    submissionRetry: {
      findJob: async () => 'none',
      async send(prompt: LivePrompt, plan: SubmissionPlan) {
        events.push(`retry ${prompt.key}`);
        return (answers[0] as Result)(plan);
      },
    },
    submissionRecovery: {
      recover: ({ prompt, mayResend }: { prompt: LivePrompt; mayResend: boolean }) =>
        void events.push(`recover ${prompt.key} ${mayResend ? 'key free' : 'key used'}`),
      cancel: async ({ key }: LivePrompt) => events.push(`end ${key} in recovery`) > 0,
    },
    async linkJob({ key }: LivePrompt) {
      whileLinking();
      events.push(`link ${key}`);
    },
    lateJobs: {
      cancelWhenFound: ({ key }: LivePrompt, plan: SubmissionPlan) =>
        void events.push(`cancel late jobs of ${key} ${plan.promptKey}`),
    },
    retryPolicy: DEFAULT_RETRY_POLICY,
    outboxLimit: limit,
    deadlineClock: {
      sleep(ms: number, signal?: AbortSignal) {
        waits.push(ms);
        return clock.sleep(ms, signal);
      },
    },
    log: silentLogger(),
  } as unknown as OutboxOptions;
  const outbox = new Outbox(options);
  onTestFinished(() => outbox.close());
  const settled = () => clock.advance(0);
  return { outbox, clock, events, reasons, waits, settled, waiting, lost };
}

function submissionOf(key: string, number = 0, more: object = {}) {
  const identity = { key, promptId: key, number, createdAtMs: 0, caller: { user: 'ann' } };
  const prompt = { ...identity, waitReason: 'submitting' };
  const plan = {
    promptKey: key,
    idempotencyKey: key,
    placed: [],
    outputs: [],
    secrets: {},
    ownSecrets: [],
    isWhole: true,
  };
  return {
    prompt: prompt as unknown as LivePrompt,
    plan: plan as unknown as SubmissionPlan,
    clientKnows: 'accepted' as const,
    mayHaveBeenSent: false,
    ...more,
  };
}

test('sends a prompt and links its job', async () => {
  const { outbox, events, settled } = open();
  await outbox.add(submissionOf('a'));
  await settled();
  expect(events).toEqual(['store a away', 'send a at 0 s', 'link a']);
  expect(outbox.depth()).toBe(0);
});

test('sends in the order of the queue, one at a time', async () => {
  const { outbox, events, clock } = open([busy, accepted]);
  await outbox.add(submissionOf('last', 2));
  await outbox.add(submissionOf('first', -1));
  await outbox.add(submissionOf('second', 1));
  await clock.advance(10_000);
  expect(events.filter((event) => event.startsWith('link'))).toEqual([
    'link first',
    'link second',
    'link last',
  ]);
});

test('waits as long as the upstream asks for, and up to a fifth more', async () => {
  const { outbox, clock, events } = open([busy, accepted]);
  await outbox.add(submissionOf('a'));
  await clock.advance(4999);
  expect(events).not.toContain('link a');
  await clock.advance(1001);
  expect(events).toEqual([
    'store a away',
    'send a at 0 s',
    'store a here',
    'store a away',
    expect.stringMatching(/^send a at [56] s$/),
    'link a',
  ]);
});

test('waits twice as long after each attempt at an unreachable upstream, at most 30 s', async () => {
  const { outbox, clock, waits } = open([unreachable]);
  await outbox.add(submissionOf('a'));
  await clock.advance(180_000);
  for (const [i, leastMs] of [2000, 4000, 8000, 16_000, 30_000, 30_000].entries()) {
    expect(waits[i]).toBeGreaterThanOrEqual(leastMs);
    expect(waits[i]).toBeLessThanOrEqual(leastMs * 1.2);
  }
});

test.each<[string, Result, WaitReason]>([
  ['has no room', busy, 'no_room'],
  ['cannot be reached', unreachable, 'unreachable'],
  ['refuses the key', refused(401), 'refused_for_now'],
])('says why prompts wait when the upstream %s', async (_, result, reason) => {
  const { outbox, reasons, settled } = open([result]);
  await outbox.add(submissionOf('a', 1));
  await outbox.add(submissionOf('b', 2));
  await settled();
  expect(reasons).toEqual(['b earlier_prompts', `a ${reason}`]);
});

test('does not say of the only prompt that it waits behind others when its plan has changed', async () => {
  const { outbox, reasons, clock } = open(
    [(plan) => unreachable({ ...plan, idempotencyKey: 'a.again1' })],
    {
      appendMs: 100,
    },
  );
  void outbox.add(submissionOf('a'));
  await clock.advance(5000);
  expect(new Set(reasons)).toEqual(new Set(['a unreachable']));
});

test('says of a prompt that had to wait at once that there is no room', async () => {
  const { outbox, reasons } = open();
  await outbox.add(submissionOf('a'), 5000);
  expect(reasons).toEqual(['a no_room']);
});

test('leaves a submission with an unknown outcome to recovery', async () => {
  const { outbox, events, settled } = open([unknown, accepted]);
  await outbox.add(submissionOf('a', 1));
  await outbox.add(submissionOf('b', 2));
  await settled();
  expect(events).toContain('recover a key used');
  expect(events).toContain('link b');
});

test('leaves a submission to recovery when Holdover itself fails', async () => {
  const { outbox, events, settled } = open([new Error('broken')]);
  await outbox.add(submissionOf('a'));
  await settled();
  expect(events).toEqual(['store a away', 'recover a key free']);
});

test('ends a refused prompt, or removes it when its client never got an answer', async () => {
  const { outbox, events, settled } = open([refused(400)]);
  await outbox.add(submissionOf('told', 1));
  await outbox.add(submissionOf('untold', 2, { clientKnows: 'nothing' }));
  await settled();
  expect(events).toContain('finish told failed');
  expect(events).toContain('remove untold');
});

test('keeps a prompt whose key is refused: the key may be accepted later', async () => {
  const { outbox, clock, events } = open([refused(401), accepted]);
  await outbox.add(submissionOf('a'));
  await clock.advance(29_000);
  expect(events).toEqual(['store a away', 'send a at 0 s', 'store a here']);
  await clock.advance(8000);
  expect(events).toContain('link a');
});

test('searches for the job of a prompt that may have been sent before', async () => {
  const { outbox, events, settled } = open();
  await outbox.add(submissionOf('a', 0, { mayHaveBeenSent: true }));
  await settled();
  expect(events).toEqual(['retry a', 'link a']);
});

test.each([
  [true, ['retry a', 'finish a failed', 'cancel late jobs of a a']],
  [false, ['store a away', 'send a at 0 s', 'finish a failed']],
])(
  'cancels the late job of a refused prompt that may have been sent before: %s',
  async (mayHaveBeenSent, steps) => {
    const { outbox, events, settled } = open([refused(400)]);
    await outbox.add(submissionOf('a', 0, { mayHaveBeenSent }));
    await settled();
    expect(events).toEqual(steps);
  },
);

test('ends a waiting prompt at once, but not twice', async () => {
  const { outbox, clock, events, settled } = open([busy]);
  const [first, second] = [submissionOf('a', 1), submissionOf('b', 2)];
  await outbox.add(first);
  await outbox.add(second);
  await settled();
  expect(await outbox.cancel(second.prompt)).toBe(true);
  expect(await outbox.cancel(second.prompt)).toBe(false);
  expect(await outbox.cancel(first.prompt)).toBe(true);
  await clock.advance(10_000);
  expect(events.slice(3)).toEqual(['finish b canceled', 'finish a canceled']);
});

test('does not end a prompt that is being sent, or linked to its job', async () => {
  const submission = submissionOf('a');
  const answers: Promise<boolean>[] = [];
  const cancel = () => void answers.push(opened.outbox.cancel(submission.prompt));
  const opened = open([(plan) => (cancel(), accepted(plan))], { whileLinking: cancel });
  await opened.outbox.add(submission);
  await opened.settled();
  expect(await Promise.all(answers)).toEqual([false, false]);
  expect(opened.events.slice(2)).toEqual(['link a']);
});

test('leaves a cancelled prompt to recovery when it may have been sent', async () => {
  const { outbox, events, settled } = open([busy]);
  const submission = submissionOf('b', 2, { mayHaveBeenSent: true });
  await outbox.add(submissionOf('a', 1));
  await outbox.add(submission);
  await settled();
  expect(await outbox.cancel(submission.prompt)).toBe(true);
  expect(events.slice(3)).toEqual(['recover b key used', 'end b in recovery']);
});

/** The end of the prompt is requested while this result is on its way. */
const cancelledBefore =
  (submission: { prompt: LivePrompt }, result: Result): Result =>
  (plan) => {
    submission.prompt.cancelRequested = true;
    return result(plan);
  };

test.each<[string, Result]>([
  ['refused for lack of capacity', busy],
  ['sent to an upstream that cannot be reached', unreachable],
  ['refused for its key', refused(401)],
  ['answered with a page', refused(502, 'bad_upstream_response')],
])('ends a prompt whose end was requested while it was being %s', async (_, result) => {
  const submission = submissionOf('a');
  const { outbox, events, clock } = open([cancelledBefore(submission, result), accepted]);
  await outbox.add(submission);
  await clock.advance(60_000);
  expect(events.slice(3)).toEqual(['finish a canceled']);
  expect(outbox.depth()).toBe(0);
});

test('leaves a prompt to recovery whose end was requested while it was being sent again', async () => {
  const submission = submissionOf('a', 0, { mayHaveBeenSent: true });
  const { outbox, events, settled } = open([cancelledBefore(submission, busy)]);
  await outbox.add(submission);
  await settled();
  expect(events).toEqual(['retry a', 'recover a key used', 'end a in recovery']);
});

test('does not send a prompt whose end was requested while it waited', async () => {
  const { outbox, events, settled } = open();
  const submission = submissionOf('a');
  submission.prompt.cancelRequested = true;
  await outbox.add(submission);
  await settled();
  expect(events).toEqual(['finish a canceled']);
  expect(outbox.depth()).toBe(0);
});

test('goes on after a failure of its own: prompts of a user are not stuck', async () => {
  const { outbox, clock, events, settled, lost } = open();
  lost.has = () => {
    lost.has = () => false;
    throw new Error('broken');
  };
  await outbox.add(submissionOf('a', 1));
  await settled();
  await outbox.add(submissionOf('b', 2));
  await clock.advance(40_000);
  expect(events.filter((event) => event.startsWith('link'))).toEqual(['link a', 'link b']);
});

test('waits for prompts of other processes that come first', async () => {
  const { outbox, clock, events, reasons, waiting } = open();
  const { prompt: other } = submissionOf('other', -5);
  waiting.add(other);
  await outbox.add(submissionOf('a'));
  await clock.advance(1000);
  expect(events).toEqual([]);
  expect(new Set(reasons)).toEqual(new Set(['a earlier_prompts']));
  waiting.delete(other);
  await clock.advance(200);
  expect(events).toContain('link a');
});

test('drops a prompt that another process has taken over', async () => {
  const { outbox, clock, events, lost } = open([new LeadershipLost()]);
  lost.add('a');
  await outbox.add(submissionOf('a'));
  await clock.advance(1000);
  expect(events).toEqual([]);
  expect(outbox.depth()).toBe(0);
});

test('has as many slots as its limit, waiting and reserved ones together', async () => {
  const { outbox } = open([busy], { limit: 2 });
  await outbox.add(submissionOf('a'));
  const reservation = outbox.reserve('ann');
  expect(reservation).toBeDefined();
  expect(outbox.reserve('ann')).toBeUndefined();
  expect(outbox.reserve('bob')).toBeDefined();
  reservation?.release();
  expect(outbox.reserve('ann')).toBeDefined();
});

test('stops at once when it is closed', async () => {
  const { outbox, clock, settled } = open([busy]);
  await outbox.add(submissionOf('a'));
  await settled();
  await outbox.close();
  expect(clock.sleeping()).toBe(0);
});

test('sends nothing more after it is closed', async () => {
  const closed: Promise<void>[] = [];
  const opened = open([accepted], { whileLinking: () => void closed.push(opened.outbox.close()) });
  await opened.outbox.add(submissionOf('a', 1));
  await opened.outbox.add(submissionOf('b', 2));
  await opened.settled();
  await Promise.all(closed);
  await opened.outbox.add(submissionOf('c', 3));
  await opened.settled();
  expect(opened.events).toEqual(['store a away', 'send a at 0 s', 'link a']);
});
