import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Called, call } from '../support/clients/raw-call.ts';
import { errorSummary } from '../support/golden/error-summary.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type WebRoot, makeWebRoot } from '../support/browser/web-root.ts';

let web: WebRoot;
let holdover: Holdover;
beforeAll(async () => {
  web = await makeWebRoot();
  holdover = await startHoldover({ args: ['--front-end-root', web.root], upstream: 'embedded' });
});
afterAll(async () => {
  await holdover.dispose();
  await web.dispose();
});

const JSON_TYPE = 'application/json; charset=utf-8';
const WORKFLOWS = 'userdata?dir=workflows&recurse=true&split=false&full_info=true';

/** The requests of a front end before it shows anything, with the parts of the answers it needs. */
const BOOT = [
  ['/api/users', { storage: 'server', migrated: true }],
  ['/api/settings', {}],
  ['/api/system_stats', { system: { os: process.platform }, devices: [{ type: 'cpu' }] }],
  ['/api/features', { supports_preview_metadata: true }],
  ['/api/object_info', { SaveImage: { output_node: true } }],
  [
    '/api/extensions',
    [
      '/extensions/core/clipspace.js',
      '/extensions/pack/web/deep.js',
      '/extensions/holdover/starter-graph.js',
    ],
  ],
  ['/api/embeddings', []],
  ['/api/i18n', {}],
  ['/api/workflow_templates', { holdover: ['pattern_over_picture'] }],
  ['/api/global_subgraphs', {}],
  ['/api/node_replacements', {}],
  ['/api/queue', { queue_running: [], queue_pending: [] }],
  ['/api/history?max_items=64', {}],
  ['/api/jobs?status=completed&limit=200&offset=0', { jobs: [] }],
  ['/api/prompt', { exec_info: { queue_remaining: 0 } }],
  ['/api/user', { id: 'local', status: 'active' }],
  ['/api/experiment/models/checkpoints', []],
  ['/api/v2/userdata', []],
  ['/internal/folder_paths', {}],
  ['/internal/logs/raw', { size: { cols: 80, rows: 24 } }],
  ['/internal/files/input', ['example.png [input]']],
  ['/internal/files/output', []],
  ['/internal/files/temp', []],
  ['/templates/index.json', [{ moduleName: 'default', type: 'image' }]],
] as const;

describe('what a browser front end asks at its start', () => {
  test.each(BOOT)('%s is answered in JSON', async (path, expected) => {
    const answer = await call(holdover.url, path, { headers: { 'Comfy-User': '' } });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, JSON_TYPE]);
    expect(JSON.parse(answer.text)).toMatchObject(expected);
  });

  test.each([
    [`/api/${WORKFLOWS}`, 404],
    ['/api/userdata/comfy.templates.json', 404],
    ['/api/userdata/user.css', 404],
    ['/api/userdata/workflows%2F.index.json', 404],
    ['/api/workflow_templates/pack/name.json', 404],
    ['/api/experiment/models/nope', 404],
    ['/api/experiment/models/preview/checkpoints/0/x.safetensors', 404],
    ['/internal/files/nope', 400],
  ])('%s, which there is not yet, is %i and no failure of the server', async (path, status) => {
    expect((await call(holdover.url, path)).status).toBe(status);
  });

  test('/api/experiment/models names the folders, not where they are', async () => {
    const folders = JSON.parse((await call(holdover.url, '/api/experiment/models')).text);
    const checkpoints = { name: 'checkpoints', folders: ['checkpoints'] };
    expect(folders).toContainEqual(expect.objectContaining(checkpoints));
    expect(JSON.stringify(folders)).not.toContain('/');
  });

  test('POST /users answers the id of an account', async () => {
    const body = '{"username":" Bob B. "}';
    const answer = await call(holdover.url, '/users', { method: 'POST', body });
    expect(answer.status).toBe(200);
    expect(answer.text).toMatch(/^"Bob-B-_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"$/);
  });

  test.each(['{"username":" "}', '{"username":5}', '{}'])(
    'POST /users %s is refused',
    async (body) => {
      const answer = await call(holdover.url, '/users', { method: 'POST', body });
      expect([answer.status, answer.text]).toEqual([400, '{"error": "username not provided"}']);
    },
  );
});

describe('an unknown route', () => {
  const times = (text: string): number => holdover.log().split(text).length - 1;
  const ask = (path: string, method = 'GET'): Promise<Called> =>
    call(holdover.url, path, { method, headers: { 'X-API-Key': 'secret-key' } });

  test('is a 404, logged once however often it is asked for', async () => {
    for (let i = 0; i < 3; i++) {
      const answer = await ask('/api/manager/version?token=secret-token');
      // The key below `/api` makes it a call to the hosted service.
      expect(errorSummary(answer)).toBe('404 code not_found');
    }
    const line = /"path":"\/api\/manager\/version","status":404,"msg":"unknown route"/g;
    expect(holdover.log().match(line)).toHaveLength(1);
  });

  test('keeps no secret in that line', async () => {
    expect(times('secret-token')).toBe(0);
    expect(times('secret-key')).toBe(0);
  });

  test.each([
    ['GET', '/internal/nope', 404, '404: Not Found'],
    ['POST', '/nope', 405, '405: Method Not Allowed'],
    ['GET', '/nope', 404, ''],
  ])('%s %s is answered in the v1 manner: %i', async (method, path, status, text) => {
    expect(await ask(path, method)).toMatchObject({ status, text });
  });
});
