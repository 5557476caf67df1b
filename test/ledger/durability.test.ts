import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, expect, test } from 'vitest';
import { openSqliteLedger } from '../../src/ledger/sqlite/sqlite-ledger.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const WRITER = fileURLToPath(new URL('./writer.mjs', import.meta.url));
const LIMITED = 'ulimit -f 2048; exec "$0" "$@"';

let dir: string;
let path: string;
beforeEach(async () => {
  dir = await tempFolder('durable');
  path = join(dir, 'holdover.db');
});

function startWriter(task: string, prefix = ''): ChildProcess {
  return spawn(process.execPath, [WRITER, task, path, prefix], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Kills the process with SIGKILL once it said `lines` things; gives all it said. */
async function killAfter(child: ChildProcess, lines: number): Promise<string[]> {
  const said: string[] = [];
  const closed = once(child, 'close');
  for await (const line of createInterface({ input: child.stdout ?? process.stdin })) {
    said.push(line);
    if (said.length === lines) child.kill('SIGKILL');
  }
  expect(await closed).toEqual([null, 'SIGKILL']);
  return said;
}

test('acknowledged writes survive kill -9, five times in a row', async () => {
  const acknowledged: string[] = [];
  for (let round = 0; round < 5; round += 1) {
    const lines = 1 + Math.floor(Math.random() * 600);
    acknowledged.push(...(await killAfter(startWriter('insert', `r${round}`), lines)));
    const ledger = openSqliteLedger({ path });
    const done = (await ledger.prompts.outlines('ann')).map(({ key }) => key);
    const live = (await ledger.prompts.live()).map(({ key }) => key);
    await ledger.close();
    const present = new Set([
      ...done.map((key) => `finished ${key}`),
      ...[...done, ...live].map((key) => `inserted ${key}`),
    ]);
    expect(acknowledged.filter((line) => !present.has(line))).toEqual([]);
  }
  expect(acknowledged.length).toBeGreaterThanOrEqual(5);
}, 30_000);

test('another process is refused the file until its holder has ended in any way', async () => {
  const holder = startWriter('hold');
  const [line] = (await once(
    createInterface({ input: holder.stdout ?? process.stdin }),
    'line',
  )) as [string];
  expect(line).toBe('holding');
  expect(() => openSqliteLedger({ path })).toThrow('is in use by another Holdover');
  holder.kill('SIGKILL');
  await once(holder, 'close');
  const ledger = openSqliteLedger({ path });
  expect((await ledger.prompts.live()).map(({ key }) => key)).toEqual(['held']);
  await ledger.close();
}, 30_000);

test('on a full disk a write is refused with its cause, no other write is half reported, and the ledger continues', async () => {
  const command = ['-c', LIMITED, process.execPath, WRITER, 'overfill', path];
  const { stdout } = await promisify(execFile)('sh', command);
  const { stored, refused, live } = JSON.parse(stdout) as {
    stored: string[];
    refused: { [key: string]: string };
    live: string[];
  };
  expect(refused.huge).toMatch(/^the ledger could not be written: (.+): \1$/);
  expect(stored).toEqual(expect.arrayContaining(['before', 'after']));
  expect(live.toSorted()).toEqual(stored.toSorted());
  expect([...stored, ...Object.keys(refused)]).toHaveLength(5);
}, 30_000);
