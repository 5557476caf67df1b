// holdover backup: complete and consistent while the server goes on; an earlier one is whole until the end.
import { randomBytes, randomUUID } from 'node:crypto';
import { readFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { backUp } from '../../../src/cli/backup/backup.ts';
import { placeInFolder } from '../../../src/cli/backup/places.ts';
import { readSqliteRecords } from '../../../src/ledger/sqlite/records.ts';
import { hashOf } from '../../../src/lib/hash.ts';
import { lockFile } from '../../../src/ledger/sqlite/sqlite-ledger.ts';
import { uploadInput } from '../../support/clients/client-helpers.ts';
import { type Holdover, runHoldover, startHoldover } from '../../support/processes/holdover.ts';
import { getJson, postPrompt } from '../../support/clients/v1-client.ts';
import { fill, snapshot, tempFolder } from '../../support/graphs/v1-folders.ts';
import { flat } from '../../support/graphs/workflows.ts';
import * as own from './open.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 120_000 });

let template: own.Template;
/** It runs all the time, with something of each kind. */
let server: Holdover;
beforeAll(async () => {
  template = await own.makeTemplate();
  server = await startHoldover({ upstream: 'embedded' });
  await own.fillServer(server);
}, 60_000);
afterAll(async () => {
  await server.dispose();
  await template.dispose();
});

/** The data folder of a stopped server with something of each kind, and an empty one for backups. */
async function stopped(): Promise<Awaited<ReturnType<typeof own.folders>>> {
  return { dataDir: await template.copy(), into: await tempFolder('backups') };
}

const recordsIn = (into: string) => readFile(join(into, 'records.jsonl'), 'utf8');

/** The program itself, beside the server. */
const backupProgram = (dataDir: string, into: string) =>
  runHoldover(['backup', into, '--data-dir', dataDir]);

test('taken while the server runs, it brings back all a client was reported, and all of use in its folder', async () => {
  const { dataDir } = server;
  const into = await tempFolder('backups');
  const before = await own.serverStateOf(server);
  const { code, stdout } = await backupProgram(dataDir, into);
  expect([code, stdout]).toEqual([0, expect.stringContaining('and 4 files')]);

  const restored = join(await tempFolder('restored'), 'new');
  expect(await own.restore(into, restored)).toMatchObject({ code: 0 });
  for (const name of ['secret.key', 'folder.id', 'ledger.id'])
    expect(await readFile(join(restored, name))).toEqual(await readFile(join(dataDir, name)));
  const left = new Set(await readdir(dataDir));
  for (const kept of await readdir(restored)) left.delete(kept);
  // Locks, SQLite's own files of an open database, uploads on their way, copies of definitions.
  const useless = ['holdover.db.lock', 'holdover.db.lock-journal', 'holdover.db-wal'];
  useless.push('holdover.db-shm', 'spool', 'object-info', 'blobs-unrecorded');
  expect([...left].filter((entry) => !useless.includes(entry))).toEqual([]);

  const again = await own.serve(restored);
  expect(await own.serverStateOf(again)).toEqual(before);
  const { body } = await postPrompt(again.url, { prompt: flat({ prefix: 'kept' }) });
  await own.untilIdle(again.url);
  expect(await own.view(again.url, { name: 'kept_00002_.png', type: 'output' })).toMatch(/^iVBOR/);
  expect((await getJson(`${again.url}/history`))[body.prompt_id].prompt[0]).toBe(1);
  expect(await own.check(restored)).toMatchObject({ code: 0 });
});

describe('a second one into the same folder', () => {
  test('copies what is new and removes what no record names', async () => {
    const { dataDir } = server;
    const into = await tempFolder('backups');
    await own.backup(dataDir, into);
    const former1 = hashOf(Buffer.from('{"a": 1}')).slice('blake3:'.length);
    const kept = (await own.blobsIn(into)).filter((hex) => hex !== former1);
    const inodes = () =>
      Promise.all(kept.map(async (hex) => (await stat(own.blobIn(into, hex))).ino));
    const before = await inodes();
    await uploadInput(server.url, { bytes: randomBytes(7000), name: 'second.bin' });
    await fetch(`${server.url}/userdata/workflows%2Fw.json`, { method: 'POST', body: '{"a": 2}' });
    expect((await own.backup(dataDir, into)).code).toBe(0);
    expect(await inodes()).toEqual(before);
    expect(await own.blobsIn(into)).not.toContain(former1);
    const restored = join(await tempFolder('restored'), 'new');
    await own.restore(into, restored);
    const again = await own.serve(restored);
    expect((await own.serverStateOf(again)).userData).toBe('{"a": 2}');
    expect(await own.view(again.url, { name: 'second.bin', type: 'input' })).not.toMatch(/^status/);
  });

  test('killed at each step: half of it is no backup, and the first one is whole', async () => {
    const dataDir = await template.copy();
    const killed = [];
    for (const moment of ['backup-file', 'backup-records', 'backup-listed']) {
      const into = await tempFolder('backups');
      const env = { HOLDOVER_CRASH_AT: moment };
      expect((await own.backup(dataDir, into, { env })).code).toBe(null);
      const target = join(await tempFolder('restored'), 'new');
      expect(await own.restore(into, target)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('is not a complete backup'),
      });
      expect(await stat(target).catch(() => 'absent')).toBe('absent');
      expect((await own.backup(dataDir, into)).code).toBe(0);
      expect((await readdir(into)).toSorted()).toEqual(['backup.lock', 'blobs', 'records.jsonl']);
      killed.push({ into, env, records: await recordsIn(into) });
    }
    const changing = await own.serve(dataDir);
    await uploadInput(changing.url, { bytes: randomBytes(7000), name: 'second.bin' });
    await fetch(`${changing.url}/userdata/workflows%2Fw.json`, { method: 'POST', body: '{}' });
    await changing.terminate();
    for (const { into, env, records } of killed) {
      expect((await own.backup(dataDir, into, { env })).code).toBe(null);
      expect(await recordsIn(into)).toBe(records);
      const restored = await tempFolder('restored');
      expect(await own.restore(into, restored)).toMatchObject({ code: 0 });
      expect(await own.check(restored)).toMatchObject({ code: 0 });
    }
  });

  test('does not take over bytes of the first one that are damaged', async () => {
    const { dataDir, into } = await stopped();
    await own.backup(dataDir, into);
    const [hex = ''] = await own.blobsIn(into);
    await own.flipByte(own.blobIn(into, hex));
    expect((await own.backup(dataDir, into)).code).toBe(0);
    expect((await own.restore(into, await tempFolder('restored'))).code).toBe(0);
  });
});

