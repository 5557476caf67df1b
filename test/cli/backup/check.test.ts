// holdover check: everything that is wrong is found, named, and told by the exit code.
import { copyFile, mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { pngOf } from '../../support/clients/client-helpers.ts';
import { runHoldover } from '../../support/processes/holdover.ts';
import { snapshot, tempFolder } from '../../support/graphs/v1-folders.ts';
import * as own from './open.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 120_000 });

let template: own.Template;
let dataDir: string;
let before: own.ServerState;

beforeAll(async () => {
  template = await own.makeTemplate();
  before = template.state;
}, 60_000);
afterAll(() => template.dispose());

beforeEach(async () => {
  dataDir = await template.copy();
});

/** Puts bytes among the files that no record names. */
async function stray(bytes: Uint8Array): Promise<string> {
  const hex = hashOf(bytes).slice('blake3:'.length);
  await mkdir(dirname(own.blobIn(dataDir, hex)), { recursive: true });
  await writeFile(own.blobIn(dataDir, hex), bytes);
  return hex;
}

describe('sound', () => {
  test('it says so and changes nothing, with the server stopped or running; --repair is refused while it runs', async () => {
    const untouched = await snapshot(join(dataDir, 'blobs'));
    const { code, stdout } = await runHoldover(['check', '--data-dir', dataDir]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('Everything is as it should be')]);
    const server = await own.serve(dataDir);
    expect(await own.check(dataDir)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(': 3 files on record'),
    });
    expect(await own.serverStateOf(server)).toEqual(before);
    expect(await snapshot(join(dataDir, 'blobs'))).toEqual(untouched);
    // A file that the running server is about to record is not taken for one without a record.
    await stray(Buffer.from('on its way'));
    expect(await own.check(dataDir)).toMatchObject({ code: 0 });
    const repair = await own.check(dataDir, '--repair');
    expect([repair.code, repair.stderr]).toEqual([
      1,
      expect.stringContaining('in use by another Holdover'),
    ]);
  });
});

describe('the database', () => {
  const database = (): string => join(dataDir, 'holdover.db');
  const flipPage = async (): Promise<void> => {
    const bytes = await readFile(database());
    // The headers of pages, which are of tables and indexes.
    for (let page = 3; page < 12; page++) bytes.fill(0xff, 4096 * page, 4096 * page + 16);
    await writeFile(database(), bytes);
  };

  test.each([
    ['truncated', () => truncate(database(), 20_000), 'damaged'],
    ['with a broken page', flipPage, 'damaged'],
    ['empty', () => truncate(database(), 0), 'empty'],
    ['absent', () => rm(database()), 'absent'],
  ])('%s is told, with the command that helps', async (_, damage, state) => {
    await damage();
    const blobs = await own.blobsIn(dataDir);
    const { code, stdout } = await own.check(dataDir);
    expect(code).toBe(1);
    expect(stdout).toMatch(RegExp(`The database is ${state} \\(.+\\)\\. .*holdover restore`));
    // Against a database that cannot be read every file would seem to be without a record.
    const orphans = stdout.split('\n').filter((line) => line.includes('has no record'));
    expect(orphans).toHaveLength(state === 'damaged' ? 0 : blobs.length);
    if (state === 'damaged')
      expect(await own.check(dataDir, '--repair')).toMatchObject({ code: 1, stdout });
    expect(await own.blobsIn(dataDir)).toEqual(blobs);
  });

  test('of another version of Holdover is not called damaged', async () => {
    const bytes = await readFile(database());
    bytes.writeUInt32BE(9999, 60);
    await writeFile(database(), bytes);
    const { code, stderr } = await own.check(dataDir);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/another version .*: use that version/),
    ]);
  });
});

