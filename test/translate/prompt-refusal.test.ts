import { describe, expect, test } from 'vitest';
import {
  jobErrorOf,
  outputsWithoutErrors,
  refuseShape,
  toPromptRefusal,
} from '../../src/translate/prompt-refusal.ts';
import { type Json, type JsonObject, parseJson } from '../../src/protocol/json.ts';
import type { V2Error } from '../../src/protocol/job-api.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { chain } from './script.ts';

const GRAPH = chain(['1', 'EmptyImage'], ['2', 'SaveImage']);
const refusal = (
  code: string,
  status = 422,
  details: Json = null,
  more: Partial<V2Error> = {},
): V2Error => ({
  code,
  status,
  message: `says ${code}`,
  details,
  ...more,
});

describe('POST /prompt refused by v2', () => {
  test.each([
    ['invalid_workflow', 422, 400, 'prompt_outputs_failed_validation'],
    ['workflow_format_ui', 422, 400, 'invalid_prompt'],
    ['missing_asset', 422, 400, 'prompt_outputs_failed_validation'],
    ['hash_mismatch', 409, 500, 'hash_mismatch'],
    ['blob_not_found', 404, 404, 'not_found'],
    ['idempotency_key_reuse', 422, 500, 'outcome_unknown'],
    ['queue_full', 429, 503, 'queue_full'],
    ['insufficient_credits', 402, 402, 'insufficient_credits'],
    ['not_found', 404, 404, 'not_found'],
    ['unauthorized', 401, 401, 'unauthorized'],
    ['forbidden', 403, 403, 'forbidden'],
    ['rate_limited', 429, 503, 'rate_limited'],
    ['deployment_not_ready', 429, 503, 'deployment_not_ready'],
    ['deployment_stopped', 422, 400, 'deployment_stopped'],
    ['upstream_error', 500, 500, 'upstream_error'],
    ['upstream_unreachable', 502, 503, 'upstream_unreachable'],
    ['sso_required', 403, 403, 'sso_required'],
    ['payload_too_large', 413, 400, 'payload_too_large'],
    ['invalid_request', 422, 400, 'invalid_prompt'],
    ['a_new_one', 422, 400, 'a_new_one'],
    ['a_new_one', 429, 503, 'a_new_one'],
    ['a_new_one', 418, 418, 'a_new_one'],
    ['a_new_one', 999, 502, 'a_new_one'],
    ['bad_upstream_response', 407, 502, 'bad_upstream_response'],
    ['constructor', 500, 500, 'constructor'],
  ])('%s (%i) is %i %s', (code, v2Status, status, type) => {
    const answer = toPromptRefusal(refusal(code, v2Status), GRAPH);
    expect(answer.status).toBe(status);
    expect(answer.body.error.type).toBe(type);
    expect(answer.body.node_errors).toEqual({});
  });

  test('429 is never passed on, except for what it means to v1 clients', () => {
    const about = refusal('forbidden', 403, null, { message: 'your subscription has ended' });
    expect(toPromptRefusal(about, GRAPH)).toMatchObject({
      status: 429,
      body: { error: { type: 'subscription_inactive' } },
    });
  });

  test.each([
    [403, 'inactive_subscription', 'Not active.', 429],
    [402, 'subscription_required', 'Required.', 429],
    [429, 'plan_ended', 'Your subscription is not active.', 429],
    [429, 'monthly_limit', 'Spent.', 503],
    [403, 'sso_required', 'Sign in with your subscription.', 403],
    [402, 'insufficient_credits', 'Or take a subscription.', 402],
  ])('%i %s "%s" is told as %i', (status, code, message, shown) => {
    expect(toPromptRefusal(refusal(code, status, null, { message }), GRAPH).status).toBe(shown);
  });

  test('Retry-After is handed on', () => {
    const busy = refusal('queue_full', 429, null, { retryAfterSeconds: 7 });
    expect(toPromptRefusal(busy, GRAPH).retryAfterSeconds).toBe(7);
    expect(toPromptRefusal(refusal('queue_full', 429), GRAPH)).not.toHaveProperty(
      'retryAfterSeconds',
    );
    const stopped = refusal('deployment_stopped', 422, null, { retryAfterSeconds: 7 });
    expect(toPromptRefusal(stopped, GRAPH)).not.toHaveProperty('retryAfterSeconds');
  });

  test('errors in v1 shape pass through unchanged', () => {
    const error = {
      type: 'invalid_prompt',
      message: 'no',
      details: "Node ID '#1'",
      extra_info: { a: 1 },
    };
    const node_errors = {
      '1': {
        errors: [{ type: 't', message: 'm', details: 'd', extra_info: {} }],
        dependent_outputs: ['2'],
        class_type: 'X',
      },
    };
    const answer = toPromptRefusal(refusal('invalid_workflow', 422, { error, node_errors }), GRAPH);
    expect(answer.body).toEqual({ error, node_errors });
  });

  test("details are the output nodes' own errors, one a line", () => {
    const own = {
      type: 't',
      message: 'Required input is missing',
      details: 'images',
      extra_info: {},
    };
    const node_errors = {
      '1': { errors: [own], dependent_outputs: ['2'], class_type: 'EmptyImage' },
      '2': { errors: [own, own], dependent_outputs: ['2'], class_type: 'SaveImage' },
    };
    const answer = toPromptRefusal(refusal('invalid_workflow', 422, { node_errors }), GRAPH, {
      outputs: ['2'],
    });
    expect(answer.body.error).toEqual({
      type: 'prompt_outputs_failed_validation',
      message: 'Prompt outputs failed validation',
      details: 'Required input is missing: images\nRequired input is missing: images',
      extra_info: {},
    });
  });

  test.each([
    ['missing_input', 'required_input_missing', 'width'],
    ['value_not_in_list', 'value_not_in_list', 'width'],
    ['invalid_type', 'invalid_input_type', 'width'],
    ['type_mismatch', 'return_type_mismatch', 'width'],
    ['is too shiny', 'custom_validation_failed', 'width - is too shiny'],
    ['toString', 'custom_validation_failed', 'width - toString'],
  ])('a {field, reason} list with the reason %s is %s', (reason, type, details) => {
    const node_errors: JsonObject = { '1': [{ field: 'width', reason }] };
    const answer = toPromptRefusal(refusal('invalid_workflow', 422, { node_errors }), GRAPH, {
      outputs: ['2'],
    });
    expect(answer.body.node_errors).toMatchObject({
      '1': {
        errors: [{ type, details, extra_info: { input_name: 'width' } }],
        dependent_outputs: ['2'],
        class_type: 'EmptyImage',
      },
    });
  });

  test('an unknown class refuses the whole prompt by name, and no node', () => {
    const node_errors: JsonObject = {
      '1': [{ field: 'class_type', reason: 'unknown_class' }],
      '2': [{ field: 'images', reason: 'missing_input' }],
    };
    const { body } = toPromptRefusal(refusal('invalid_workflow', 422, { node_errors }), GRAPH);
    expect(body).toEqual({
      error: {
        type: 'missing_node_type',
        message: "Node 'EmptyImage' not found. The custom node may not be installed.",
        details: "Node ID '#1'",
        extra_info: { node_id: '1', class_type: 'EmptyImage', node_title: 'EmptyImage' },
      },
      node_errors: {},
    });
  });

  test.each(['unknown_class', 'missing_input'])('the first node with %s is named', (reason) => {
    const errors = JSON.stringify([{ field: 'class_type', reason }]);
    const details = parseJson(`{"node_errors":{"2":${errors},"1":${errors}}}`);
    const graph = parseJson('{"2":{"class_type":"B"},"1":{"class_type":"A"}}') as unknown as Graph;
    const error = refusal('invalid_workflow', 422, details);
    const refused = toPromptRefusal(error, graph);
    const named = refused.body.error.extra_info['node_id'];
    expect(named ?? jobErrorOf(error, refused, graph).node_id).toBe('2');
  });

  test.each<[message: string, id: string, title: string]>([
    ["Node 'Bob's' not found. The custom node may not be installed.", '1', "Bob's"],
    ["Node 'SaveImage' not found. The custom node may not be installed.", '2', 'SaveImage'],
    ['Cannot execute because node SaveImage does not exist.', '2', 'SaveImage'],
  ])('the node is found that an engine means by %s', (message, node_id, node_title) => {
    const graph = { ...GRAPH, '1': { ...GRAPH['1']!, _meta: { title: "Bob's" } } };
    const { body } = toPromptRefusal(refusal('invalid_workflow', 422, {}, { message }), graph);
    expect(body.error).toMatchObject({
      type: 'missing_node_type',
      extra_info: { node_id, node_title },
    });
  });

  test('of both shapes the native one counts, whole', () => {
    const native = {
      '1': {
        errors: [{ type: 't', message: 'm', details: 'd', extra_info: { a: [1] } }],
        dependent_outputs: ['2'],
        class_type: 'X',
      },
    };
    const details = { node_errors: { '1': [{ field: 'w', reason: 'r' }] }, x_native: native };
    const { body } = toPromptRefusal(refusal('invalid_workflow', 422, details), GRAPH);
    expect(body.node_errors).toEqual(native);
  });

  test.each<Json>([5, [], { '1': [] }, { '1': { errors: [] } }])(
    'x_native %j is no native shape: the contract’s counts',
    (x_native) => {
      const details = { node_errors: { '1': [{ field: 'width', reason: 'r' }] }, x_native };
      const { body } = toPromptRefusal(refusal('invalid_workflow', 422, details), GRAPH);
      expect(body.node_errors['1']?.errors).toMatchObject([{ details: 'width - r' }]);
    },
  );

  test('a {field, reason} list about a value shows the value that was sent', () => {
    const graph = { '1': { class_type: 'EmptyImage', inputs: { width: 0, image: ['2', 0] } } };
    const node_errors: JsonObject = {
      '1': [
        { field: 'width', reason: 'value_smaller_than_min' },
        { field: 'image', reason: 'type_mismatch' },
      ],
    };
    const { body } = toPromptRefusal(refusal('invalid_workflow', 422, { node_errors }), graph);
    expect(body.node_errors['1']?.errors).toEqual([
      {
        type: 'value_smaller_than_min',
        message: 'Value smaller than the minimum',
        details: 'width',
        extra_info: { input_name: 'width', received_value: 0 },
      },
      {
        type: 'return_type_mismatch',
        message: 'Return type mismatch between linked nodes',
        details: 'image',
        extra_info: { input_name: 'image' },
      },
    ]);
  });

  test.each([
    [{ missing_ids: ['b'] }, ['2']],
    [null, ['1', '2']],
    [{ missing_ids: ['c'] }, []],
  ])('a missing asset (%j) is an invalid file of the inputs that named it', (details, nodes) => {
    const placed = [
      { nodeId: '1', input: 'image', value: 'x.png', assetId: 'a' },
      { nodeId: '2', input: 'image', value: 'y.png', assetId: 'b' },
    ];
    const { node_errors } = toPromptRefusal(refusal('missing_asset', 422, details), GRAPH, {
      resolvedFiles: placed,
      outputs: ['2'],
    }).body;
    expect(Object.keys(node_errors)).toEqual(nodes);
    const said = Object.values(node_errors).flatMap(({ errors }) =>
      errors.map((entry) => entry.details),
    );
    expect(said).toEqual(
      nodes.map((id) => `image - Invalid image file: ${id === '1' ? 'x.png' : 'y.png'}`),
    );
  });

  test('a refusal says nothing of the inside of the upstream', () => {
    const leaky = refusal('upstream_error', 500, null, { message: 'db 10.0.0.3 refused' });
    expect(toPromptRefusal(leaky, GRAPH).body.error.message).not.toContain('10.0.0.3');
  });

  test('nonsense in details does no harm', () => {
    const odd = {
      error: 5,
      node_errors: { '1': 'x', '2': [5, null, {}], __proto__: [] },
    } as unknown as Json;
    expect(toPromptRefusal(refusal('invalid_workflow', 422, odd), GRAPH).body.error.type).toBe(
      'prompt_outputs_failed_validation',
    );
  });
});

