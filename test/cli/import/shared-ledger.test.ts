// A ledger that several processes share: an import while a server is at work on it.
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { pngOf } from '../../support/clients/client-helpers.ts';
import { type RedisServer, redisMissing, startRedis } from '../../support/processes/redis.ts';
import { fill, tempFolder } from '../../support/graphs/v1-folders.ts';
import { filesIn, run } from '../../shared-folders/open.ts';
import { loading } from '../../support/graphs/workflows.ts';
import { folders, importFrom, serve } from './open.ts';

vi.setConfig({ testTimeout: 120_000 });

const notRun = redisMissing();

describe.skipIf(notRun !== '')(`a ledger in Redis${notRun}`, () => {
  let redis: RedisServer;
  beforeAll(async () => void (redis = await startRedis()));
  afterAll(() => redis.dispose());

  test('the running server has the files at once; its folders work', async () => {
    const { source, dataDir } = await folders();
    const output = await tempFolder('output');
    const ledger = ['--ledger', redis.url];
    const server = await serve(dataDir, [...ledger, '--output-directory', output]);
    const picture = await pngOf();
    await fill(source, { 'input/cat.png': picture, 'output/loaded_00008_.png': picture });
    const { code, stdout } = await importFrom(source, dataDir, { args: ledger });
    expect([code, stdout]).toEqual([0, expect.stringContaining('Inputs and outputs: 2 files')]);
    const [image] = await run(server, loading('cat.png'));
    expect(image?.filename).toBe('loaded_00009_.png');
    expect(await filesIn(output)).toEqual(['loaded_00009_.png']);
    const again = await importFrom(source, dataDir, { args: ledger });
    expect(again.stdout).toContain('(2 more were here already)');
  });

  test('no server removes bytes that an import has put into place and not recorded yet', async () => {
    const own = await startRedis();
    onTestFinished(() => own.dispose());
    const { source, dataDir } = await folders();
    const picture = await pngOf();
    await fill(source, { 'input/cat.png': picture });
    const { code } = await importFrom(source, dataDir, { args: ['--ledger', own.url] });
    // Announced as the uploads of servers are.
    expect([code, await own.everything()]).toEqual([
      0,
      expect.stringContaining(`adopted:${hashOf(picture)}`),
    ]);
  });
});