describe('files on record', () => {
  test.each([
    ['missing', (path: string) => rm(path)],
    ['damaged', (path: string) => own.flipByte(path)],
  ])('%s: named with user and name, and not repaired', async (why, damage) => {
    const hex = hashOf(Buffer.from(before.pictures[0] ?? '', 'base64')).slice('blake3:'.length);
    await damage(own.blobIn(dataDir, hex));
    const { code, stdout } = await own.check(dataDir);
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(RegExp(`${hex} is ${why}: \\S*first\\.bin of local`)),
    ]);
    expect((await own.check(dataDir, '--repair')).code).toBe(1);
  });

  test('a single one can be copied back from a backup', async () => {
    const into = await tempFolder('backups');
    await own.backup(dataDir, into);
    const [hex = ''] = await own.blobsIn(dataDir);
    await own.flipByte(own.blobIn(dataDir, hex));
    expect((await own.check(dataDir)).code).toBe(1);
    await copyFile(own.blobIn(into, hex), own.blobIn(dataDir, hex));
    expect((await own.check(dataDir)).code).toBe(0);
  });

  test.each([
    ['absent', () => rm(join(dataDir, 'secret.key'))],
    ['damaged', () => truncate(join(dataDir, 'secret.key'), 5)],
  ])('a secret that is %s', async (secret, damage) => {
    await damage();
    const stdout = expect.stringMatching(`secret.key is ${secret}`);
    expect(await own.check(dataDir)).toMatchObject({ code: 1, stdout });
  });
});

describe('files without a record', () => {
  test('are listed, and --repair gives them a name of their own, to whom it is said', async () => {
    const picture = await pngOf();
    const png = await stray(picture);
    const text = await stray(Buffer.from('what was this?'));
    const { code, stdout } = await own.check(dataDir);
    expect(code).toBe(1);
    for (const hex of [png, text])
      expect(stdout).toContain(`${hex} has no record (0.0 MB): --repair`);
    expect(await own.check(dataDir, '--repair')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`is now output/recovered/${png.slice(0, 16)}.png of local`),
    });
    const server = await own.serve(dataDir);
    const name = { name: `${png.slice(0, 16)}.png`, subfolder: 'recovered', type: 'output' };
    expect(await own.view(server.url, name)).toBe(picture.toString('base64'));
    expect(await own.serverStateOf(server)).toEqual(before);
  });

  test('--user gives them to another one', async () => {
    await stray(Buffer.from('hers'));
    const { stdout } = await own.check(dataDir, '--repair', '--user', 'u_ann');
    expect(stdout).toContain('.bin of u_ann');
  });

  test('that are damaged are reported and left as they are', async () => {
    const hex = await stray(Buffer.from('soon to be damaged'));
    await own.flipByte(own.blobIn(dataDir, hex));
    const { code, stdout } = await own.check(dataDir, '--repair');
    expect(code).toBe(1);
    expect(stdout).toContain(`${hex} has no record (0.0 MB) and is damaged`);
    expect(await own.blobsIn(dataDir)).toContain(hex);
  });

  test('all of them, when the database is gone: a new one has them, and no start sweeps them', async () => {
    const blobs = await own.blobsIn(dataDir);
    const kept = join(await tempFolder('kept'), 'holdover.db');
    await copyFile(join(dataDir, 'holdover.db'), kept);
    await rm(join(dataDir, 'holdover.db'));
    const { code, stdout } = await own.check(dataDir, '--repair');
    const names = [...stdout.matchAll(/is now output\/recovered\/(\S+) of local/g)];
    expect([code, names.length]).toEqual([0, 3]);
    const server = await own.serve(dataDir);
    const png = names.map(([, name = '']) => name).find((name) => name.endsWith('png')) ?? '';
    const name = { name: png, subfolder: 'recovered', type: 'output' };
    expect(await own.view(server.url, name)).toMatch(/^iVBOR/);
    await server.terminate();
    expect(await own.blobsIn(dataDir)).toEqual(blobs);
    // The earlier database, found after all: it is not the one that recorded the files last.
    await copyFile(kept, join(dataDir, 'holdover.db'));
    const other = await runHoldover(['--port', '0', '--data-dir', dataDir]);
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('another --ledger')]);
    expect((await own.check(dataDir)).stdout).toContain('were recorded by another ledger');
    expect(await own.check(dataDir, '--repair')).toMatchObject({ code: 0 });
    expect(await own.serverStateOf(await own.serve(dataDir))).toEqual(before);
  });
});

test('a data folder that is not there is not made', async () => {
  const { code, stderr } = await own.check(join(dataDir, 'nowhere'));
  expect([code, stderr]).toEqual([1, expect.stringContaining('there is no data folder')]);
});
