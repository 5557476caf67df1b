import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Called, call } from '../support/clients/raw-call.ts';
import { errorSummary } from '../support/golden/error-summary.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Received, type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { type WebRoot, makeWebRoot } from '../support/browser/web-root.ts';
import { flat } from '../support/graphs/workflows.ts';

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

type Entry = { readonly t: string; readonly m: string };

const withKey = (key: string): Record<string, string> => ({ 'X-API-Key': key });

async function raw(key: string): Promise<{ entries: Entry[]; size: object }> {
  const answer = await call(holdover.url, '/internal/logs/raw', { headers: withKey(key) });
  return JSON.parse(answer.text) as { entries: Entry[]; size: object };
}

async function subscribe(key: string, clientId: string, enabled: boolean): Promise<void> {
  const body = JSON.stringify({ clientId, enabled });
  const options = { method: 'PATCH', headers: withKey(key), body };
  const answer = await call(holdover.url, '/internal/logs/subscribe', options);
  expect([answer.status, answer.text]).toEqual([200, '']);
}

async function run(key: string, clientId: string): Promise<string> {
  const prompt = { prompt: flat(), client_id: clientId };
  const { body } = await postPrompt(holdover.url, prompt, { headers: withKey(key) });
  return body.prompt_id;
}

const isLog =
  (text: string) =>
  (frame: Received): boolean =>
    frame.kind === 'text' && frame.type === 'logs' && frame.text.includes(text);
const logFrames = (socket: Recorder): Received[] => socket.frames.filter(isLog(''));

const STARTED = {
  t: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  m: expect.stringMatching(/^Holdover \d+\.\d+\.\d+ started\n$/),
};

describe('/internal/logs', () => {
  // The panel of a front end that is opened after a restart would be empty.
  test('begins with the start of the server, for who has done nothing yet', async () => {
    expect((await raw('new')).entries).toEqual([STARTED]);
  });

  test('tells of the caller’s own prompts in v1’s words', async () => {
    const socket = await connect(holdover.wsUrl, { clientId: 'a', headers: withKey('words') });
    await socket.untilDone(await run('words', 'a'));
    await expect
      .poll(() => raw('words'))
      .toEqual({
        entries: [
          STARTED,
          { t: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), m: 'got prompt\n' },
          {
            t: expect.any(String),
            m: expect.stringMatching(/^Prompt executed in \d+\.\d\d seconds\n$/),
          },
        ],
        size: { cols: 80, rows: 24 },
      });
    const whole = await call(holdover.url, '/internal/logs', { headers: withKey('words') });
    expect(JSON.parse(whole.text)).toMatch(
      /^\S+ - Holdover \S+ started\n\S+ - got prompt\n\S+ - Prompt executed in .*\n$/,
    );
    await socket.close();
  });

  test('shows no user the lines or the key of another', async () => {
    await call(holdover.url, '/of-alice', { headers: withKey('alice-secret') });
    expect(JSON.stringify(await raw('alice-secret'))).toContain('GET /of-alice: unknown');
    expect(JSON.stringify(await raw('alice-secret'))).not.toContain('alice-secret');
    for (const other of ['bob', '']) {
      expect(JSON.stringify(await raw(other))).not.toContain('of-alice');
    }
  });

  test('has no alias under /api', async () => {
    expect((await call(holdover.url, '/api/internal/logs')).status).toBe(404);
  });
});

describe('PATCH /internal/logs/subscribe', () => {
  test('sends new lines to this socket; the size of the terminal once', async () => {
    const socket = await connect(holdover.wsUrl, { clientId: 'sub', headers: withKey('carol') });
    await subscribe('carol', 'sub', true);
    await run('carol', 'sub');
    await socket.until(isLog('Prompt executed in'));
    await run('carol', 'sub');
    await expect.poll(() => logFrames(socket).length).toBeGreaterThan(1);
    const [first, ...later] = logFrames(socket).map((frame) =>
      frame.kind === 'text' ? frame.data : {},
    );
    expect(first).toEqual({
      entries: expect.arrayContaining([{ t: expect.any(String), m: 'got prompt\n' }]),
      size: { cols: 80, rows: 24 },
    });
    expect(later.map(({ size }) => size)).toEqual(later.map(() => null));
    await socket.close();
  });

  test('reaches a socket that comes back under its id', async () => {
    await subscribe('dave', 'again', true);
    const socket = await connect(holdover.wsUrl, { clientId: 'again', headers: withKey('dave') });
    await run('dave', 'again');
    await socket.until(isLog('got prompt'));
    await socket.close();
  });

  test('with enabled false ends it', async () => {
    const socket = await connect(holdover.wsUrl, { clientId: 'end', headers: withKey('erin') });
    const witness = await connect(holdover.wsUrl, { clientId: 'see', headers: withKey('erin') });
    await subscribe('erin', 'end', true);
    await subscribe('erin', 'end', false);
    await subscribe('erin', 'see', true);
    await run('erin', 'end');
    await witness.until(isLog('Prompt executed in'));
    expect(logFrames(socket)).toEqual([]);
    await Promise.all([socket.close(), witness.close()]);
  });

  test('of another user’s socket brings nothing, to neither', async () => {
    const victim = await connect(holdover.wsUrl, { clientId: 'shared', headers: withKey('frank') });
    const spy = await connect(holdover.wsUrl, { clientId: 'shared', headers: withKey('grace') });
    await subscribe('grace', 'shared', true);
    await victim.untilDone(await run('frank', 'shared'));
    await run('grace', 'shared');
    await spy.until(isLog('Prompt executed in'));
    const entries = logFrames(spy).flatMap((f) => (f.kind === 'text' ? f.data.entries : []));
    expect(entries.filter(({ m }: Entry) => m === 'got prompt\n')).toHaveLength(1);
    expect(logFrames(victim)).toEqual([]);
    await Promise.all([victim.close(), spy.close()]);
  });
});
