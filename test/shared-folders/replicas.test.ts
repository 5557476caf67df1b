// Several servers on one Redis share --input-directory: nothing that was taken is lost.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { filesIn, textOf, viewBytes } from './open.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ROUNDS = 3;
/** Of different lengths: times alone tell nothing of what comes in the same millisecond. */
const TEXTS = ['one', 'three', 'forty-two'];

describe.skipIf(redisMissing() !== '')(`three replicas${redisMissing()}`, () => {
  let redis: RedisServer;
  let replicas: readonly Holdover[];
  let root: string;
  let input: string;

  beforeAll(async () => {
    redis = await startRedis();
    root = await runFolder('folders');
    input = join(root, 'input');
    const dataDir = join(root, 'data');
    const args = ['--ledger', redis.url, '--input-directory', input];
    replicas = await Promise.all(
      [1, 2, 3].map(() => startHoldover({ upstream: 'embedded', dataDir, args })),
    );
  });
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.dispose()));
    await redis.dispose();
  });

  const uploadAtEach = (name: string, fields: Record<string, string> = {}) =>
    Promise.all(
      replicas.map(({ url }, i) => uploadInput(url, { bytes: bytesOf(i), name, fields })),
    );
  const bytesOf = (i: number) => Buffer.from(TEXTS[i] ?? '');

  test('uploads of one name that come at once get names of their own', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const answers = await uploadAtEach(`n${round}.txt`);
      const names = answers.map(({ name }) => name as string);
      const free = ['', ' (1)', ' (2)'].map((number) => `n${round}${number}.txt`);
      expect(names.toSorted()).toEqual(free.toSorted());
      expect(await Promise.all(names.map((name) => textOf(input, name)))).toEqual(TEXTS);
      for (const server of replicas) {
        const seen = names.map((filename) => viewBytes(server, { filename, type: 'input' }));
        expect((await Promise.all(seen)).map(String)).toEqual(TEXTS);
      }
    }
    expect(await filesIn(input)).toHaveLength(3 * ROUNDS);
  });

  test('of uploads that overwrite one name at once one stays, and all replicas show it', async () => {
    await uploadAtEach('over.txt', { overwrite: 'true' });
    const stays = await textOf(input, 'over.txt');
    expect(TEXTS).toContain(stays);
    for (const server of replicas) {
      const seen = await viewBytes(server, { filename: 'over.txt', type: 'input' });
      expect(String(seen)).toBe(stays);
      expect(await getJson(`${server.url}/internal/files/input`)).toContain('over.txt [input]');
    }
  });
});
