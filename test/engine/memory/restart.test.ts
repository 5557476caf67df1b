import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';
import type { JobRow, JobStore } from '../../../src/ledger/ledger.ts';
import {
  ANNA,
  collect,
  graph,
  isStep,
  runJob,
  until,
  value,
  words,
} from '../../support/app/jobs.ts';
import { openEngine, startEngine } from './open.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const gate = (file: string) =>
  graph({
    1: ['Number', { value: 1 }],
    2: ['Save', { value: ['1', 0], prefix: 'early' }],
    3: ['Gate', { path: file }],
    4: ['Sink', { value: ['3', 0] }],
  });
const show = graph({ 1: ['Show', { value: 'x' }] });

async function setup() {
  return { ledger: createMemoryLedger(), dataDir: await tempFolder('data') };
}

/** The ledger and data directory left by a process that was killed while it ran a job. */
async function killedWhileRunning(patch: Partial<JobRow>) {
  const { ledger, dataDir } = await setup();
  const before = await openEngine({ ledger, dataDir });
  const { id } = value(await before.submit(ANNA, { workflow: show, extraData: {} }));
  await ledger.jobs.update(id, { startedAtMs: Date.now(), ...patch });
  return { ledger, dataDir, id };
}

describe('after a restart', () => {
  test('a job that was running when the process died runs again', async () => {
    const { id, ...stored } = await killedWhileRunning({ status: 'running' });
    const after = await startEngine(stored);
    expect(words(await collect(after, id)).at(-1)).toBe('status succeeded');
  });

  test('a job that was being canceled is canceled', async () => {
    const { id, ...stored } = await killedWhileRunning({ status: 'canceling' });
    const after = await openEngine(stored);
    expect(value(await after.get(ANNA, id))).toMatchObject({ status: 'canceled' });
  });

  test('a job that took the process down again and again fails with worker_lost', async () => {
    const { id, ledger, dataDir } = await killedWhileRunning({ status: 'running' });
    const row = await ledger.jobs.get(id);
    const extras = JSON.parse(row?.extrasJson ?? '{}') as object;
    await ledger.jobs.update(id, { extrasJson: JSON.stringify({ ...extras, attempts: 3 }) });
    const after = await openEngine({ ledger, dataDir });
    expect(value(await after.get(ANNA, id))).toMatchObject({
      status: 'failed',
      error: { code: 'worker_lost' },
    });
  });

  test('a run is on record before its first node begins, and one that begins none never is', async () => {
    const { ledger, dataDir } = await setup();
    const written: unknown[] = [];
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const jobs: JobStore = {
      ...ledger.jobs,
      async update(id, patch, durability) {
        written.push(patch.status);
        if (patch.status === 'running') await held;
        await ledger.jobs.update(id, patch, durability);
      },
    };
    const engine = await startEngine({ ledger: { ...ledger, jobs }, dataDir });
    const { id } = value(await engine.submit(ANNA, { workflow: show, extraData: {} }));
    const events = collect(engine, id);
    await expect.poll(() => written).toEqual(['running']);
    expect(value(await engine.get(ANNA, id))).toMatchObject({
      x_ui: {},
      progress: { nodes_done: 0 },
    });
    letGo();
    expect(words(await events).at(-1)).toBe('status succeeded');
    expect((await runJob(engine, show)).job.x_cached_nodes).toEqual(['1']);
    expect(written).toEqual(['running', 'succeeded', 'succeeded']);
  });

  test('a job that was taken, and had begun no node, may see any number of processes die', async () => {
    const { id, ledger, dataDir } = await killedWhileRunning({ status: 'queued' });
    for (let death = 0; death < 4; death++) await openEngine({ ledger, dataDir });
    const after = await startEngine({ ledger, dataDir });
    expect(words(await collect(after, id)).at(-1)).toBe('status succeeded');
  });

  test('a stop in good order is no death', async () => {
    const { ledger, dataDir } = await setup();
    const file = path.join(dataDir, 'open');
    const before = await openEngine({ ledger, dataDir });
    const { id } = value(await before.submit(ANNA, { workflow: gate(file), extraData: {} }));
    const stored = async () => {
      const row = await ledger.jobs.get(id);
      return [row?.status, (JSON.parse(row?.extrasJson ?? '{}') as { attempts: number }).attempts];
    };
    await before.close();
    for (let stop = 0; stop < 4; stop++) {
      const engine = await startEngine({ ledger, dataDir });
      await until(engine, id, isStep);
      expect(await stored()).toEqual(['running', 1]);
      await engine.close();
      expect(await stored()).toEqual(['queued', 0]);
    }
  });

  test('bytes noted as not yet recorded are gone; other bytes stay', async () => {
    const stored = await setup();
    const [owed, lost] = ['a'.repeat(64), `aa${'b'.repeat(62)}`];
    const files = [`blobs/aa/${owed}`, `blobs/aa/${lost}`, `blobs-unrecorded/${owed}`];
    for (const folder of ['blobs/aa', 'blobs-unrecorded'])
      await mkdir(path.join(stored.dataDir, folder), { recursive: true });
    for (const file of files) await writeFile(path.join(stored.dataDir, file), 'x');
    const engine = await startEngine(stored);
    await engine.close();
    expect(await readdir(path.join(stored.dataDir, 'blobs', 'aa'))).toEqual([lost]);
    expect(await readdir(path.join(stored.dataDir, 'blobs-unrecorded'))).toEqual([]);
  });
});
