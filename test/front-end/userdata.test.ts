import { mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBodyReader } from '../../src/http/json-body.ts';
import { toPythonText } from '../../src/protocol/python-json-text.ts';
import { createTestApp } from '../support/app/v1-routes.ts';
import { type CallOptions, type Called, call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

const SECRET = 'of another user';
const LIMITS = ['--max-upload-size', '0.5', '--limits', '{"userdataBytes":2097152}'];

let holdover: Holdover;
beforeAll(async () => {
  holdover = await startHoldover({ args: LIMITS, upstream: 'embedded' });
  await ask('POST', '/userdata/planted.txt', 'planted');
  const home = join(holdover.dataDir, 'userdata/local');
  await mkdir(join(holdover.dataDir, 'userdata/elsewhere'));
  await writeFile(join(holdover.dataDir, 'userdata/elsewhere/secret.txt'), SECRET);
  await symlink('../elsewhere', join(home, 'folder-link'));
  await symlink('../elsewhere/secret.txt', join(home, 'file-link.txt'));
});
afterAll(() => holdover.dispose());

function ask(
  method: string,
  path: string,
  body?: string | Buffer,
  more: CallOptions = {},
): Promise<Called> {
  return call(holdover.url, path, { method, ...(body !== undefined && { body }), ...more });
}

const json = async (path: string, more: CallOptions = {}): Promise<any> =>
  JSON.parse((await ask('GET', path, undefined, more)).text);

const as = (key: string): CallOptions => ({ headers: { 'X-API-Key': key } });
const ALICE = as('key of alice');
const BOB = as('key of bob');

const NAMES = [
  'workflow.json',
  'workflows/.index.json',
  'workflows/deep/er/still.json',
  'workflows/100%.json',
  'workflows/50%20off.json',
  'workflows/a+b & c?d#e.json',
  'workflows/Größe 日本語 🎨.json',
  'workflows/a:b;c"d\'.json',
  'workflows/...three.json',
];

describe('/userdata/{file}', () => {
  test.each(NAMES)('keeps %s under exactly its name', async (name) => {
    const path = `/userdata/${encodeURIComponent(name)}`;
    const content = Buffer.from(`{"name":"${name}","bytes":"\u0000\ufffd"}`);
    const written = await ask('POST', path, content, ALICE);
    expect([written.status, written.text]).toEqual([200, toPythonText(JSON.stringify(name))]);
    const got = await ask('GET', `/api${path}`, undefined, ALICE);
    expect([got.status, got.body.equals(content)]).toEqual([200, true]);
    expect(got.headers['content-type']).toBe('application/json');
    const tree = (await json('/v2/userdata', ALICE)) as { path: string }[];
    expect(tree.map((row) => row.path)).toContain(name);
    expect((await ask('DELETE', path, undefined, ALICE)).status).toBe(204);
    expect((await ask('GET', path, undefined, ALICE)).status).toBe(404);
    expect((await ask('DELETE', path, undefined, ALICE)).status).toBe(404);
  });

  test('is written over unless that is forbidden', async () => {
    const path = '/userdata/over.json';
    expect((await ask('POST', `${path}?overwrite=false`, 'one')).status).toBe(200);
    const refused = await ask('POST', `${path}?overwrite=false`, 'two');
    expect([refused.status, refused.text]).toEqual([409, 'File already exists']);
    expect((await ask('GET', path)).text).toBe('one');
    expect((await ask('POST', path, 'three')).status).toBe(200);
    expect((await ask('GET', path)).text).toBe('three');
  });

  test('only one of many that must not write over wins', async () => {
    const path = '/userdata/race.json?overwrite=false';
    const texts = Array.from({ length: 12 }, (_, i) => `writer ${i}`);
    const answers = await Promise.all(texts.map((text) => ask('POST', path, text)));
    const winners = texts.filter((_, i) => answers[i]?.status === 200);
    expect(winners).toHaveLength(1);
    expect((await ask('GET', '/userdata/race.json')).text).toBe(winners[0]);
  });

  test('is always one writer’s whole file', async () => {
    const path = '/userdata/whole.txt';
    const texts = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(200_000));
    await ask('POST', path, texts[0]);
    const reads = texts.map(async (text) => {
      await ask('POST', path, text);
      return (await ask('GET', path)).text;
    });
    for (const read of await Promise.all(reads)) expect(texts).toContain(read);
  });

  test('tells what v1 tells of a file when asked for full_info', async () => {
    const info = await ask('POST', '/userdata/workflows%2Finfo.json?full_info=true', '{"a": 3}');
    const milliseconds = { modified: expect.any(Number), created: expect.any(Number) };
    expect(JSON.parse(info.text)).toEqual({
      path: 'workflows/info.json',
      size: 8,
      ...milliseconds,
    });
    expect(Date.now() - JSON.parse(info.text).modified).toBeLessThan(60_000);
  });

  test('has validators', async () => {
    await ask('POST', '/userdata/ranged.txt', '0123456789');
    const whole = await ask('GET', '/userdata/ranged.txt');
    expect(whole.headers).toMatchObject({ 'content-length': '10', 'accept-ranges': 'bytes' });
    // `fetch` says it with every condition.
    const etag = { 'If-None-Match': whole.headers.etag ?? '', 'Cache-Control': 'no-cache' };
    expect((await ask('GET', '/userdata/ranged.txt', undefined, { headers: etag })).status).toBe(
      304,
    );
    await ask('POST', '/userdata/ranged.txt', '9876543210');
    const after = await ask('GET', '/userdata/ranged.txt', undefined, { headers: etag });
    expect([after.status, after.text]).toEqual([200, '9876543210']);
  });

  test.each([
    ['user.css', 'text/css', 'inline'],
    ['page.html', 'application/octet-stream', 'attachment'],
    ['code.js', 'application/octet-stream', 'attachment'],
    ['drawing.svg', 'application/octet-stream', 'attachment'],
    ['picture.png', 'image/png', 'attachment'],
    ['noextension', 'application/octet-stream', 'attachment'],
  ])('serves %s as %s: a browser runs nothing of it', async (name, type, disposition) => {
    await ask('POST', `/userdata/${name}`, 'x');
    const { headers } = await ask('GET', `/userdata/${name}`);
    expect(headers['content-type']).toBe(type);
    expect(headers['content-disposition']).toBe(disposition);
    expect(headers['cache-control'] ?? '').not.toContain('public');
  });

  test.each([
    ['GET', '/userdata/workflows/a.json', 404],
    ['POST', '/userdata/workflows/a.json', 405],
    ['DELETE', '/userdata/workflows/a.json', 405],
    ['PUT', '/userdata/a.json', 405],
    ['GET', '/userdata/', 404],
  ])('%s %s is no call of v1: %i', async (method, path, status) => {
    expect((await ask(method, path, 'x')).status).toBe(status);
  });

  test('beyond the size limit is 413 in v1’s words, whether or not it said so before', async () => {
    const big = Buffer.alloc(600_000, 'x');
    const answer = await ask('POST', '/userdata/big.txt', big);
    expect([answer.status, answer.text]).toEqual([
      413,
      'Maximum request body size 524288 exceeded.',
    ]);
    const chunked = { method: 'POST', body: new Blob([big]).stream(), duplex: 'half' };
    const streamed = await fetch(`${holdover.url}/userdata/big.txt`, chunked as RequestInit);
    expect(streamed.status).toBe(413);
    expect((await ask('GET', '/userdata/big.txt')).status).toBe(404);
    expect(await readdir(join(holdover.dataDir, 'spool'))).toEqual([]);
  });

  test('beyond the quota is 507; other users have their own', async () => {
    const part = Buffer.alloc(500_000, 'x');
    const names = ['1', '2', '3', '4', '5'];
    const statuses = [];
    for (const name of names) {
      statuses.push((await ask('POST', `/userdata/quota-${name}`, part, BOB)).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 507]);
    // Writing over needs no more than the difference.
    expect((await ask('POST', '/userdata/quota-1', part, BOB)).status).toBe(200);
    expect((await ask('POST', '/userdata/quota-5', part, ALICE)).status).toBe(200);
    await ask('DELETE', '/userdata/quota-2', undefined, BOB);
    expect((await ask('POST', '/userdata/quota-5', part, BOB)).status).toBe(200);
    for (const name of names) await ask('DELETE', `/userdata/quota-${name}`, undefined, BOB);
  });
});

