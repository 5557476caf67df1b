// A process that would work beside the others instead of with them does not start.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

describe.skipIf(redisMissing() !== '')(`beside a running server${redisMissing()}`, () => {
  let redis: RedisServer;
  let server: Holdover;
  let otherFolder: string;
  beforeAll(async () => {
    redis = await startRedis();
    otherFolder = await mkdtemp(join(tmpdir(), 'holdover-elsewhere-'));
    server = await startHoldover({ upstream: 'embedded', env: { HOLDOVER_LEDGER: redis.url } });
  });
  afterAll(async () => {
    await server?.dispose();
    await redis?.dispose();
    await rm(otherFolder, { recursive: true, force: true });
  });

  const roles: [string, readonly string[]][] = [
    ['another server', ['--port', '0']],
    ['a worker', ['worker']],
  ];

  test.each(roles)('%s with another folder is refused', async (_, words) => {
    const args = [...words, '--ledger', redis.url, '--data-dir', otherFolder];
    expect(await runHoldover(args)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `error: --data-dir ${otherFolder} is not the folder that other processes of this --ledger use: give all of them the same one\n`,
    });
  });
});
