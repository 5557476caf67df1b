// A ledger that is damaged or gone, in every way: no file of a user is ever removed for it.
import {
  copyFile,
  cp,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { runFolder, tempFolder } from '../support/graphs/v1-folders.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 60_000 });

let dataDir: string;
let plain: string;
let server: Holdover | undefined;
beforeEach(async () => {
  dataDir = await tempFolder('lost-test');
  plain = await tempFolder('lost-plain');
});
afterEach(async () => {
  await server?.dispose();
  server = undefined;
});

const database = (): string => join(dataDir, 'holdover.db');
const start = (args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) =>
  startHoldover({ dataDir, upstream: 'embedded', args: [...shared(), ...args], env });
const shared = () => [
  '--input-directory',
  join(plain, 'in'),
  '--output-directory',
  join(plain, 'out'),
];
const refused = (args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) =>
  runHoldover(['--port', '0', '--data-dir', dataDir, ...shared(), ...args], env);

let template: string | undefined;

/** Leaves the files of a stopped server: the first call runs one, later calls copy its files. */
async function fill(): Promise<void> {
  const options = { recursive: true, preserveTimestamps: true };
  if (template) {
    await cp(join(template, 'data'), dataDir, options);
    await cp(join(template, 'plain'), plain, options);
    return;
  }
  await fillByServer();
  template = await runFolder('lost-template');
  await cp(dataDir, join(template, 'data'), options);
  await cp(plain, join(template, 'plain'), options);
}

/** Uploads, a saved workflow and files in the shared folders, as a server leaves them. */
async function fillByServer(env: NodeJS.ProcessEnv = {}): Promise<void> {
  server = await start([], env);
  for (const name of ['a', 'b', 'c']) {
    const stored = await uploadInput(server.url, {
      bytes: Buffer.from(`picture ${name}`),
      name: `${name}.png`,
    });
    expect(stored.name).toBe(`${name}.png`);
  }
  const saved = await fetch(`${server.url}/userdata/workflows%2Fone.json`, {
    method: 'POST',
    body: '{"nodes":[]}',
  });
  expect(saved.status).toBe(200);
  await server.terminate();
  server = undefined;
}

/** Every file of users, by its path: blobs, userdata and the mirrored folders. */
async function filesIn(root: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(root.length + 1);
    if (/^(blobs|userdata|in|out)\//.test(name)) found.set(name, await readFile(path, 'utf8'));
  }
  return found;
}

const GARBAGE = 'no database '.repeat(1000);

const LOSSES: readonly [string, () => Promise<void>][] = [
  ['absent', () => rm(database())],
  ['empty', () => truncate(database(), 0)],
  ['garbage', () => writeFile(database(), GARBAGE)],
  [
    'the new one of another data directory',
    async () => {
      const other = await startHoldover({ upstream: 'embedded' });
      await other.terminate();
      await copyFile(join(other.dataDir, 'holdover.db'), database());
      await other.dispose();
    },
  ],
];

describe('a database that is', () => {
  test.each(LOSSES)('%s ends the start with one line, and no file goes', async (_, lose) => {
    await fill();
    const before = await filesIn(dataDir);
    const mirrored = await filesIn(plain);
    expect([before.size, mirrored.size]).toEqual([4, 3]);
    await lose();
    const database = await readFile(join(dataDir, 'holdover.db')).catch(() => undefined);
    const { code, stderr } = await refused();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: [^\n]+\n$/);
    expect(stderr).toMatch(/--start-anew, which moves|put ledger and files of one data directory/);
    expect(await filesIn(dataDir)).toEqual(before);
    expect(await filesIn(plain)).toEqual(mirrored);
    expect(await readFile(join(dataDir, 'holdover.db')).catch(() => undefined)).toEqual(database);
  });

  test('garbage starts anew when told to, with everything set aside', async () => {
    await fill();
    const backup = `${database()}.backup`;
    await copyFile(database(), backup);
    const before = await filesIn(dataDir);
    const mirrored = await filesIn(plain);
    await writeFile(database(), GARBAGE);
    server = await start(['--start-anew']);
    expect(server.log()).toContain('"event":"data_dir.set_aside"');
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    await server.terminate();
    const [aside = ''] = await readdir(join(dataDir, 'set-aside'));
    expect(aside).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z$/);
    const folder = join(dataDir, 'set-aside', aside);
    expect(await filesIn(folder)).toEqual(before);
    expect(await filesIn(plain)).toEqual(mirrored);

    // Told so once more, with nothing amiss, it moves nothing.
    server = await start(['--start-anew']);
    await server.terminate();
    expect(await readdir(join(dataDir, 'set-aside'))).toEqual([aside]);

    // The set-aside folder and the backup of the database are a whole data directory.
    await copyFile(backup, join(folder, 'holdover.db'));
    server = await startHoldover({ dataDir: folder, upstream: 'embedded' });
    const answer = await fetch(`${server.url}/view?filename=b.png&type=input`);
    expect([answer.status, await answer.text()]).toEqual([200, 'picture b']);
    await server.terminate();
    server = undefined;
  });

  test('gone while its last transactions are still in the log keeps that log', async () => {
    server = await start();
    await postPrompt(server.url, { prompt: { '1': { class_type: 'EmptyImage', inputs: {} } } });
    await server.kill9();
    await rm(database());
    const log = await readFile(`${database()}-wal`);
    expect(log.length).toBeGreaterThan(0);
    expect((await refused()).stderr).toContain('--start-anew');
    expect((await readFile(`${database()}-wal`)).equals(log)).toBe(true);
  });

  test('absent starts anew, too, and when it is put back says where its files are', async () => {
    await fill();
    const before = await filesIn(dataDir);
    await copyFile(database(), `${database()}.backup`);
    await rm(database());
    server = await start(['--start-anew']);
    const [aside = ''] = await readdir(join(dataDir, 'set-aside'));
    expect(await filesIn(join(dataDir, 'set-aside', aside))).toEqual(before);
    await uploadInput(server.url, { bytes: Buffer.from('a later picture'), name: 'later.png' });
    await server.terminate();
    await rename(`${database()}.backup`, database());
    const { code, stderr } = await refused();
    expect(code).toBe(1);
    expect(stderr).toContain('(see its folder set-aside)');
  });
});