describe('/userdata/{file}/move/{dest}', () => {
  const move = (from: string, to: string, query = ''): Promise<Called> =>
    ask('POST', `/userdata/${encodeURIComponent(from)}/move/${encodeURIComponent(to)}${query}`);

  test('moves a file, makes folders for it, and answers where it is', async () => {
    await ask('POST', '/userdata/from.json', 'moved');
    const answer = await move('from.json', 'new/folder/to.json');
    expect([answer.status, answer.text]).toEqual([200, '"new/folder/to.json"']);
    expect((await ask('GET', '/userdata/from.json')).status).toBe(404);
    expect((await ask('GET', '/userdata/new%2Ffolder%2Fto.json')).text).toBe('moved');
    expect((await ask('GET', '/userdata/new%2Ffolder')).status).toBe(403);
    const info = await move('new/folder/to.json', 'from.json', '?full_info=true');
    expect(JSON.parse(info.text)).toMatchObject({ path: 'from.json', size: 5 });
  });

  test.each([
    ['nothing.json', 'x.json', '', 404],
    ['planted.txt', 'taken.json', '?overwrite=false', 409],
    ['planted.txt', '../x.json', '', 403],
    ['../x.json', 'planted.txt', '', 403],
    ['planted.txt', 'folder-link/x.txt', '', 400],
    ['folder-link/secret.txt', 'stolen.txt', '', 400],
    ['file-link.txt', 'stolen.txt', '', 400],
    ['planted.txt', 'planted.txt/below.txt', '', 400],
  ])('%s to %s%s is %i and changes nothing', async (from, to, query, status) => {
    await ask('POST', '/userdata/taken.json', 'taken');
    expect((await move(from, to, query)).status).toBe(status);
    expect((await ask('GET', '/userdata/planted.txt')).text).toBe('planted');
    expect((await ask('GET', '/userdata/taken.json')).text).toBe('taken');
    expect((await ask('GET', '/userdata/stolen.txt')).status).toBe(404);
  });
});

