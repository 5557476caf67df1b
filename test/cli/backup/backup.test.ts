// holdover backup: complete, consistent and incremental while the server goes on.
import { randomBytes, randomUUID } from 'node:crypto';
import { readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { backUp } from '../../../src/cli/backup/backup.ts';
import { recordedFiles } from '../../../src/cli/backup/records.ts';
import { lockFile } from '../../../src/ledger/sqlite/sqlite-ledger.ts';
import { uploadInput } from '../../support/clients/client-helpers.ts';
import { runHoldover } from '../../support/processes/holdover.ts';
import { getJson, postPrompt } from '../../support/clients/v1-client.ts';
import { fill, snapshot, tempFolder } from '../../support/graphs/v1-folders.ts';
import { flat } from '../../support/graphs/workflows.ts';
import * as own from './open.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 120_000 });

let template: own.Template;
beforeAll(async () => {
  template = await own.makeTemplate();
}, 60_000);
afterAll(() => template.dispose());

/** The data folder of a stopped server with something of each kind, and an empty one for backups. */
async function stopped(): Promise<Awaited<ReturnType<typeof own.folders>>> {
  return { dataDir: await template.copy(), into: await tempFolder('backups') };
}

/** The program itself, beside the server. */
const backupProgram = (dataDir: string, into: string) =>
  runHoldover(['backup', into, '--data-dir', dataDir]);

const inode = async (path: string): Promise<number> => (await stat(path)).ino;

test('taken while the server runs, it brings back all a client was reported', async () => {
  const { dataDir, into } = await own.folders();
  const server = await own.serve(dataDir);
  await own.fillServer(server);
  const before = await own.serverStateOf(server);
  const { code, stdout } = await backupProgram(dataDir, into);
  expect([code, stdout]).toEqual([0, expect.stringContaining('3 of them new')]);
  await server.dispose();

  const restored = join(await tempFolder('restored'), 'new');
  expect(await own.restore(into, restored)).toMatchObject({ code: 0 });
  const again = await own.serve(restored);
  expect(await own.serverStateOf(again)).toEqual(before);
  const { body } = await postPrompt(again.url, { prompt: flat({ prefix: 'kept' }) });
  await own.untilIdle(again.url);
  expect(await own.view(again.url, { name: 'kept_00002_.png', type: 'output' })).toMatch(/^iVBOR/);
  expect((await getJson(`${again.url}/history`))[body.prompt_id].prompt[0]).toBe(1);
  expect(await own.check(restored)).toMatchObject({ code: 0 });
});

test('everything in a data folder is either backed up or of no use to a restore', async () => {
  const { dataDir, into } = await own.folders();
  const server = await own.serve(dataDir);
  await own.fillServer(server);
  await own.backup(dataDir, into);
  const [name = ''] = await own.backupsIn(into);
  const left = new Set(await readdir(dataDir));
  for (const kept of await readdir(join(into, name))) left.delete(kept);
  // Locks, SQLite's own files of an open database, uploads on their way, copies of definitions.
  const useless = ['holdover.db.lock', 'holdover.db.lock-journal', 'holdover.db-wal'];
  useless.push('holdover.db-shm', 'spool', 'object-info', 'blobs-unrecorded');
  expect([...left].filter((entry) => !useless.includes(entry))).toEqual([]);
});

test('the second one copies what is new, the first one stays as it was', async () => {
  const { dataDir, into } = await own.folders();
  const server = await own.serve(dataDir);
  await own.fillServer(server);
  await own.backup(dataDir, into);
  const [first = ''] = await own.backupsIn(into);
  const untouched = await own.blobsIn(join(into, first));
  await uploadInput(server.url, { bytes: randomBytes(7000), name: 'second.bin' });
  await fetch(`${server.url}/userdata/workflows%2Fw.json`, { method: 'POST', body: '{"a": 2}' });
  const { code, stdout } = await own.backup(dataDir, into);
  expect([code, stdout]).toEqual([0, expect.stringContaining('1 of them new')]);
  const [, second = ''] = await own.backupsIn(into);
  expect(await own.blobsIn(join(into, second))).toHaveLength(untouched.length + 1);
  for (const hex of untouched) {
    const [one, other] = [first, second].map((name) => own.blobIn(join(into, name), hex));
    expect(await inode(one ?? '')).toBe(await inode(other ?? ''));
    // Never with the data folder: damage there would be damage here.
    expect(await inode(one ?? '')).not.toBe(await inode(own.blobIn(dataDir, hex)));
  }
  const older = join(await tempFolder('restored'), 'older');
  await own.restore(into, older, { args: ['--at', first] });
  const again = await own.serve(older);
  expect((await own.serverStateOf(again)).userData).toBe('{"a": 1}');
  expect(await own.view(again.url, { name: 'second.bin', type: 'input' })).toBe('status 404');
});

test('--keep removes the oldest, and the newer ones are whole without them', async () => {
  const { dataDir, into } = await stopped();
  for (let i = 0; i < 3; i++) {
    expect((await own.backup(dataDir, into, { args: ['--keep', '2'] })).code).toBe(0);
  }
  expect((await own.backupsIn(into)).map((name) => name.slice(0, 4))).toEqual(['0002', '0003']);
  const restored = await tempFolder('restored');
  expect(await own.restore(into, restored)).toMatchObject({ code: 0 });
  expect(await own.check(restored)).toMatchObject({ code: 0 });
});

describe('cut off', () => {
  test.each(['backup-file', 'backup-records', 'backup-copied', 'backup-listed'])(
    'at %s: half of it is no backup, and the next one is',
    async (moment) => {
      const { dataDir, into } = await stopped();
      const killed = await own.backup(dataDir, into, { env: { HOLDOVER_CRASH_AT: moment } });
      expect(killed.code).toBe(null);
      expect(await own.backupsIn(into)).toEqual([]);
      const target = join(await tempFolder('restored'), 'new');
      const refused = await own.restore(into, target);
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringContaining('partial is not a complete backup'),
      ]);
      expect(await stat(target).catch(() => 'absent')).toBe('absent');
      expect((await own.backup(dataDir, into)).code).toBe(0);
      expect(await readdir(into)).not.toContain('partial');
      expect((await own.restore(into, target)).code).toBe(0);
      expect((await own.check(target)).code).toBe(0);
    },
  );

  test('it leaves the complete one before it, which is what is restored', async () => {
    const { dataDir, into } = await stopped();
    await own.backup(dataDir, into);
    const env = { HOLDOVER_CRASH_AT: 'backup-copied' };
    expect((await own.backup(dataDir, into, { env })).code).toBe(null);
    const { code, stdout } = await own.restore(into, await tempFolder('restored'));
    expect([code, stdout]).toEqual([0, expect.stringContaining('Skipped: partial')]);
    expect(stdout).toContain('Restored 0001-');
  });

  test('bytes it left half-written or damaged are not taken for whole ones', async () => {
    const { dataDir, into } = await stopped();
    await own.backup(dataDir, into, { env: { HOLDOVER_CRASH_AT: 'backup-copied' } });
    const [hex = ''] = await own.blobsIn(join(into, 'partial'));
    await own.flipByte(own.blobIn(join(into, 'partial'), hex));
    expect((await own.backup(dataDir, into)).code).toBe(0);
    expect((await own.restore(into, await tempFolder('restored'))).code).toBe(0);
  });
});

