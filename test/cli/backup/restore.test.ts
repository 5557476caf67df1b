// holdover restore: verified first, never over anything, and whole or not at all.
import { cp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { runHoldover } from '../../support/processes/holdover.ts';
import { fill, runFolder, snapshot, tempFolder } from '../../support/graphs/v1-folders.ts';
import * as own from './open.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 120_000 });

let dataDir: string;
let into: string;
let before: own.ServerState;

let template: own.Template;
let backups: string;

/** A stopped server with something of each kind, and one backup of it; each test gets a copy. */
beforeAll(async () => {
  template = await own.makeTemplate();
  before = template.state;
  backups = await runFolder('backups');
  await own.backup(template.folder, backups);
}, 60_000);
afterAll(() => template.dispose());

beforeEach(async () => {
  dataDir = await template.copy();
  into = await tempFolder('backups');
  await cp(backups, into, { recursive: true, preserveTimestamps: true });
});

describe('into a folder', () => {
  test('that is absent: a server goes on as if nothing had been, and is refused while it runs', async () => {
    const target = join(await tempFolder('restored'), 'absent');
    expect(await runHoldover(['restore', into, '--data-dir', target])).toMatchObject({ code: 0 });
    const server = await own.serve(target);
    expect(await own.serverStateOf(server)).toEqual(before);
    const { code, stderr } = await own.restore(into, target);
    expect([code, stderr]).toEqual([1, expect.stringContaining('in use by another Holdover')]);
    expect(await own.serverStateOf(server)).toEqual(before);
  });

  test('that is empty but for a lock: a server goes on as if nothing had been', async () => {
    const target = await tempFolder('restored');
    await fill(target, { 'holdover.db.lock': '' });
    expect(await own.restore(into, target)).toMatchObject({ code: 0 });
    expect(await own.serverStateOf(await own.serve(target))).toEqual(before);
  });

  test('that has anything in it: refused, and nothing is touched', async () => {
    const target = await tempFolder('restored');
    await fill(target, { 'blobs/x': 'mine' });
    const untouched = await snapshot(target);
    const { code, stderr } = await own.restore(into, target);
    expect([code, stderr]).toEqual([1, expect.stringContaining('is not empty')]);
    expect((await snapshot(target)).filter((line) => !line.includes('.lock'))).toEqual(untouched);
  });

  test('around or inside of the backups: refused', async () => {
    for (const target of [join(into, 'data'), into, join(into, '..')]) {
      const { code, stderr } = await own.restore(into, target);
      expect([code, stderr]).toEqual([1, expect.stringContaining('one is inside the other')]);
    }
  });
});

/** Without the lock, which stays where it is, and what was moved aside earlier. */
async function contentOf(folder: string): Promise<readonly string[]> {
  const lines = (await snapshot(folder)).map((line) => line.slice(folder.length + 1).split(' '));
  return lines
    .filter(([path = '']) => !/^holdover\.db\.lock|^set-aside/.test(path))
    .map(([path = '', ...facts]) => `${path} ${hashOf(Buffer.from(facts.at(-1) ?? ''))}`);
}

describe('from a backup that is not as it was written', () => {
  const damages: readonly (readonly [string, (folder: string) => Promise<unknown>, string])[] = [
    ['a flipped byte in a file', async (at) => own.flipByte(await firstBlob(at)), 'is damaged'],
    ['a missing file', async (at) => rm(await firstBlob(at)), 'is damaged'],
    ['a flipped byte in the records', (at) => own.flipByte(records(at)), 'is damaged'],
    ['no last line', (at) => changeLines(at, (lines) => lines.slice(0, -1)), 'is damaged'],
    ['a line that is left out', (at) => changeLines(at, (l) => l.toSpliced(3, 1)), 'is damaged'],
    ['empty records', (at) => writeFile(records(at), ''), 'is damaged'],
    ['no records', (at) => rm(records(at)), 'is not a complete backup'],
  ];

  test.each(damages)('%s: refused, and the data folder stays as it is', async (_, damage, why) => {
    await damage(into);
    const absent = join(await tempFolder('restored'), 'absent');
    const untouched = await contentOf(dataDir);
    for (const target of [absent, dataDir]) {
      const { code, stderr } = await own.restore(into, target);
      expect([code, stderr]).toEqual([1, expect.stringContaining(why)]);
    }
    expect(await stat(absent).catch(() => 'absent')).toBe('absent');
    expect(await contentOf(dataDir)).toEqual(untouched);
    expect((await own.check(dataDir)).code).toBe(0);
  });

  test.each(['workflows/../../outside', '/outside'])(
    'a path that leaves the data folder is refused: %s',
    async (path) => {
      await rewriteLines((line) => (line['kind'] === 'userFile' ? { ...line, path } : line));
      const { code, stderr } = await own.restore(into, await tempFolder('restored'));
      expect([code, stderr]).toEqual([1, expect.stringContaining('is damaged')]);
    },
  );

  test('a folder with no backup in it, and none at all', async () => {
    for (const from of [await tempFolder('nothing'), '/nowhere/at/all']) {
      const { code } = await own.restore(from, await tempFolder('restored'));
      expect(code).toBe(1);
    }
  });
});

const records = (folder: string): string => join(folder, 'records.jsonl');

async function firstBlob(folder: string): Promise<string> {
  return own.blobIn(folder, (await own.blobsIn(folder))[0] ?? '');
}

async function changeLines(
  folder: string,
  change: (lines: readonly string[]) => readonly string[],
): Promise<void> {
  const lines = (await readFile(records(folder), 'utf8')).trimEnd().split('\n');
  await writeFile(
    records(folder),
    change(lines)
      .map((line) => `${line}\n`)
      .join(''),
  );
}

type Line = { readonly [name: string]: unknown };

/** Changes lines as someone does who also writes the last line anew. */
async function rewriteLines(change: (line: Line) => Line): Promise<void> {
  await changeLines(into, (lines) => {
    const changed = lines.slice(0, -1).map((line) => JSON.stringify(change(JSON.parse(line))));
    const hash = hashOf(Buffer.from(changed.map((line) => `${line}\n`).join('')));
    return [...changed, JSON.stringify({ kind: 'end', hash })];
  });
}

describe('killed', () => {
  test.each(['restore-file', 'restore-record'])(
    'at %s: no server starts on it, and run again it is whole',
    async (moment) => {
      const target = join(await tempFolder('restored'), 'new');
      const env = { HOLDOVER_CRASH_AT: moment };
      expect((await own.restore(into, target, { env })).code).toBe(null);
      const refused = await runHoldover(['--port', '0', '--data-dir', target]);
      expect([refused.code, refused.stderr]).toEqual([
        1,
        expect.stringContaining('holdover restore'),
      ]);
      expect((await own.check(target)).stdout).toContain('A restore was interrupted');
      expect((await own.backup(target, await tempFolder('backups'))).code).toBe(1);
      expect((await own.restore(into, target)).code).toBe(0);
      const server = await own.serve(target);
      expect(await own.serverStateOf(server)).toEqual(before);
      expect((await readdir(target)).filter((name) => name.startsWith('restore'))).toEqual([]);
    },
  );
});