describe('a partly good prompt', () => {
  const failing = (...dependent_outputs: string[]) => ({
    errors: [],
    dependent_outputs,
    class_type: 'X',
  });

  test.each([
    [{ '1': failing('b') }, ['a']],
    [{ '1': failing('a', 'b') }, []],
    [{ a: failing() }, ['b']],
    [{ '1': failing() }, ['a', 'b']],
    [{}, []],
  ])('%j leaves %j', (nodeErrors, good) => {
    expect(outputsWithoutErrors(nodeErrors, ['a', 'b'])).toEqual(good);
  });
});

describe('what is no API-format graph', () => {
  test('a UI-format graph is an invalid_prompt', () => {
    expect(refuseShape({ nodes: [], links: [], version: 0.4 })).toMatchObject({
      status: 400,
      body: {
        error: {
          type: 'invalid_prompt',
          message: expect.stringMatching(/Export it in API format/),
        },
      },
    });
  });

  const NO_CLASS = 'has no class_type. The workflow may be corrupted or a custom node is missing.';
  const NOT_FOUND = 'not found. The custom node may not be installed.';
  test.each<[JsonObject[string], string]>([
    [{ inputs: {} }, `Node 'ID #7' ${NO_CLASS}`],
    [{ _meta: { title: 'Mine' } }, `Node 'Mine' ${NO_CLASS}`],
    [[], `Node 'ID #7' ${NO_CLASS}`],
    [{ class_type: null }, `Node 'None' ${NOT_FOUND}`],
    [{ class_type: 5, _meta: { title: 'Mine' } }, `Node 'Mine' ${NOT_FOUND}`],
  ])('the node %j is a missing_node_type', (node, message) => {
    expect(refuseShape({ '7': node })).toMatchObject({
      status: 400,
      body: { error: { type: 'missing_node_type', message, extra_info: { node_id: '7' } } },
    });
  });

  test('a graph is not refused', () => {
    expect(refuseShape({ '1': { class_type: 'X', inputs: {} } })).toBeUndefined();
  });
});

test('a node with very many missing files takes time in proportion to their number', () => {
  // A copy of the list for each would be minutes.
  const resolvedFiles = Array.from({ length: 300_000 }, (_, i) => ({
    nodeId: '1',
    input: `image${i}`,
    value: 'x.png',
    assetId: 'a',
  }));
  const { body } = toPromptRefusal(refusal('missing_asset', 422, {}), GRAPH, { resolvedFiles });
  expect(body.node_errors['1']?.errors).toHaveLength(300_000);
});
