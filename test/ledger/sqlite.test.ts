import { copyFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openSqliteLedger } from '../../src/ledger/sqlite/sqlite-ledger.ts';
import { finished, ledgerSuite, prompt } from './ledger.suite.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

let dir: string;
let path: string;
beforeEach(async () => {
  dir = await tempFolder('ledger');
  path = join(dir, 'data', 'holdover.db');
});

ledgerSuite('sqlite', () => openSqliteLedger({ path }));

/** Opens, works and closes again. */
async function using<T>(work: (ledger: Ledger) => Promise<T>): Promise<T> {
  const ledger = openSqliteLedger({ path });
  try {
    return await work(ledger);
  } finally {
    await ledger.close();
  }
}

/** Looks into, or tampers with, a file that no ledger has open. */
function withDatabase<T>(work: (db: InstanceType<typeof DatabaseSync>) => T): T {
  const db = new DatabaseSync(path);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

describe('reopening', () => {
  test('finds everything as it was left', async () => {
    await using(async (ledger) => {
      await finished(ledger, ['a', 'b']);
      await ledger.prompts.insert(prompt('live', { number: -0.5 }));
      await ledger.settings.merge('ann', { theme: '"dark"' });
    });
    await using(async (ledger) => {
      const history = await ledger.prompts.outlines('ann');
      expect(history.map(({ key }) => key)).toEqual(['a', 'b']);
      expect(await ledger.prompts.live()).toEqual([prompt('live', { number: -0.5 })]);
      expect(await ledger.settings.all('ann')).toEqual({ theme: '"dark"' });
    });
  });

  test('closing commits what no call waited for', async () => {
    const ledger = openSqliteLedger({ path });
    const written = ledger.prompts.insert(prompt('a'));
    await ledger.close();
    await written;
    await using(async (again) => expect(await again.prompts.live()).toHaveLength(1));
  });

  test('a copy of the one file, taken after closing, is complete', async () => {
    await using((ledger) => finished(ledger, ['a', 'b']));
    await copyFile(path, `${path}.copy`);
    const copy = openSqliteLedger({ path: `${path}.copy` });
    expect(await copy.prompts.outlines('ann')).toHaveLength(2);
    await copy.close();
  });

  test('only the owner can use the folder and the files in it', async () => {
    await using(async (ledger) => {
      await ledger.prompts.insert(prompt('a'));
      expect((await stat(join(dir, 'data'))).mode & 0o777).toBe(0o700);
      for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}.lock`]) {
        expect((await stat(file)).mode & 0o777, file).toBe(0o600);
      }
    });
  });
});

test('a write is acknowledged when others can see it, and not before', async () => {
  await using(async (ledger) => {
    const count = (): unknown =>
      withDatabase((db) => db.prepare('SELECT count(*) AS n FROM prompts').get());
    const writing = ledger.prompts.insert(prompt('a'));
    expect(count()).toEqual({ n: 0 });
    await writing;
    expect(count()).toEqual({ n: 1 });
  });
});
