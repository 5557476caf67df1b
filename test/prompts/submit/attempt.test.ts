// Sending a plan: v2 takes a graph as a whole or not at all; v1 runs the valid outputs and reports the rest.
import { expect, test } from 'vitest';
import { KEY_LABEL, type SubmissionPlan } from '../../../src/prompts/submit/plan.ts';
import { createSendPlan } from '../../../src/prompts/submit/attempt.ts';
import { fakePorts } from '../fake-ports.ts';
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

/** The upstream answers with these, the last one again and again. */
function open(answers: (V2Error | Job)[]) {
  const requests: SubmitRequest[] = [];
  const recorded: string[] = [];
  const api = {
    async submit(_: unknown, request: SubmitRequest) {
      requests.push(request);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      return answer && 'id' in answer
        ? { ok: true, value: answer }
        : { ok: false, error: answer as V2Error };
    },
  };
  const sendPlan = createSendPlan(fakePorts({ jobs: { api } }));
  const record = async (plan: SubmissionPlan) => void recorded.push(plan.idempotencyKey);
  const send = (plan = PLAN, graphJson?: string) => sendPlan(CALLER, plan, { record, graphJson });
  return { sendPlan, send, requests, recorded };
}

test('sends the whole graph with its key, label, secrets and queue position', async () => {
  const { send, requests } = open([JOB]);
  expect(await send()).toMatchObject({ input: 'accepted', job: JOB });
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
  const { send, requests } = open([JOB]);
  await send(PLAN, '{"json":true}');
  await send({ ...PLAN, isWhole: false, outputs: ['2'] }, '{"json":true}');
  expect(requests.map(({ workflowJson }) => workflowJson)).toEqual(['{"json":true}', undefined]);
});

test.each<[string, Partial<V2Error>, string]>([
  ['an unknown outcome', { outcome: 'unknown' }, 'unknown'],
  ['a key that was used before', { code: 'idempotency_key_reuse', status: 409 }, 'key used'],
  ['an upstream that was not reached', { outcome: 'not sent' }, 'not sent'],
  ['a full queue', { status: 429, code: 'queue_full' }, 'full'],
  ['a request that is wrong', { status: 400, code: 'invalid_request' }, 'refused'],
  ['a key that is not accepted', { status: 401, code: 'unauthorized' }, 'refused for now'],
  ['a page of a proxy', { status: 502, code: 'bad_upstream_response' }, 'refused for now'],
])('%s is classified', async (_, error, input) => {
  expect(await open([errorOf(error)]).send()).toMatchObject({ input, plan: { promptKey: 'k' } });
});

test('the valid outputs run under a changed key that is recorded first', async () => {
  const { send, requests, recorded } = open([NODE_1_IS_INVALID, JOB]);
  const sent = await send();
  expect(sent).toMatchObject({ input: 'accepted', plan: { outputs: ['2'] } });
  expect(Object.keys(sent.nodeErrors)).toEqual(['1']);
  expect(requests.map(({ workflow }) => Object.keys(workflow))).toEqual([['1', '2'], ['2']]);
  expect(recorded).toEqual(['k.1']);
});

test('a plan that may have made a job is not changed after a refusal', async () => {
  const { sendPlan, requests } = open([NODE_1_IS_INVALID]);
  expect((await sendPlan(CALLER, PLAN, {})).input).toBe('refused');
  expect(requests).toHaveLength(1);
});
