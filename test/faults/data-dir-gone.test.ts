// A data directory that goes, or is replaced, under a running server: nothing is promised any more.
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { DataDirWatch } from '../../src/data-folder/watch.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 60_000 });

let parent: string;
let dataDir: string;
beforeEach(async () => {
  parent = await tempFolder('gone');
  dataDir = join(parent, 'data');
});

const movedDir = (): string => join(parent, 'away');
const moveAway = () => rename(dataDir, movedDir());
const GONE: readonly [string, () => Promise<unknown>][] = [
  ['removed', () => rm(dataDir, { recursive: true })],
  ['moved away', moveAway],
  [
    'removed and made anew',
    async () => {
      await rm(dataDir, { recursive: true });
      await mkdir(dataDir);
    },
  ],
  [
    'replaced by a copy of itself',
    async () => {
      await cp(dataDir, movedDir(), { recursive: true });
      await rename(dataDir, join(parent, 'earlier'));
      await rename(movedDir(), dataDir);
    },
  ],
];
const ID_GONE: readonly [string, () => Promise<unknown>][] = [
  ['without its folder.id', () => rm(join(dataDir, 'folder.id'))],
  ['with the folder.id of another', () => writeFile(join(dataDir, 'folder.id'), 'x'.repeat(36))],
];

function store(url: string): Promise<Response> {
  return fetch(`${url}/userdata/workflows%2Fa.json`, { method: 'POST', body: '{}' });
}

async function expectStops(server: Holdover): Promise<void> {
  const within = { timeout: 10_000 };
  await expect.poll(() => server.log(), within).toContain('"event":"storage.lost"');
  expect(server.log()).toContain(`stopping: --data-dir ${dataDir} is gone or was replaced`);
  expect(await server.terminate()).toBe(1);
}

describe('a server of its own', () => {
  let server: Holdover;
  beforeEach(async () => {
    server = await startHoldover({ dataDir, upstream: 'embedded' });
  });
  afterEach(() => server.dispose());

  test('whose data directory is moved away stores nothing, and stops', async () => {
    expect((await store(server.url)).status).toBe(200);
    await moveAway();
    const answers = [store(server.url), store(server.url)].map((sent) =>
      sent.then(
        ({ status }) => status,
        () => 'cut off',
      ),
    );
    expect(await Promise.all(answers)).not.toContain(200);
    await expectStops(server);
  });

  test('whose database alone is replaced stops', async () => {
    const database = join(dataDir, 'holdover.db');
    await writeFile(`${database}.copy`, await readFile(database));
    await rename(`${database}.copy`, database);
    expect((await store(server.url).catch(() => undefined))?.status).not.toBe(200);
    await expectStops(server);
  });
});

const missing = redisMissing();
describe.skipIf(missing !== '')(`servers that share a ledger in Redis${missing}`, () => {
  let redis: RedisServer;
  beforeEach(async () => void (redis = await startRedis()));
  afterEach(() => redis.dispose());

  test('whose data directory is moved away all stop', async () => {
    const env = { HOLDOVER_LEDGER: redis.url };
    const start = () => startHoldover({ dataDir, upstream: 'embedded', env });
    const servers = [await start(), await start()];
    await rename(dataDir, movedDir());
    for (const server of servers) {
      expect((await store(server.url).catch(() => undefined))?.status).not.toBe(200);
    }
    for (const server of servers) await expectStops(server);
    for (const server of servers) await server.dispose();
  });
});

describe('the watch', () => {
  const database = () => join(dataDir, 'database');
  beforeEach(async () => {
    await mkdir(dataDir);
    await writeFile(join(dataDir, 'folder.id'), 'id');
    await writeFile(database(), '1');
  });
  const open = () => {
    const watch = new DataDirWatch(dataDir, { openFiles: [database()] });
    onTestFinished(() => watch.close());
    return watch;
  };

  test.each(GONE)('finds a data directory that is %s before a change', async (_, lose) => {
    const watch = open();
    watch.check();
    await lose();
    expect(() => watch.check()).toThrow('is gone or was replaced while in use');
    await watch.lost;
  });

  test.each(ID_GONE)('finds a data directory %s within a second', async (_, lose) => {
    const watch = open();
    await lose();
    expect((await watch.lost).message).toContain('folder.id is not the one that was opened');
  });

  test('is quiet about what happens in the directory, and about other trouble', async () => {
    const watch = open();
    let lost: Error | undefined;
    void watch.lost.then((error) => (lost = error));
    await writeFile(database(), '2');
    await writeFile(join(dataDir, 'other'), 'x');
    await rm(join(dataDir, 'other'));
    watch.check();
    await new Promise((resolve) => setTimeout(resolve, 1200));
    expect(lost).toBeUndefined();
  });
});