test('under load, what was acknowledged before it began is in it, and its records are whole', async () => {
  const { dataDir, into } = await own.folders();
  const server = await own.serve(dataDir);
  const files: string[] = [];
  const prompts: string[] = [];
  let isOn = true;
  const uploads = async (lane: number): Promise<void> => {
    for (let i = 0; isOn; i++) {
      const name = `l${lane}-${i}.bin`;
      await uploadInput(server.url, { bytes: randomBytes(3000), name });
      files.push(name);
    }
  };
  const submits = async (): Promise<void> => {
    for (let i = 0; isOn; i++) {
      const prompt = flat({ prefix: `n${i}`, color: i });
      prompts.push((await postPrompt(server.url, { prompt })).body.prompt_id);
    }
  };
  // Records and bytes that go while the backup reads them.
  const removals = async (): Promise<void> => {
    for (let i = 0; isOn; i++) {
      const form = new FormData();
      form.append('file', new Blob([randomBytes(3000)]), `gone-${i}.bin`);
      form.append('file_path', `input/gone-${i}.bin`);
      const made = await fetch(`${server.url}/api/v2/assets`, { method: 'POST', body: form });
      const { id } = (await made.json()) as { id: string };
      await fetch(`${server.url}/api/v2/assets/${id}`, { method: 'DELETE' });
    }
  };
  const load = [uploads(0), uploads(1), submits(), removals()];
  const rounds: { files: number; prompts: number; code: number | null }[] = [];
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setTimeout(resolve, 300));
    const before = { files: files.length, prompts: prompts.length };
    rounds.push({ ...before, code: (await backupProgram(dataDir, into)).code });
  }
  isOn = false;
  await Promise.all(load);
  await server.dispose();
  expect(rounds.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(rounds[2]?.prompts).toBeGreaterThan(0);
  const names = await own.backupsIn(into);
  for (const [i, round] of rounds.entries()) {
    const restored = await tempFolder('restored');
    expect(await own.restore(into, restored, { args: ['--at', names[i] ?? ''] })).toMatchObject({
      code: 0,
    });
    expect(await own.checkJson(restored)).toMatchObject({ code: 0, report: { orphans: [] } });
    const again = await own.serve(restored);
    for (const name of files.slice(0, round.files)) {
      expect(await own.view(again.url, { name, type: 'input' })).not.toMatch(/^status/);
    }
    await own.untilIdle(again.url);
    const history = await getJson(`${again.url}/history`);
    for (const id of prompts.slice(0, round.prompts)) {
      expect(history[id]?.status).toMatchObject({ status_str: 'success' });
    }
    await again.dispose();
  }
});