describe('/userdata?dir=', () => {
  const CAROL = as('key of carol');
  const FILES = ['.hidden.json', 'b.json', 'a.json', 's/c.json', 's/.h/d.json', 's/t/e.json'];
  beforeAll(async () => {
    for (const file of FILES) {
      await ask('POST', `/userdata/${encodeURIComponent(`workflows/${file}`)}`, '{}', CAROL);
    }
  });

  test.each([
    ['dir=workflows', ['a.json', 'b.json']],
    ['dir=workflows/', ['a.json', 'b.json']],
    ['dir=workflows&recurse=true', ['a.json', 'b.json', 's/c.json', 's/t/e.json']],
    ['dir=workflows/s&recurse=true', ['c.json', 't/e.json']],
    [
      'dir=workflows&split=true',
      [
        ['a.json', 'a.json'],
        ['b.json', 'b.json'],
      ],
    ],
    [
      'dir=workflows%2Fs&recurse=true&split=true',
      [
        ['c.json', 'c.json'],
        ['t/e.json', 't', 'e.json'],
      ],
    ],
    ['dir=.', []],
  ])('%s lists %j', async (query, expected) => {
    expect(await json(`/userdata?${query}`, CAROL)).toEqual(expected);
  });

  test('with full_info tells sizes and times, whatever split says', async () => {
    const rows = await json(
      '/api/userdata?dir=workflows&recurse=true&split=true&full_info=true',
      CAROL,
    );
    expect(rows.map(({ path }: { path: string }) => path)).toEqual([
      'a.json',
      'b.json',
      's/c.json',
      's/t/e.json',
    ]);
    expect(rows[0]).toEqual({
      path: 'a.json',
      size: 2,
      modified: expect.any(Number),
      created: expect.any(Number),
    });
  });

  test.each([
    ['', 400, 'Directory not provided'],
    ['dir=', 400, 'Directory not provided'],
    ['dir=nope', 404, 'Directory not found'],
    ['dir=workflows/a.json', 200, '[]'],
    ['dir=..', 403, 'Invalid directory'],
    ['dir=workflows/../../elsewhere', 403, 'Invalid directory'],
    ['dir=/etc', 403, 'Invalid directory'],
    ['dir=%2e%2e%2felsewhere', 403, 'Invalid directory'],
    ['dir=..%5celsewhere', 403, 'Invalid directory'],
  ])('?%s is %i: %s', async (query, status, text) => {
    expect(await ask('GET', `/userdata?${query}`, undefined, CAROL)).toMatchObject({
      status,
      text,
    });
  });

  test('does not follow links', async () => {
    const listed = JSON.stringify(await json('/userdata?dir=.&recurse=true'));
    expect(listed).toContain('planted.txt');
    expect(listed).not.toContain('link');
    expect((await ask('GET', '/userdata?dir=folder-link')).status).toBe(404);
  });

  test('/v2/userdata shows the whole tree, folders first', async () => {
    const rows = (await json('/api/v2/userdata', CAROL)) as Record<string, string>[];
    expect(rows.map(({ path, type }) => `${path} ${type}`)).toEqual([
      'workflows/s/.h directory',
      'workflows/s directory',
      'workflows/s/t directory',
      'workflows directory',
      'workflows/.hidden.json file',
      'workflows/a.json file',
      'workflows/b.json file',
      'workflows/s/c.json file',
      'workflows/s/.h/d.json file',
      'workflows/s/t/e.json file',
    ]);
    expect(rows.at(-1)).toEqual({
      name: 'e.json',
      path: 'workflows/s/t/e.json',
      type: 'file',
      size: 2,
      modified: expect.any(Number),
    });
    const below = (await json('/v2/userdata?path=workflows%2Fs%2Ft', CAROL)) as { path: string }[];
    expect(below.map(({ path }) => path)).toEqual(['workflows/s/t/e.json']);
  });

  test.each([
    ['path=nope', 404, 'Requested path not found'],
    ['path=workflows%2Fa.json', 400, 'Requested path is not a directory'],
    ['path=..%2F..', 400, 'Invalid path requested'],
    ['path=/etc', 400, 'Invalid path requested'],
  ])('/v2/userdata?%s is %i: %s', async (query, status, text) => {
    const answer = await ask('GET', `/v2/userdata?${query}`, undefined, CAROL);
    expect(answer).toMatchObject({ status, text });
  });

  test('/v2/userdata of who has nothing yet is empty', async () => {
    expect(await json('/v2/userdata', as('unused key'))).toEqual([]);
  });
});

