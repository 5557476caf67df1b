import { expect, test } from 'vitest';
import {
  differenceRows,
  differencesOf,
  documentedRows,
  frameDifferences,
} from '../../src/console/differences.ts';
import { apiOf } from '../../src/console/traffic/recorded-call.ts';
import { DIFFERENCE_RULES } from '../../src/console/traffic/difference-rules.ts';

/**
 * Rows that no single call or frame shows: it takes several, or the files and pictures of a run.
 */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  'slow-sockets',
  'turn-order',
  'one-at-a-time',
  'partial-cache',
  'letter-case',
  'user-turns',
  'v2-jobs-remote',
  'example-input',
  // Every answer has them: to name them each time would hide the other rows.
  'headers',
  'deprecation-headers',
  // These compare Holdover with the published documents, not with a server.
  'contract-graphs',
  'contract-content-type',
  'contract-tool',
  'contract-job-list',
  'contract-bounds',
  'contract-original',
  // Calls of the router are not calls of v1.
  'router-freed-keys',
  'router-timeouts',
  'router-provider-keys',
  'router-schema-url',
  'router-statuses',
]);

test('every row of docs/differences.md has its rule or is not shown, and every rule its row', () => {
  const shown = documentedRows().filter((row) => !NOT_SHOWN.has(row));
  expect(Object.keys(DIFFERENCE_RULES)).toEqual(shown);
  expect(documentedRows()).toEqual(expect.arrayContaining([...NOT_SHOWN]));
  expect(differenceRows(documentedRows()).map(({ row }) => row)).toEqual(documentedRows());
});

const HOSTED = { 'x-api-key': 'k' };

test.each([
  ['POST', '/prompt', 400, {}, '{}', ['wording', 'unknown-class', 'bad-input']],
  ['POST', '/api/prompt', 503, {}, '', ['queue-limits', 'service-trouble', 'brownout']],
  ['POST', '/prompt', 200, {}, '{"client_id":"a"}', ['after-the-answer']],
  [
    'POST',
    '/prompt',
    200,
    {},
    '{"client_id":"a","extra_data":{"api_key_comfy_org":"x"}}',
    ['after-the-answer', 'secrets'],
  ],
  ['GET', '/view?filename=a.png&preview=webp', 200, {}, '', ['picture-formats', 'pixels']],
  ['GET', '/api/v2/jobs', 400, {}, '', []],
  ['POST', '/v2/models/local/digest', 400, {}, '{}', []],
  ['POST', '/v1/models/local/digest?x=1', 503, {}, '{}', []],
  ['GET', '/readyz', 503, {}, '', []],
  ['GET', '/?x=1', 200, {}, '', ['start-page']],
  ['GET', '/models/loras', 200, {}, '', ['models']],
  ['GET', '/prompt', 200, {}, '', []],
  ['GET', '/ws?clientId=a', 101, {}, '', ['shared-ids', 'late-sockets', 'keepalive']],
  [
    'GET',
    '/api/jobs/x',
    404,
    HOSTED,
    '',
    ['newer-routes', 'hosted-errors', 'hosted-statuses', 'hosted-status-words'],
  ],
] as const)('%s %s answered %d shows rows', (method, target, status, headers, body, rows) => {
  const facts = { headers, isRemote: false, body: () => body };
  expect(differencesOf({ method, target, status }, facts)).toEqual(rows);
});

test.each([
  ['executing', '', false, []],
  ['preview', 'node 1', false, ['sampler-previews']],
  ['progress_state', '120 nodes', false, ['large-graphs']],
  ['progress_state', '2 nodes', true, ['sparse-progress']],
  ['execution_error', 'failed', false, ['current-inputs', 'wording', 'host-paths']],
  ['execution_cached', '', true, ['unknown-cache']],
] as const)('a frame %s (%s), remote: %s, shows rows', (type, text, isRemote, rows) => {
  expect(frameDifferences({ type, text, bytes: 100 }, { isRemote })).toEqual(rows);
});

test.each([
  ['/prompt', 'v1'],
  ['/models/loras', 'v1'],
  ['/api/v2/jobs?limit=1', 'v2'],
  ['/api/v2x', 'v1'],
  ['/api/v2/userdata?path=workflows', 'v1'],
  ['/v1/models', 'other'],
  ['/v2/models/local/digest', 'other'],
  ['/readyz?x', 'other'],
  ['/', 'other'],
] as const)('%s is a path of %s', (target, api) => {
  expect(apiOf(target)).toBe(api);
});