describe('bytes that go while they are copied', () => {
  async function three() {
    const { dataDir, into } = await stopped();
    return {
      dataDir,
      into,
      records: recordedFiles(dataDir, undefined),
      blobs: await own.blobsIn(dataDir),
    };
  }
  const common = { keep: undefined, now: Date.now, progress: () => () => {} };

  test('after the records were taken: they are taken anew, nothing is missing', async () => {
    const { dataDir, into, records, blobs } = await three();
    const [hex = ''] = blobs;
    let saved = 0;
    const swept = {
      ...records,
      async list() {
        // As if it came after the first look.
        return (await records.list()).filter(({ hash }) => !hash.endsWith(hex));
      },
      async save(folder: string) {
        const named = await records.save(folder);
        if (saved++ === 0) {
          own.inDatabase(dataDir, `DELETE FROM assets WHERE hash = 'blake3:${hex}'`);
          await rm(own.blobIn(dataDir, hex));
        }
        return named;
      },
    };
    const reached = (): void => {};
    const result = await backUp({ ...common, dataDir, into, openRecords: () => swept, reached });
    expect([result.missing, saved]).toEqual([[], 2]);
    expect((await own.restore(into, await tempFolder('restored'))).code).toBe(0);
  });

  test('before the records were taken: the backup has not got them, and names them not', async () => {
    const { dataDir, into, records, blobs } = await three();
    const [hex = ''] = blobs;
    let isGone = false;
    const reached = (moment: string): void => {
      if (moment !== 'backup-records' || isGone) return;
      isGone = true;
      own.inDatabase(dataDir, `DELETE FROM assets WHERE hash = 'blake3:${hex}'`);
    };
    expect(
      await backUp({ ...common, dataDir, into, openRecords: () => records, reached }),
    ).toMatchObject({
      missing: [],
    });
    const [name = ''] = await own.backupsIn(into);
    expect(await own.blobsIn(join(into, name))).toEqual(blobs.slice(1));
  });
});

describe('with damage in the data folder', () => {
  test.each([
    ['a missing file', (path: string) => rm(path), 'absent'],
    ['a flipped byte', (path: string) => own.flipByte(path), 'not the bytes of its name'],
    ['a file cut short', (path: string) => truncate(path, 10), 'not the bytes of its name'],
  ])('%s is told, the rest is backed up and restored', async (_, damage, why) => {
    const { dataDir, into } = await stopped();
    const [hex = '', ...others] = await own.blobsIn(dataDir);
    await damage(own.blobIn(dataDir, hex));
    const { code, stdout } = await own.backup(dataDir, into);
    expect([code, stdout]).toEqual([1, expect.stringContaining(`blake3:${hex}: ${why}`)]);
    const restored = await tempFolder('restored');
    const again = await own.restore(into, restored);
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining(`${hex} (${why})`)]);
    expect(await own.blobsIn(restored)).toEqual(others);
  });

  test('a byte that flips later does not reach the next backup', async () => {
    const { dataDir, into } = await stopped();
    await own.backup(dataDir, into);
    const [hex = ''] = await own.blobsIn(dataDir);
    await own.flipByte(own.blobIn(dataDir, hex));
    expect((await own.backup(dataDir, into)).code).toBe(0);
    const restored = await tempFolder('restored');
    expect((await own.restore(into, restored)).code).toBe(0);
    expect((await own.check(restored)).code).toBe(0);
  });

  test.each([
    ['truncated', (path: string) => truncate(path, 20_000), 'is damaged'],
    ['no database at all', (path: string) => writeFile(path, 'not a database'), 'is damaged'],
    ['empty', (path: string) => writeFile(path, ''), 'is empty'],
    ['absent', (path: string) => rm(path), 'is absent'],
  ])('a database that is %s is not backed up', async (_, damage, why) => {
    const { dataDir, into } = await stopped();
    await damage(join(dataDir, 'holdover.db'));
    const { code, stderr } = await own.backup(dataDir, into);
    expect([code, stderr]).toEqual([1, expect.stringContaining(why)]);
    expect(stderr).toContain('holdover restore');
    expect(await own.backupsIn(into)).toEqual([]);
  });
});