test('under load, what was acknowledged before it began is in it, and its records are whole', async () => {
  const { dataDir } = server;
  const into = await tempFolder('backups');
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
  await expect.poll(() => Math.min(files.length, prompts.length)).toBeGreaterThan(5);
  const before = { files: [...files], prompts: [...prompts] };
  const { code } = await backupProgram(dataDir, into);
  isOn = false;
  await Promise.all(load);
  expect(code).toBe(0);
  const restored = await tempFolder('restored');
  expect(await own.restore(into, restored)).toMatchObject({ code: 0 });
  expect(await own.check(restored)).toMatchObject({ code: 0 });
  const again = await own.serve(restored);
  for (const name of before.files) {
    expect(await own.view(again.url, { name, type: 'input' })).not.toMatch(/^status/);
  }
  await own.untilIdle(again.url);
  const history = await getJson(`${again.url}/history`);
  for (const id of before.prompts) {
    expect(history[id]?.status).toMatchObject({ status_str: 'success' });
  }
});

describe('bytes that go while they are copied', () => {
  /** Backs up a source whose first blob is gone when its records have been read `reads` times. */
  async function losing(reads: number, isOnRecord: boolean) {
    const { dataDir, into } = await stopped();
    const [hex = '', ...others] = await own.blobsIn(dataDir);
    let count = 0;
    async function* records() {
      for await (const record of readSqliteRecords(join(dataDir, 'holdover.db'))) yield record;
      if (++count !== reads) return;
      if (!isOnRecord) own.inDatabase(dataDir, `DELETE FROM assets WHERE hash = 'blake3:${hex}'`);
      await rm(own.blobIn(dataDir, hex));
    }
    const ids = { ledgerId: 'l', folderId: 'f', secret: Buffer.alloc(32).toString('base64') };
    const identity = { ledger: 'sqlite', ...ids } as const;
    const place = placeInFolder(dataDir);
    const { missing } = await backUp({ dataDir, identity, ledger: { records }, place }, into);
    return { into, hex, others, missing, count };
  }

  test('and their records too: the records are read again, and nothing is missing', async () => {
    const { into, others, missing, count } = await losing(1, false);
    expect([missing, count]).toEqual([[], 2]);
    const saved = hashOf(Buffer.from('{"a": 1}')).slice('blake3:'.length);
    expect(await own.blobsIn(into)).toEqual([...others, saved].toSorted());
    expect((await own.restore(into, await tempFolder('restored'))).code).toBe(0);
  });

  test('and not their records: that is told', async () => {
    const { hex, missing } = await losing(1, true);
    expect(missing).toEqual([{ kind: 'missing', hash: `blake3:${hex}`, why: 'absent' }]);
  });
});

