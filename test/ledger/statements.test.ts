import { DatabaseSync } from '@photostructure/sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import { assetStore } from '../../src/ledger/sqlite/assets.ts';
import { createFileLists, fileStore } from '../../src/ledger/sqlite/files.ts';
import { jobStore } from '../../src/ledger/sqlite/jobs.ts';
import { promptStore } from '../../src/ledger/sqlite/prompts.ts';
import { SCHEMA } from '../../src/ledger/sqlite/schema.ts';
import { Writer } from '../../src/ledger/sqlite/writer.ts';
import type { Database } from '../../src/ledger/sqlite/database.ts';
import { file, prompt } from './ledger.suite.ts';

let db: Database;
let executed: string[];
let prepared: string[];
let failOn: string | undefined;

/** A database in memory that notes what it is told, and fails when asked to. */
function noting(): Database {
  return {
    get isOpen() {
      return db.isOpen;
    },
    get isTransaction() {
      return db.isTransaction;
    },
    exec(sql: string) {
      note(sql);
      db.exec(sql);
    },
    prepare(sql: string) {
      prepared.push(sql);
      const statement = db.prepare(sql);
      if (!/^(BEGIN|COMMIT|SAVEPOINT)/.test(sql)) return statement;
      return {
        run() {
          note(sql);
          return statement.run();
        },
      };
    },
  } as unknown as Database;
}

function note(sql: string): void {
  executed.push(sql);
  if (sql === failOn) throw new Error('database or disk is full');
}

function openPrompts() {
  const noted = noting();
  return promptStore(noted, new Writer(noted));
}

function openFiles() {
  const noted = noting();
  const writer = new Writer(noted);
  return fileStore(noted, writer, createFileLists(writer));
}

beforeEach(() => {
  [executed, prepared, failOn] = [[], [], undefined];
  db = new DatabaseSync(':memory:');
  db.exec(SCHEMA);
});

describe('durability', () => {
  const outcome = { entryJson: '{}', statusWord: 'success', startedAtMs: 1, endedAtMs: 2 };
  const log = {
    sync: async () => note('sync'),
    syncSoon: () => note('soon'),
    waitFor: () => note('files'),
  };
  function openSynced() {
    const noted = noting();
    return promptStore(noted, new Writer(noted, log));
  }

  test('a write that must survive a power cut is synced after its commit, before it is acknowledged', async () => {
    const prompts = openSynced();
    await prompts.insert(prompt('a')).then(() => note('acknowledged'));
    expect(executed.slice(-3)).toEqual(['COMMIT', 'sync', 'acknowledged']);
  });

  test('a write that must survive only kill -9 is committed before it is acknowledged, and not synced', async () => {
    const prompts = openSynced();
    await prompts.insert(prompt('a'));
    executed.length = 0;
    await prompts.finish('a', outcome, 'soon').then(() => note('acknowledged'));
    expect(executed.slice(-3)).toEqual(['COMMIT', 'soon', 'acknowledged']);
  });

  test('the end of a job is acknowledged after its commit, and synced soon, after its files', async () => {
    const noted = noting();
    const writer = new Writer(noted, log);
    await writer
      .write(
        () => note('end'),
        'soon',
        async () => {},
      )
      .then(() => note('acknowledged'));
    expect(executed.slice(-4)).toEqual(['COMMIT', 'files', 'soon', 'acknowledged']);
  });

  test('when the sync fails, its write rejects with the reason', async () => {
    const prompts = openSynced();
    failOn = 'sync';
    await expect(prompts.insert(prompt('a'))).rejects.toThrow('database or disk is full');
  });
});

describe('group commit', () => {
  test('sixty-four writers of one turn share one transaction', async () => {
    const prompts = openPrompts();
    await Promise.all(Array.from({ length: 64 }, (_, i) => prompts.insert(prompt(`k${i}`))));
    expect(executed.filter((sql) => sql === 'BEGIN IMMEDIATE')).toHaveLength(1);
    expect(executed.filter((sql) => sql === 'COMMIT')).toHaveLength(1);
    expect(await prompts.live()).toHaveLength(64);
  });

  test.each(['COMMIT', 'BEGIN IMMEDIATE'])(
    'when %s fails, its writes reject with the reason, and the next write works',
    async (sql) => {
      const prompts = openPrompts();
      failOn = sql;
      const results = await Promise.allSettled(
        ['a', 'b'].map((key) => prompts.insert(prompt(key))),
      );
      const cause = expect.objectContaining({ message: 'database or disk is full' });
      const told = { status: 'rejected', reason: expect.objectContaining({ cause }) };
      expect(results).toEqual([told, told]);
      failOn = undefined;
      expect(await prompts.live()).toEqual([]);
      await prompts.insert(prompt('c'));
      expect(await prompts.live()).toEqual([prompt('c')]);
    },
  );

  test('an outline that was read before the end of its prompt failed is not shown again', async () => {
    const prompts = openPrompts();
    await prompts.insert(prompt('a'));
    expect(await prompts.outlines('ann')).toEqual([]);
    failOn = 'COMMIT';
    const outcome = { entryJson: '{}', statusWord: 'success', startedAtMs: 1, endedAtMs: 2 };
    const refused = prompts.finish('a', outcome);
    expect(await prompts.outlines('ann')).toHaveLength(1);
    await expect(refused).rejects.toThrow('database or disk is full');
    expect(await prompts.outlines('ann')).toEqual([]);
  });

  test('a list of files read before a write that failed does not show it', async () => {
    const files = openFiles();
    failOn = 'COMMIT';
    const refused = files.put(file('a.png'));
    expect(await files.list('ann', 'input')).toHaveLength(1);
    await expect(refused).rejects.toThrow('database or disk is full');
    failOn = undefined;
    expect(await files.list('ann', 'input')).toEqual([]);
  });

  test('a write of several statements that cannot begin fails alone', async () => {
    const prompts = openPrompts();
    failOn = 'SAVEPOINT one';
    const refused = prompts.deleteHistory('ann', ['p']);
    failOn = undefined;
    await Promise.all([
      expect(refused).rejects.toThrow('database or disk is full'),
      prompts.insert(prompt('a')),
    ]);
    expect(await prompts.live()).toEqual([prompt('a')]);
  });

  test('when the store ends the transaction itself, all of its writes reject', async () => {
    const prompts = openPrompts();
    const writer = new Writer(db);
    const early = writer.write(() => 'early');
    const fatal = writer.write(() => {
      db.exec('ROLLBACK');
      throw new Error('disk I/O error');
    });
    const results = await Promise.allSettled([early, fatal]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await prompts.insert(prompt('a'));
    expect(await prompts.live()).toEqual([prompt('a')]);
  });
});

test('pages and look-ups are read from an index, never by sorting or scanning a table', () => {
  const noted = noting();
  const writer = new Writer(noted);
  const lists = createFileLists(writer);
  for (const open of [promptStore, fileStore, jobStore, assetStore]) open(noted, writer, lists);
  const reads = prepared.filter((sql) => /^SELECT[^]*(LIMIT|= \?)/.test(sql));
  expect(reads.length).toBeGreaterThan(15);
  const slow = reads.flatMap((sql) => {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
    return plan.filter(({ detail }) => /TEMP B-TREE|^SCAN \w+$/.test(detail)).map(() => sql);
  });
  // The list of all of a user's files, and the few live prompts, are sorted.
  expect(
    slow.filter((sql) => !/FROM files[^]*type = \?/.test(sql) && !/'done' AND/.test(sql)),
  ).toEqual([]);
});
