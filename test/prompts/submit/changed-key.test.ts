// A plan may get another key between two attempts. A process that takes over must know which key may
// have made a job, so each key is stored before it is sent.
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/observability/log.ts';
import { Outbox } from '../../../src/prompts/submit/outbox.ts';
import { SubmissionRecovery } from '../../../src/prompts/submit/recover.ts';
import { DEFAULT_RETRY_POLICY } from '../../../src/prompts/submit/retry-policy.ts';
import { createSubmissionRetry } from '../../../src/prompts/submit/retry.ts';
import { createSubmissionSender } from '../../../src/prompts/submit/send.ts';
import type { SubmitRequest } from '../../../src/protocol/job-api.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { PLAN, examplePrompt } from './example-plan.ts';

const NOT_TAKEN = { status: 503, code: 'x', message: '', details: null, outcome: 'not_taken' };
const FULL = { status: 429, code: 'queue_full', message: '', details: null };
/** The output `2` is not valid. */
const INVALID = {
  status: 422,
  code: 'invalid_workflow',
  message: 'Prompt outputs failed validation',
  details: { node_errors: { 2: { errors: [], dependent_outputs: ['2'], class_type: 'B' } } },
};

const TWO_NODES = { 1: { class_type: 'A', inputs: {} }, 2: { class_type: 'B', inputs: {} } };

/** The service gives these answers, then accepts the prompt. */
function open(answers: readonly object[], outputs: readonly string[] = []) {
  const clock = createFakeClock(0);
  const events: string[] = [];
  let submissions = 0;
  const context = {
    jobs: {
      recover: async () => ({ ok: true, value: { isCertain: true } }),
      async submit(_: unknown, { idempotencyKey }: SubmitRequest) {
        events.push(`send ${idempotencyKey}`);
        const error = answers[submissions++];
        return error ? { ok: false, error } : { ok: true, value: { id: 'job' } };
      },
    },
    ledger: {
      prompts: {
        async setPlan(_: string, { intentJson }: { intentJson: string }) {
          const { key, where } = JSON.parse(intentJson) as { key: string; where: string };
          events.push(`store ${key} ${where}`);
        },
      },
    },
    promptEventLog: { isLeader: () => true },
    livePrompts: { inOutbox: () => new Set(), removeFromOutbox() {}, setWaitReason() {} },
    follower: { appendEntry: async () => true },
    linkJob: async () => {},
    retryPolicy: DEFAULT_RETRY_POLICY,
    outboxLimit: 1,
    clock,
    deadlineClock: clock,
    log: silentLogger(),
  };
  const sender = createSubmissionSender(context as never);
  const submissionRetry = createSubmissionRetry({ ...context, sender } as never);
  const common = { ...context, sender, submissionRetry } as never;
  const submission = {
    prompt: examplePrompt({ waitReason: 'in_outbox' }),
    plan: { ...PLAN, graph: TWO_NODES, outputs },
    clientKnows: 'accepted',
  } as const;
  return { common, events, clock, submission };
}

const SENT = ['store k away', 'send k', 'store k.again1 away', 'send k.again1'];
const LAST = ['store k.again2 away', 'send k.again2'];

test.each([
  ['sent for the first time', false],
  ['that may have been sent before', true],
])('in the outbox, for a prompt %s', async (_, mayHaveBeenSent) => {
  const { common, events, clock, submission } = open([NOT_TAKEN, NOT_TAKEN]);
  const outbox = new Outbox(common);
  onTestFinished(() => outbox.close());
  await outbox.add({ ...submission, mayHaveBeenSent });
  await clock.advance(60_000);
  expect(events.filter((event) => !event.endsWith('here'))).toEqual([...SENT, ...LAST]);
});

test('in recovery', async () => {
  const { common, events, clock, submission } = open([NOT_TAKEN, NOT_TAKEN]);
  const submissionRecovery = new SubmissionRecovery(common);
  onTestFinished(() => submissionRecovery.close());
  submissionRecovery.recover({ ...submission, mayResend: true });
  await clock.advance(60_000);
  expect(events).toEqual([...SENT, ...LAST]);
});

test('in the outbox, for the valid outputs of a prompt, when there is no room for them', async () => {
  const { common, events, clock, submission } = open([INVALID, FULL], ['1', '2']);
  const outbox = new Outbox(common);
  onTestFinished(() => outbox.close());
  await outbox.add({ ...submission, mayHaveBeenSent: false });
  await clock.advance(60_000);
  const first = ['store k away', 'send k', 'store k.1 away', 'send k.1'];
  expect(events).toEqual([...first, 'store k.1 here', 'store k.1 away', 'send k.1']);
});
