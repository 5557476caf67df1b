// holdover import with --files s3://…: the same as into a folder.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { fill, snapshot } from '../../support/graphs/v1-folders.ts';
import {
  type BucketServer,
  bucketMissing,
  startBucketServer,
} from '../../support/processes/bucket-server.ts';
import { startHoldover } from '../../support/processes/holdover.ts';
import { folders, importFrom, recorded, viewText } from './open.ts';

vi.setConfig({ testTimeout: 60_000 });

describe.skipIf(bucketMissing() !== '')(`into a bucket${bucketMissing()}`, () => {
  let server: BucketServer;
  beforeAll(async () => {
    server = await startBucketServer();
  });
  afterAll(() => server?.dispose());

  test('files and saved files are there; killed and run again, each is there once', async () => {
    const { source, dataDir } = await folders();
    const many = Array.from({ length: 80 }, (_, at) => [`output/many/${at}.txt`, `file ${at}`]);
    await fill(source, {
      ...Object.fromEntries(many),
      'input/cat.txt': 'cat',
      'user/default/comfy.settings.json': '{"Comfy.Theme": "dark"}',
      'user/default/workflows/w.json': '{"w": 1}',
      'user/default/workflows/deep/x.json': '{"x": 1}',
    });
    const untouched = await snapshot(source);
    const flags = ['--files', `s3://files/${randomUUID()}`, '--s3-endpoint', server.endpoint];
    const into = { args: flags, env: server.credentials };
    for (const crashAt of ['import-bytes:3', 'import-recorded:1']) {
      const env = { ...into.env, HOLDOVER_CRASH_AT: crashAt };
      expect((await importFrom(source, dataDir, { ...into, env })).code).toBeNull();
    }
    const first = await importFrom(source, dataDir, into);
    expect([first.code, first.stderr.includes('error')]).toEqual([0, false]);
    const again = await importFrom(source, dataDir, into);
    expect([again.code, again.stdout]).toEqual([
      0,
      expect.stringContaining('2 more were here already'),
    ]);
    expect(await snapshot(source)).toEqual(untouched);
    expect((await recorded(dataDir)).names).toHaveLength(81);

    const holdover = await startHoldover({
      upstream: 'embedded',
      dataDir,
      args: flags,
      env: server.credentials,
    });
    expect(await viewText(holdover, { filename: 'cat.txt', type: 'input' })).toBe('cat');
    expect(await viewText(holdover, { filename: '7.txt', subfolder: 'many' })).toBe('file 7');
    const saved = await fetch(`${holdover.url}/userdata/workflows%2Fdeep%2Fx.json`);
    expect(await saved.json()).toEqual({ x: 1 });
    const settings = (await (await fetch(`${holdover.url}/settings`)).json()) as object;
    expect(settings).toMatchObject({ 'Comfy.Theme': 'dark' });

    await holdover.terminate();
    await fill(source, { 'user/default/workflows/w.json': '{"w": 2}' });
    const changed = await importFrom(source, dataDir, into);
    expect(changed.stdout).toContain('something of this name is here already');
    await holdover.dispose();
  });
});