const HOSTILE = [
  ['..%2Felsewhere%2Fsecret.txt', 403],
  ['%2e%2e%2felsewhere%2fsecret.txt', 403],
  ['workflows%2F..%2F..%2Felsewhere%2Fsecret.txt', 403],
  ['..%5Celsewhere%5Csecret.txt', 403],
  ['%2Fetc%2Fpasswd', 403],
  ['C%3A%5Cx', 403],
  ['..', 403],
  ['.', 400],
  ['%2e', 400],
  ['a%2F..', 400],
  ['folder-link%2Fsecret.txt', 404],
  ['file-link.txt', 404],
  ['a%00.json', 400],
  ['a%0d%0ax.json', 400],
  ['con.json', 400],
  ['trailing.', 400],
  ['a%2F%2Fb%2F%20', 400],
  ['n'.repeat(300), 400],
  [`${'d%2F'.repeat(40)}x`, 400],
].map(([name, status]) => ({ name: String(name), status, title: String(name).slice(0, 50) }));

describe('no name leaves the user’s folder', () => {
  test.each(HOSTILE)('GET $title is $status', async ({ name, status }) => {
    const answer = await ask('GET', `/userdata/${name}`);
    expect(answer.status).toBe(status);
    expect(answer.text).not.toContain(SECRET);
  });

  test.each(HOSTILE)('POST and DELETE of $title touch nothing', async ({ name }) => {
    for (const method of ['POST', 'DELETE']) {
      const answer = await ask(method, `/userdata/${name}`, 'overwritten');
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
    }
    const secret = join(holdover.dataDir, 'userdata/elsewhere/secret.txt');
    expect(await readFile(secret, 'utf8')).toBe(SECRET);
    expect(await readdir(join(holdover.dataDir, 'userdata/elsewhere'))).toEqual(['secret.txt']);
    expect(await readdir(holdover.dataDir)).not.toContain('x.json');
  });
});

