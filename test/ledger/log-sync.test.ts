import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, expect, test, vi } from 'vitest';
import { SOON_MS } from '../../src/lib/durability.ts';
import { createLogSync } from '../../src/ledger/sqlite/log-sync.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

type Callback = (error: Error | null) => void;
const syncs: Callback[] = [];

let dir: string;
beforeEach(async () => {
  dir = await tempFolder('log');
  await writeFile(path.join(dir, 'db-wal'), '');
});

function open() {
  syncs.length = 0;
  const clock = createFakeClock();
  const syncFile = promisify((_file: number, done: Callback) => void syncs.push(done));
  return { clock, log: createLogSync(path.join(dir, 'db'), { clock, syncFile }) };
}

async function begun(count: number): Promise<void> {
  await vi.waitFor(() => expect(syncs).toHaveLength(count));
}

test('a commit during a sync waits for the next sync, with all other commits of that time', async () => {
  const { log } = open();
  const done: string[] = [];
  const first = log.sync().then(() => done.push('first'));
  await begun(1);
  const second = log.sync().then(() => done.push('second'));
  const third = log.sync().then(() => done.push('third'));
  syncs[0]?.(null);
  await first;
  await begun(2);
  expect(done).toEqual(['first']);
  syncs[1]?.(null);
  await Promise.all([second, third]);
  expect(syncs).toHaveLength(2);
});

test('ends of jobs share one delayed sync; an earlier sync covers them, too', async () => {
  const { clock, log } = open();
  log.syncSoon();
  await clock.advance(SOON_MS - 1);
  log.syncSoon();
  expect(syncs).toHaveLength(0);
  await clock.advance(1);
  expect(syncs).toHaveLength(1);
  syncs[0]?.(null);
  await clock.advance(0);
  log.syncSoon();
  void log.sync();
  await begun(2);
  await clock.advance(2 * SOON_MS);
  expect(syncs).toHaveLength(2);
});

test('no sync begins before the files that a write names are on the disk, also at the end', async () => {
  const { log } = open();
  let whenOnDisk: () => void = () => {};
  log.waitFor(() => undefined);
  log.waitFor(() => new Promise((resolve) => (whenOnDisk = resolve)));
  const ended = Promise.all([log.sync(), log.close()]);
  await new Promise(setImmediate);
  expect(syncs).toHaveLength(0);
  whenOnDisk();
  await begun(1);
  syncs[0]?.(null);
  await ended;
});

test('a failed sync fails those that wait for it, not those that wait for the next', async () => {
  const { log } = open();
  const first = log.sync();
  await begun(1);
  const second = log.sync();
  syncs[0]?.(new Error('EIO'));
  await expect(first).rejects.toThrow('EIO');
  await begun(2);
  syncs[1]?.(null);
  await second;
});
