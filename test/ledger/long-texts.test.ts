// Texts of many megabytes are written part by part, so that no write holds the event loop.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openSqliteLedger } from '../../src/ledger/sqlite/sqlite-ledger.ts';
import { job as storedJob, prompt } from './ledger.suite.ts';

let dir: string;
let path: string;
let ledger: Ledger;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'holdover-long-'));
  path = join(dir, 'holdover.db');
  ledger = openSqliteLedger({ path });
});
afterEach(async () => {
  await ledger.close();
  rmSync(dir, { recursive: true, force: true });
});

const LONG = JSON.stringify({ a: `${'x'.repeat(1_234_567)}😀ü` }).padEnd(5_000_001);

const job = (id: string) => storedJob(id, { workflowJson: LONG, provenanceJson: LONG });

/** Rows of long texts in the file, as another connection sees them. */
async function partsLeft(): Promise<number> {
  await ledger.close();
  const db = new DatabaseSync(path);
  const { count } = db.prepare('SELECT count(*) AS count FROM long_texts').get() as {
    count: number;
  };
  db.close();
  ledger = openSqliteLedger({ path });
  return count;
}

test('a long graph, its change, its end and its removal', async () => {
  await ledger.prompts.insert(prompt('a', { graphJson: LONG, extraDataJson: LONG }));
  expect(await ledger.prompts.get('a')).toEqual(
    prompt('a', { graphJson: LONG, extraDataJson: LONG }),
  );
  const graphJson = `${LONG} `;
  await ledger.prompts.update('a', 'unfinished', { state: 'live', jobId: 'j', graphJson });
  const end = { entryJson: '{}', statusWord: 'x', startedAtMs: 1, endedAtMs: 2 };
  await ledger.prompts.finish('a', end);
  const done = await ledger.prompts.get('a');
  expect(done?.graphJson === graphJson).toBe(true);
  expect(done?.extraDataJson === LONG).toBe(true);
  expect(await partsLeft()).toBe(20);
  await ledger.prompts.finish('a', { ...end, shortened: { graphJson: '{}', extraDataJson: '{}' } });
  expect(await partsLeft()).toBe(0);
  await ledger.prompts.clearHistory('ann');
  expect(await partsLeft()).toBe(0);
});

test('a long job, and one whose key was used before', async () => {
  expect(await ledger.jobs.insert(job('a'), 'key')).toBe(true);
  expect(await ledger.jobs.insert(job('b'), 'key')).toBe(false);
  expect(await partsLeft()).toBe(20);
  const row = await ledger.jobs.get('a');
  expect([row?.workflowJson === LONG, row?.provenanceJson === LONG]).toEqual([true, true]);
  await ledger.jobs.remove('a');
  expect(await partsLeft()).toBe(0);
});

test('a long job that is sent again under its id keeps its texts', async () => {
  expect(await ledger.jobs.insert(job('a'), 'a')).toBe(true);
  expect(await ledger.jobs.insert(job('a'), 'a')).toBe(false);
  expect(await partsLeft()).toBe(20);
  expect((await ledger.jobs.get('a'))?.workflowJson === LONG).toBe(true);
});

test('parts of a row that was never written are removed at the next start', async () => {
  const inserted = ledger.prompts.insert(prompt('a', { graphJson: LONG }));
  await new Promise((resolve) => setTimeout(resolve, 5));
  await ledger.close();
  await inserted.catch(() => {});
  ledger = openSqliteLedger({ path });
  expect(await ledger.prompts.get('a')).toBeUndefined();
  expect(await partsLeft()).toBe(0);
});

test('other work runs between the parts', async () => {
  let turns = 0;
  let isOver = false;
  const tick = (): void => {
    turns++;
    if (!isOver) setImmediate(tick);
  };
  tick();
  await ledger.prompts.insert(prompt('a', { graphJson: LONG }));
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(10);
});