describe('two users', () => {
  test('see, change and remove nothing of each other', async () => {
    const path = '/userdata/workflows%2Fmine.json';
    await ask('POST', path, 'alice', ALICE);
    expect((await ask('GET', path, undefined, BOB)).status).toBe(404);
    expect((await ask('DELETE', path, undefined, BOB)).status).toBe(404);
    expect((await ask('POST', `${path}/move/x.json`, '', BOB)).status).toBe(404);
    expect((await ask('POST', `${path}?overwrite=false`, 'bob', BOB)).status).toBe(200);
    expect((await ask('GET', path, undefined, ALICE)).text).toBe('alice');
    expect((await ask('GET', path)).status).toBe(404);
  });

  test('are told apart by their key, not by what Comfy-User says', async () => {
    await ask('POST', '/userdata/hers.json', 'alice', ALICE);
    const pretender = { headers: { ...BOB.headers, 'Comfy-User': 'local' } };
    expect((await ask('GET', '/userdata/hers.json', undefined, pretender)).status).toBe(404);
  });

  test('leave no key in the names of folders, which no other user can read', async () => {
    const root = join(holdover.dataDir, 'userdata');
    expect((await readdir(root)).join(' ')).not.toContain('key of');
    expect(((await stat(root)).mode & 0o077).toString(8)).toBe('0');
  });
});

test('/settings of one user have an end too: 507, and those before are kept', async () => {
  const app = await createTestApp({ bodies: createBodyReader({ maxBytes: 18 * 1024 * 1024 }) });
  const large = (mb: number): Promise<Called> => {
    const body = JSON.stringify('x'.repeat(mb * 1024 * 1024));
    return app.ask('/api/settings/Comfy.Large', { method: 'POST', body });
  };
  const statuses = [(await large(1)).status, (await large(17)).status];
  const kept = await app.ask('/settings');
  await app.close();
  expect(statuses).toEqual([200, 507]);
  expect(kept.body.length - 1024 * 1024).toBeLessThan(100);
});

test('what was acknowledged survives a kill', async () => {
  const { dataDir } = holdover;
  await ask('POST', '/userdata/kept.json', 'kept');
  await ask('POST', '/api/settings/Comfy.Kept', '[1]');
  await holdover.kill9();
  holdover = await startHoldover({ args: LIMITS, dataDir, upstream: 'embedded' });
  expect((await ask('GET', '/userdata/kept.json')).text).toBe('kept');
  expect(await json('/settings')).toEqual({ 'Comfy.Kept': [1] });
});
