// The health check of a worker's container, without a container.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { redisMissing, startRedis } from '../support/processes/redis.ts';
import { startWorker } from '../support/processes/worker.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

const CHECK = fileURLToPath(new URL('../../deploy/health.mjs', import.meta.url));
const missing = redisMissing();

test.skipIf(missing)(`a worker is healthy while it is connected to Redis${missing}`, async () => {
  const redis = await startRedis();
  const dataDir = await runFolder('health');
  const isHealthy = (): Promise<boolean> =>
    new Promise((resolve) => {
      const env = { ...process.env, HOLDOVER_LEDGER: redis.url };
      execFile(process.execPath, [CHECK, 'worker'], { env }, (error) => resolve(error === null));
    });
  try {
    expect(await isHealthy()).toBe(false);
    const worker = await startWorker({ ledger: redis.url, dataDir });
    expect(await isHealthy()).toBe(true);
    await worker.kill9();
    await expect.poll(isHealthy).toBe(false);
    await redis.kill9();
    expect(await isHealthy()).toBe(false);
  } finally {
    await redis.dispose();
  }
});
