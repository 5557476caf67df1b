// Several processes over one folder: what one of them was told is kept stays.
import * as disk from 'node:fs/promises';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { spoolBytes } from '../../src/lib/spool.ts';
import { type UserDataStore, createUserDataStore } from '../../src/files/user-data-store.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

// Modules that an earlier file loaded in this process have the real one, and later files get it.
vi.hoisted(() => vi.resetModules());
afterAll(() => vi.resetModules());

vi.mock('node:fs/promises', { spy: true });
afterEach(() => vi.mocked(disk.link).mockReset());

const USER = 'local';
const KEEP = { overwrite: false };
const OVER = { overwrite: true };
const ROUNDS = 10;

/** Each has turns of its own, as each process has. */
async function openThree() {
  const root = await tempFolder('userdata');
  const spool = await tempFolder('spool');
  const stores = [1, 2, 3].map(() => createUserDataStore({ root, quotaBytes: 1e6 }));
  const put = async (store: UserDataStore, path: string, text: string, how = KEEP) =>
    said(await store.put(USER, path, await spoolBytes(Buffer.from(text), { dir: spool }), how));
  const move = async (store: UserDataStore, from: string, to: string, how = KEEP) =>
    said(await store.move(USER, from, to, how));
  const textOf = (path: string) => readFile(join(root, USER, path), 'utf8');
  const names = async () => (await readdir(join(root, USER))).toSorted();
  return { stores, put, move, textOf, names };
}

function said(answer: Awaited<ReturnType<UserDataStore['move']>>): string {
  return typeof answer === 'string' ? answer : answer.kind;
}

function noLinks(): void {
  vi.mocked(disk.link).mockRejectedValue(Object.assign(new Error('no links'), { code: 'EPERM' }));
}

describe.each([
  ['hard links', () => {}],
  ['no hard links', noLinks],
])('on a file system with %s', (_, prepare) => {
  test('one of those who write a new name at once gets it', async () => {
    prepare();
    const { stores, put, textOf } = await openThree();
    for (let round = 0; round < ROUNDS; round++) {
      const path = `race${round}.json`;
      const answers = await Promise.all(stores.map((store, i) => put(store, path, `by ${i}`)));
      expect(answers.toSorted()).toEqual(['exists', 'exists', 'file']);
      expect(await textOf(path)).toBe(`by ${answers.indexOf('file')}`);
    }
  });

  test('one of those who move files to a new name at once gets it, the others stay', async () => {
    prepare();
    const { stores, put, move, textOf, names } = await openThree();
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(stores.map((store, i) => put(store, `${i}.json`, `by ${i}`, OVER)));
      const target = `t${round}.json`;
      const answers = await Promise.all(stores.map((store, i) => move(store, `${i}.json`, target)));
      expect(answers.toSorted()).toEqual(['exists', 'exists', 'file']);
      const winner = answers.indexOf('file');
      expect(await textOf(target)).toBe(`by ${winner}`);
      const left = (await names()).filter((name) => /^\d/.test(name));
      expect(left).toEqual(['0.json', '1.json', '2.json'].filter((_name, i) => i !== winner));
    }
  });
});

test.each([KEEP, OVER])('a file that several move elsewhere is in one place, %o', async (how) => {
  const { stores, put, move, names } = await openThree();
  for (let round = 0; round < ROUNDS; round++) {
    await put(stores[0] as UserDataStore, 'it.json', 'x');
    const answers = await Promise.all(
      stores.map((store, i) => move(store, 'it.json', `${round}-${i}.json`, how)),
    );
    expect(answers.toSorted()).toEqual(['absent', 'absent', 'file']);
    const there = (await names()).filter((name) => name.startsWith(`${round}-`));
    expect(there).toEqual([`${round}-${answers.indexOf('file')}.json`]);
  }
});

test('a file that several remove is removed by one of them', async () => {
  const { stores, put } = await openThree();
  await put(stores[0] as UserDataStore, 'it.json', 'x');
  const answers = await Promise.all(stores.map((store) => store.remove(USER, 'it.json')));
  expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
});