describe('with damage in the data folder', () => {
  test.each([
    ['a missing file', (path: string) => rm(path), 'absent'],
    ['a flipped byte', (path: string) => own.flipByte(path), 'not the bytes of its name'],
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

  test.each([
    ['truncated', (path: string) => truncate(path, 20_000), 'is damaged'],
    ['absent', (path: string) => rm(path), 'is absent'],
  ])('a database that is %s is not backed up', async (_, damage, why) => {
    const { dataDir, into } = await stopped();
    await damage(join(dataDir, 'holdover.db'));
    const { code, stderr } = await own.backup(dataDir, into);
    expect([code, stderr]).toEqual([1, expect.stringContaining(why)]);
    expect(stderr).toContain('holdover restore');
    expect(await readdir(into)).not.toContain('records.jsonl');
  });
});

describe('is refused', () => {
  test('inside of the data folder, around it, and for a data folder that is not there', async () => {
    const { dataDir } = await stopped();
    const inside = await own.backup(dataDir, join(dataDir, 'backups'));
    expect([inside.code, inside.stderr]).toEqual([
      1,
      expect.stringContaining('one is inside the other'),
    ]);
    expect((await own.backup(dataDir, join(dataDir, '..'))).stderr).toContain(
      'one is inside the other',
    );
    const absent = await own.backup(join(dataDir, 'absent'), await tempFolder('backups'));
    expect([absent.code, absent.stderr]).toEqual([1, expect.stringContaining('there is no')]);
  });

  test('into a folder with other things, and over the backup of another data folder', async () => {
    const { dataDir, into } = await stopped();
    await fill(into, { 'holiday.jpg': 'x' });
    const untouched = await snapshot(into);
    const full = await own.backup(dataDir, into);
    expect([full.code, full.stderr]).toEqual([
      1,
      expect.stringContaining('other files than a backup'),
    ]);
    expect(await snapshot(into)).toEqual(untouched);
    const mine = await tempFolder('backups');
    await own.backup(dataDir, mine);
    const mixed = await own.backup(server.dataDir, mine);
    expect([mixed.code, mixed.stderr]).toEqual([1, expect.stringContaining('another data folder')]);
    expect((await own.restore(mine, await tempFolder('restored'))).code).toBe(0);
  });

  test('while another one goes to the same place', async () => {
    const { dataDir, into } = await stopped();
    const other = lockFile(join(into, 'backup'));
    const { code, stderr } = await own.backup(dataDir, into);
    other.close();
    expect([code, stderr]).toEqual([1, expect.stringContaining('in use by another Holdover')]);
  });
});

test('the files of a folder that are in a bucket now are neither backed up nor checked without it', async () => {
  const { dataDir, into } = await stopped();
  await writeFile(join(dataDir, 'files.url'), 's3://files/prefix');
  const said = expect.stringContaining('are in a bucket: give --files s3://files/prefix as before');
  expect(await own.backup(dataDir, into)).toMatchObject({ code: 1, stderr: said });
  expect(await readdir(into)).not.toContain('records.jsonl');
  expect(await own.check(dataDir)).toMatchObject({ code: 1, stdout: '', stderr: said });
});

test('a database that another ledger has replaced is not backed up', async () => {
  const { dataDir, into } = await stopped();
  await writeFile(join(dataDir, 'ledger.id'), randomUUID());
  expect(await own.backup(dataDir, into)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('recorded by another ledger: give the --ledger'),
  });
  expect(await readdir(into)).not.toContain('records.jsonl');
});
