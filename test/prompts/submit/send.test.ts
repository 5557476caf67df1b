// Sending a plan: v2 takes a graph as a whole or not at all; v1 runs the valid outputs and reports the rest.
import { expect, test } from 'vitest';
import { KEY_LABEL, type SubmissionPlan } from '../../../src/prompts/submit/plan.ts';
import { createSubmissionSender } from '../../../src/prompts/submit/send.ts';
import type { SubmitRequest, V2Error } from '../../../src/protocol/job-api.ts';
import type { Job } from '../../../src/protocol/v2.ts';

const CALLER = { user: 'ann' };
const JOB = { id: 'j' } as Job;
const GRAPH = {
  '1': { class_type: 'Save', inputs: { a: 1 } },
  '2': { class_type: 'Save', inputs: { a: 2 } },
};
const PLAN = {
  promptKey: 'k',
  idempotencyKey: 'k',
  graph: GRAPH,
  placed: [],
  outputs: ['1', '2'],
  isWhole: true,
  number: 3,
  extraData: {},
  secrets: { api_key: 's' },
  ownSecrets: [],
  lacksSecrets: false,
} as unknown as SubmissionPlan;

const errorOf = (more: Partial<V2Error>): V2Error => ({
  status: 500,
  code: 'x',
  message: 'm',
  details: null,
  ...more,
});

const NODE_1_IS_INVALID = errorOf({
  status: 422,
  code: 'invalid_workflow',
  details: { node_errors: { '1': [{ field: 'a', reason: 'value_too_small' }] } },
});

/** A sender whose upstream answers with these, the last one again and again. */
function open(answers: (V2Error | Job)[]) {
  const requests: SubmitRequest[] = [];
  const intents: string[] = [];
  const sender = createSubmissionSender({
    jobs: {
      async submit(_: unknown, request: SubmitRequest) {
        requests.push(request);
        const answer = answers.length > 1 ? answers.shift() : answers[0];
        return answer && 'id' in answer
          ? { ok: true, value: answer }
          : { ok: false, error: answer as V2Error };
      },
    },
    ledger: {
      files: {},
      prompts: {
        async setPlan(key: string, { intentJson }: { intentJson: string }) {
          intents.push(`${key} ${(JSON.parse(intentJson) as { key: string }).key}`);
        },
      },
    },
  } as unknown as Parameters<typeof createSubmissionSender>[0]);
  return { sender, requests, intents };
}

test('sends the whole graph with its key, label, secrets and queue position', async () => {
  const { sender, requests } = open([JOB]);
  expect(await sender.send(CALLER, PLAN)).toMatchObject({ kind: 'accepted', job: JOB });
  expect(requests).toMatchObject([
    {
      workflow: GRAPH,
      idempotencyKey: 'k',
      metadata: { [KEY_LABEL]: 'k' },
      extraData: { api_key: 's' },
      order: 3,
    },
  ]);
});

test('gives the JSON along when the graph is sent unchanged', async () => {
  const { sender, requests } = open([JOB]);
  await sender.sendRecorded(CALLER, PLAN, '{"json":true}');
  await sender.sendRecorded(CALLER, { ...PLAN, isWhole: false, outputs: ['2'] }, '{"json":true}');
  expect(requests.map(({ workflowJson }) => workflowJson)).toEqual(['{"json":true}', undefined]);
});

test.each<[string, Partial<V2Error>, string]>([
  ['an outcome the client cannot know', { outcome: 'unknown' }, 'unknown'],
  ['a key that was used before', { code: 'idempotency_key_reuse', status: 409 }, 'unknown'],
  ['an upstream that was not reached', { outcome: 'not_sent' }, 'unsent'],
  ['a full queue', { status: 429, code: 'queue_full' }, 'no capacity'],
  ['a request that is wrong', { status: 400, code: 'invalid_request' }, 'refused'],
])('%s is classified', async (_, error, kind) => {
  const { sender } = open([errorOf(error)]);
  expect(await sender.send(CALLER, PLAN)).toMatchObject({ kind, plan: { promptKey: 'k' } });
});

test('a used key is reported with an unknown outcome', async () => {
  const { sender } = open([errorOf({ code: 'idempotency_key_reuse', status: 409 })]);
  expect(await sender.send(CALLER, PLAN)).toMatchObject({ mayResend: false });
});

test('a plan whose request reached the service gets a new key for the next attempt', async () => {
  const { sender } = open([errorOf({ outcome: 'not_taken' })]);
  const sent = await sender.send(CALLER, PLAN);
  expect([sent.kind, sent.plan.idempotencyKey]).toEqual(['unsent', 'k.again1']);
});

test('the valid outputs run under a changed key that is recorded first', async () => {
  const { sender, requests, intents } = open([NODE_1_IS_INVALID, JOB]);
  const sent = await sender.sendRecorded(CALLER, PLAN);
  expect(sent).toMatchObject({ kind: 'accepted', plan: { outputs: ['2'] } });
  expect(Object.keys((sent as { nodeErrors: object }).nodeErrors)).toEqual(['1']);
  expect(requests.map(({ workflow }) => Object.keys(workflow))).toEqual([['1', '2'], ['2']]);
  expect(intents).toEqual(['k k.1']);
});

test('a plan that may not be recorded is recorded before it is sent', async () => {
  const { sender, intents } = open([JOB]);
  await sender.send(CALLER, PLAN);
  await sender.sendUnchanged(CALLER, PLAN);
  expect(intents).toEqual(['k k', 'k k']);
});

test('a refused repetition of a plan stays refused', async () => {
  const { sender, requests } = open([NODE_1_IS_INVALID]);
  expect((await sender.sendUnchanged(CALLER, PLAN)).kind).toBe('refused');
  expect(requests).toHaveLength(1);
});

test('nothing is sent again after a refusal that came late: it may have made a job', async () => {
  const { sender, requests } = open([{ ...NODE_1_IS_INVALID, outcome: 'refused_late' }]);
  expect((await sender.send(CALLER, PLAN)).kind).toBe('refused');
  expect(requests).toHaveLength(1);
});