test('a plain start in an empty folder, and one with mirrored folders full of files, are no loss', async () => {
  await mkdir(join(plain, 'in'));
  await writeFile(join(plain, 'in', 'mine.png'), 'mine');
  server = await start();
  await server.terminate();
  expect([...(await filesIn(plain)).keys()]).toEqual(['in/mine.png']);
});

const missing = redisMissing();

describe.skipIf(missing !== '')(`with ledgers in Redis${missing}`, () => {
  let redis: RedisServer;
  let other: RedisServer;
  beforeEach(async () => {
    [redis, other] = await Promise.all([startRedis(), startRedis()]);
  });
  afterEach(() => Promise.all([redis.dispose(), other.dispose()]));

  test('files of one are refused to another one and to a new database, also swapped, and stay', async () => {
    await fillByServer({ HOLDOVER_LEDGER: redis.url });
    const [mine, theirs] = [dataDir, `${dataDir}-other`];
    const before = await filesIn(mine);
    expect(before.size).toBe(4);
    for (const [env, whose] of [
      [{ HOLDOVER_LEDGER: other.url }, 'another ledger in Redis'],
      [{}, 'a ledger in Redis recorded them, see --ledger'],
    ] as const) {
      const { code, stderr } = await refused([], env);
      expect([code, stderr]).toEqual([1, expect.stringContaining(whose)]);
      expect(await filesIn(mine)).toEqual(before);
      expect(await readdir(mine)).not.toContain('holdover.db');
    }

    // Two data directories that are swapped by mistake.
    dataDir = theirs;
    onTestFinished(() => rm(theirs, { recursive: true, force: true }));
    await fillByServer({ HOLDOVER_LEDGER: other.url });
    const stored = await filesIn(theirs);
    const swapped = await refused(['--start-anew'], { HOLDOVER_LEDGER: redis.url });
    expect(swapped.stderr).toContain('is not the folder');
    expect(await filesIn(theirs)).toEqual(stored);

    dataDir = mine;
    server = await start([], { HOLDOVER_LEDGER: redis.url });
    expect((await fetch(`${server.url}/view?filename=a.png&type=input`)).status).toBe(200);
  });

  test('several processes that start anew at once set the files aside once', async () => {
    await fill();
    const before = await filesIn(dataDir);
    const env = { HOLDOVER_LEDGER: redis.url };
    const all = await Promise.all([1, 2, 3].map(() => start(['--start-anew'], env)));
    const [aside = '', ...more] = await readdir(join(dataDir, 'set-aside'));
    expect(more).toEqual([]);
    expect(await filesIn(join(dataDir, 'set-aside', aside))).toEqual(before);
    for (const one of all) expect((await fetch(`${one.url}/readyz`)).status).toBe(200);
    await Promise.all(all.map((one) => one.terminate()));
  });
});
