import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contractRows, expectDocumented, expectRows } from '../support/clients/contract-rows.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Fuzzed, fuzz, installSchemathesis } from '../support/clients/schemathesis.ts';
import { MUST_RUN } from '../sdk/sdk-run.ts';

const installed = await installSchemathesis();
const notRun = installed.ok ? '' : ` (NOT RUN: ${installed.why})`;

/** Findings that stay; `docs/differences.md` says why. */
const ROWS = contractRows({
  content_type_conformance: [
    ['contract-content-type', 200, { operations: ['GET /api/v2/assets/{id}/content'] }],
  ],
  response_schema_conformance: [
    [
      'contract-tool',
      200,
      { operations: ['GET /api/v2/jobs/{id}/events'], body: /^: keep-alive\n\nevent: status\n/ },
    ],
  ],
  unsupported_method: [
    ['contract-job-list', 200, { operations: ['POST /api/v2/jobs'], body: /^\{"jobs":\[/ }],
  ],
  positive_data_acceptance: [
    [
      'contract-bounds',
      422,
      { body: /"Idempotency-Key (must have 1 to 255 characters|has a control character)/ },
    ],
    [
      'contract-bounds',
      422,
      {
        operations: ['POST /api/v2/assets'],
        body: /has a control character|is malformed|must be a media type|must be a relative path/,
        isRare: true,
      },
    ],
    [
      'contract-graphs',
      422,
      {
        operations: ['POST /api/v2/jobs'],
        body: /"code":"(invalid_workflow|workflow_format_ui|missing_asset)"/,
      },
    ],
  ],
  negative_data_rejection: [
    ['contract-tool', 200, { operations: ['POST /api/v2/assets'], isRare: true }],
  ],
});

const WORKFLOW = {
  '1': { class_type: 'EmptyImage', inputs: { width: 16, height: 16, batch_size: 1, color: 1 } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'contract' } },
};
const EXAMPLES = 10;

let holdover: Holdover;
let fuzzed: Fuzzed;

async function doneJob(): Promise<string> {
  const body = JSON.stringify({ workflow: WORKFLOW });
  const answer = await fetch(`${holdover.url}/api/v2/jobs`, { method: 'POST', body });
  const { id, urls } = (await answer.json()) as { id: string; urls: { events: string } };
  await (await fetch(holdover.url + urls.events)).text();
  return id;
}

async function assets(count: number): Promise<readonly { id: string; hash: string }[]> {
  const made = Array.from({ length: count }, async (_, i) => {
    const body = new FormData();
    body.set('content_type', 'text/plain');
    body.set('file_path', `input/${i}.txt`);
    body.set('file', new Blob([String(i)]), 'a.txt');
    const answer = await fetch(`${holdover.url}/api/v2/assets`, { method: 'POST', body });
    return (await answer.json()) as { id: string; hash: string };
  });
  return Promise.all(made);
}

describe.skipIf(!installed.ok && !MUST_RUN)(`schemathesis against openapi-v2.yaml${notRun}`, () => {
  beforeAll(async () => {
    holdover = await startHoldover({ upstream: 'embedded' });
    const [job, asset, ...spare] = [await doneJob(), ...(await assets(EXAMPLES + 10))];
    const { id = '', hash = '' } = asset ?? {};
    const ofJob = { path: { id: job } };
    fuzzed = await fuzz({
      document: 'openapi-v2.yaml',
      url: holdover.url,
      examples: EXAMPLES,
      known: {
        'POST /api/v2/assets': { body: { content_type: 'text/plain' }, drop: ['expected_hash'] },
        'POST /api/v2/assets/from-hash': { body: { hash } },
        'HEAD /api/v2/assets/by-hash/{hash}': { path: { hash } },
        'GET /api/v2/assets/{id}': { path: { id } },
        'DELETE /api/v2/assets/{id}': { path: { id: spare.map((each) => each.id) } },
        'GET /api/v2/assets/{id}/content': { path: { id } },
        'POST /api/v2/jobs': { body: { workflow: WORKFLOW } },
        'GET /api/v2/jobs/{id}': ofJob,
        'GET /api/v2/jobs/{id}/workflow': ofJob,
        'GET /api/v2/jobs/{id}/events': ofJob,
        'POST /api/v2/jobs/{id}/cancel': ofJob,
      },
    });
  }, 300_000);

  afterAll(() => holdover?.dispose());

  test.each([
    ['POST /api/v2/assets', 200],
    ['POST /api/v2/assets/from-hash', 201],
    ['HEAD /api/v2/assets/by-hash/{hash}', 200],
    ['GET /api/v2/assets/{id}', 200],
    ['DELETE /api/v2/assets/{id}', 204],
    ['GET /api/v2/assets/{id}/content', 200],
    ['POST /api/v2/jobs', 201],
    ['GET /api/v2/jobs/{id}', 200],
    ['GET /api/v2/jobs/{id}/workflow', 200],
    ['GET /api/v2/jobs/{id}/events', 200],
    ['POST /api/v2/jobs/{id}/cancel', 200],
  ])('%s was called, with success too', (operation, status) => {
    const answers = fuzzed.answers.get(operation) ?? new Map<number, number>();
    expect([...answers.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(2);
    expect(answers.get(status) ?? 0).toBeGreaterThan(0);
  });

  test('every row says why in docs/differences.md', () => expectDocumented(ROWS));

  test('nothing was found that is not a named row', () => expectRows(fuzzed.findings, ROWS));
});
