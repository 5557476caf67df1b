import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { V1_ROUTES } from '../../src/migration/v1-routes.ts';
import { MUST_RUN } from '../sdk/sdk-run.ts';
import { contractRows, expectDocumented, expectRows } from '../support/clients/contract-rows.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Fuzzed, fuzz, installSchemathesis } from '../support/clients/schemathesis.ts';

const installed = await installSchemathesis();
const notRun = installed.ok ? '' : ` (NOT RUN: ${installed.why})`;

/** Operations of the document that Holdover does not serve. */
const NOT_SERVED = [
  'GET /api/assets/remote-metadata',
  'GET /api/experiment/models/preview/{folder}/{path_index}/{filename}',
  'GET /api/files/mask-layers',
  'POST /api/assets/download',
];

/** Findings that stay; `docs/differences.md` says why. */
const ROWS = contractRows({
  status_code_conformance: [
    [
      'hosted-statuses',
      400,
      { body: /"code": "(invalid_request|control_character)"|control character/ },
    ],
    ['hosted-statuses', 401, { body: /"code": "unauthorized"/ }],
  ],
  positive_data_acceptance: [
    ['control-characters', 400, { body: /control character/ }],
    ['hosted-routes', 415, { operations: ['POST /api/assets'] }],
    ['hosted-routes', 400, { operations: ['POST /api/assets/from-hash'], body: /INVALID_HASH/ }],
    [
      'unsafe-names',
      400,
      {
        operations: ['GET /api/view', 'POST /api/upload/image', 'POST /api/userdata/{file}'],
        body: /is not a possible file name/,
        isRare: true,
      },
    ],
    [
      'contract-original',
      400,
      {
        operations: ['GET /api/jobs', 'POST /api/assets'],
        body: /"message": "(Invalid status value|user_metadata must be|preview_id names no asset)/,
        isRare: true,
      },
    ],
    [
      'contract-graphs',
      400,
      {
        operations: ['POST /api/prompt'],
        body: /"code": "(prompt_no_outputs|invalid_prompt|missing_node_type|prompt_outputs_failed_validation)"/,
      },
    ],
    [
      'bad-upload',
      400,
      {
        operations: ['POST /api/upload/image', 'POST /api/upload/mask'],
        body: /"code": "invalid_upload"/,
      },
    ],
    [
      'hosted-userdata',
      400,
      { operations: ['GET /api/userdata'], body: /^Directory not provided$/ },
    ],
  ],
  response_schema_conformance: [
    ['newer-routes', 200, { operations: ['GET /api/global_subgraphs/{id}'], body: /^null$/ }],
    [
      'hosted-userdata',
      200,
      { operations: ['POST /api/userdata/{file}'], body: /^"|^\{"path": ?/ },
    ],
    [
      'hosted-status-words',
      200,
      { operations: ['GET /api/job/{job_id}/status'], body: /"status": "success"/ },
    ],
    ['contract-original', 200, { operations: ['GET /api/object_info'] }],
  ],
  content_type_conformance: [
    ['contract-content-type', 200, { operations: ['GET /api/userdata/{file}'] }],
  ],
  negative_data_rejection: [
    ['contract-tool', 201, { operations: ['POST /api/assets'], isRare: true }],
    [
      'contract-original',
      200,
      {
        operations: [
          'GET /api/jobs',
          'POST /api/history',
          'POST /api/queue',
          'POST /api/userdata/{file}',
          'PUT /api/assets/{id}',
        ],
      },
    ],
  ],
  unsupported_method: [
    ['hosted-more-routes', 200, { operations: ['POST /api/history'] }],
    ['hosted-more-routes', 204, { operations: ['GET /api/jobs/{job_id}'], isRare: true }],
    [
      'contract-original',
      404,
      {
        operations: [
          'POST /api/assets/from-hash',
          'POST /api/interrupt',
          'POST /api/upload/image',
          'POST /api/upload/mask',
        ],
        body: /"code": "(not_found|ASSET_NOT_FOUND)"/,
      },
    ],
  ],
});

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete'];
const KEY = 'comfyui-contract';
const HEADERS = { 'X-API-Key': KEY };
const WORKFLOW = {
  '1': { class_type: 'EmptyImage', inputs: { width: 16, height: 16, batch_size: 1, color: 1 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'contract' } },
};

/** `METHOD /api/path/{parameter}` of each operation of the document. */
function operations(): readonly string[] {
  const file = new URL('../../fixtures/openapi/openapi-cloud.yaml', import.meta.url);
  const { paths } = parse(readFileSync(file, 'utf8')) as { paths: Record<string, object> };
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map((method) => `${method.toUpperCase()} ${path}`),
  );
}

function isServed(operation: string): boolean {
  const route = operation.replaceAll(/\{\w+\}/g, ':');
  const served = Object.keys(V1_ROUTES).map((name) => name.replaceAll(/:\w+/g, ':'));
  return served.includes(route) || served.includes(route.replace(' /api/', ' /'));
}

test('every operation of the document is served, or named as one that is not', () => {
  expect(operations().length).toBeGreaterThan(30);
  const others = operations().filter((operation) => !isServed(operation));
  expect(others.toSorted()).toEqual(NOT_SERVED.toSorted());
});

describe.skipIf(!installed.ok && !MUST_RUN)(
  `schemathesis against openapi-cloud.yaml, in hosted form${notRun}`,
  () => {
    let holdover: Holdover;
    let fuzzed: Fuzzed;

    beforeAll(async () => {
      const args = ['--dialect', 'hosted', '--local-token', KEY];
      holdover = await startHoldover({ upstream: 'embedded', args });
      const promptId = await donePrompt();
      const ofJob = { path: { job_id: promptId, prompt_id: promptId } };
      await call('/userdata/known.json', 'POST', '{}');
      fuzzed = await fuzz({
        document: 'openapi-cloud.yaml',
        url: holdover.url,
        headers: HEADERS,
        examples: 5,
        without: NOT_SERVED,
        known: {
          'POST /api/prompt': { body: { prompt: WORKFLOW } },
          'GET /api/history_v2/{prompt_id}': ofJob,
          'GET /api/jobs/{job_id}': ofJob,
          'GET /api/job/{job_id}/status': ofJob,
          'GET /api/view': { query: { filename: 'contract_00001_.png', type: 'output' } },
          'GET /api/userdata/{file}': { path: { file: 'known.json' } },
        },
      });
    }, 300_000);
    afterAll(() => holdover?.dispose());

    async function call(path: string, method = 'GET', body?: string): Promise<any> {
      const init = { method, headers: HEADERS, ...(body !== undefined && { body }) };
      return (await fetch(`${holdover.url}/api${path}`, init)).json();
    }

    async function donePrompt(): Promise<string> {
      const { prompt_id: id } = await call('/prompt', 'POST', JSON.stringify({ prompt: WORKFLOW }));
      while ((await call(`/job/${id}/status`)).status !== 'success') await setTimeout(50);
      return id;
    }

    test.each(operations().filter(isServed))('%s was called', (operation) => {
      const answers = fuzzed.answers.get(operation) ?? new Map<number, number>();
      expect([...answers.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(1);
    });

    test('every row says why in docs/differences.md', () => expectDocumented(ROWS));

    test('nothing was found that is not a named row', () => expectRows(fuzzed.findings, ROWS));
  },
);
