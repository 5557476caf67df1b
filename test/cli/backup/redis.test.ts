// Over a Redis ledger: a backup while servers run, and the check.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { uploadInput } from '../../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../../support/processes/redis.ts';
import { runFolder, tempFolder } from '../../support/graphs/v1-folders.ts';
import * as own from './open.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 120_000 });

const missing = redisMissing();

describe.skipIf(missing !== '')(`with a ledger in Redis${missing}`, () => {
  let root: string;
  let dataDir: string;
  let into: string;
  let redis: RedisServer;
  let server: Holdover;
  let before: own.ServerState;

  const env = () => ({ HOLDOVER_LEDGER: redis.url });
  beforeAll(async () => {
    root = await runFolder('backup-redis');
    [dataDir, into] = [join(root, 'data'), join(root, 'backups')];
    redis = await startRedis();
    server = await startHoldover({ dataDir, upstream: 'embedded', env: env() });
    await own.fillServer(server);
    before = await own.serverStateOf(server);
  }, 60_000);
  afterAll(async () => {
    await server.dispose();
    await redis.dispose();
  });

  test('taken while servers run, it brings back all a client was reported, into another Redis', async () => {
    const { code, stdout } = await own.backup(dataDir, into, { env: env() });
    expect([code, stdout]).toEqual([0, expect.stringContaining('and 4 files')]);
    await uploadInput(server.url, { bytes: randomBytes(4000), name: 'later.bin' });
    const other = await startRedis();
    onTestFinished(() => other.dispose());
    const restored = join(await tempFolder('restored'), 'new');
    const args = ['--ledger', other.url];
    expect(await own.restore(into, restored, { args })).toMatchObject({ code: 0 });
    for (const name of ['folder.id', 'ledger.id'])
      expect(await readFile(join(restored, name))).toEqual(await readFile(join(dataDir, name)));
    const again = await own.serve(restored, { args });
    expect(await own.serverStateOf(again)).toEqual(before);
    expect(await own.check(restored, ...args)).toMatchObject({ code: 0 });
  });

  test('a Redis that has records is refused, and keeps them', async () => {
    const from = await tempFolder('backups');
    await own.backup(dataDir, from, { env: env() });
    const target = join(await tempFolder('restored'), 'new');
    const refused = await own.restore(from, target, { args: ['--ledger', redis.url] });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('is not empty')]);
    expect(await own.serverStateOf(server)).toEqual(before);
  });

  test('a repair is refused while servers use the Redis, and names the flag where it was not told of it', async () => {
    const ledgerId = await readFile(join(dataDir, 'ledger.id'), 'utf8');
    const found = await own.check(dataDir);
    expect([found.code, found.stdout]).toEqual([1, expect.stringContaining('--ledger')]);
    const untold = await own.check(dataDir, '--repair');
    expect([untold.code, untold.stderr]).toEqual([
      1,
      expect.stringContaining('1 Holdover processes use'),
    ]);
    expect(await readFile(join(dataDir, 'ledger.id'), 'utf8')).toBe(ledgerId);
    const told = await own.check(dataDir, '--repair', '--ledger', redis.url);
    expect([told.code, told.stderr]).toEqual([1, expect.stringContaining('is in use')]);
    await server.terminate();
    const repaired = await own.check(dataDir, '--repair', '--ledger', redis.url);
    expect(repaired.code).toBe(0);
    server = await startHoldover({ dataDir, upstream: 'embedded', env: env() });
    expect(await own.serverStateOf(server)).toEqual(before);
  });
});