describe('is refused', () => {
  test('inside of the data folder, around it, and for a data folder that is not there', async () => {
    const dataDir = await tempFolder('data');
    await fill(dataDir, { 'below/x': '' });
    const inside = await own.backup(dataDir, join(dataDir, 'backups'));
    expect([inside.code, inside.stderr]).toEqual([
      1,
      expect.stringContaining('one is inside the other'),
    ]);
    expect((await own.backup(join(dataDir, 'below'), dataDir)).stderr).toContain(
      'one is inside the other',
    );
    const absent = await own.backup(join(dataDir, 'absent'), await tempFolder('backups'));
    expect([absent.code, absent.stderr]).toEqual([1, expect.stringContaining('there is no')]);
  });

  test('into a folder with other things, and beside backups of another data folder', async () => {
    const { dataDir, into } = await stopped();
    await fill(into, { 'holiday.jpg': 'x' });
    const untouched = await snapshot(into);
    const full = await own.backup(dataDir, into);
    expect([full.code, full.stderr]).toEqual([
      1,
      expect.stringContaining('other files than backups'),
    ]);
    expect(await snapshot(into)).toEqual(untouched);
    const mine = await tempFolder('backups');
    await own.backup(dataDir, mine);
    const other = await own.serve(await tempFolder('data'));
    const mixed = await own.backup(other.dataDir, mine);
    expect([mixed.code, mixed.stderr]).toEqual([1, expect.stringContaining('another data folder')]);
    expect(await own.backupsIn(mine)).toHaveLength(1);
  });

  test('while another one goes to the same place', async () => {
    const { dataDir, into } = await stopped();
    const other = lockFile(join(into, 'backup'));
    const { code, stderr } = await own.backup(dataDir, into);
    other.close();
    expect([code, stderr]).toEqual([1, expect.stringContaining('another backup')]);
  });
});

test('the files of a folder that are in a bucket now are neither backed up nor checked without it', async () => {
  const { dataDir, into } = await stopped();
  await writeFile(join(dataDir, 'files.url'), 's3://files/prefix');
  const said = expect.stringContaining('are in a bucket: give --files s3://files/prefix as before');
  expect(await own.backup(dataDir, into)).toMatchObject({ code: 1, stderr: said });
  expect(await own.backupsIn(into)).toEqual([]);
  expect(await own.check(dataDir)).toMatchObject({ code: 1, stdout: '', stderr: said });
});

test('the database that a migration to Redis has left is not backed up', async () => {
  const { dataDir, into } = await stopped();
  await writeFile(join(dataDir, 'ledger.id'), randomUUID());
  expect(await own.backup(dataDir, into)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('recorded by another ledger: give the --ledger'),
  });
  expect(await own.backupsIn(into)).toEqual([]);
});

test('saved files with the same bytes are linked to those of the backup before, each to its own', async () => {
  const { dataDir, into } = await stopped();
  const names = Array.from({ length: 400 }, (_, at) =>
    join('userdata', 'local', `same-${at}.json`),
  );
  for (const name of names) await writeFile(join(dataDir, name), '{}');
  for (let time = 0; time < 5; time++)
    expect(await own.backup(dataDir, into)).toMatchObject({ code: 0 });
  const kept = (await own.backupsIn(into)).slice(-2);
  for (const name of names) {
    const [before, after] = await Promise.all(kept.map((one) => inode(join(into, one, name))));
    expect(after).toBe(before);
  }
});
