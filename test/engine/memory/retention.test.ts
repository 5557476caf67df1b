import { systemClock } from '../../../src/lib/clock.ts';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { ANNA, contentText, graph, runJob, spooled, value } from '../../support/app/jobs.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDeferred } from '../../../src/lib/concurrency.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';
import type { Engine } from '../../../src/engine/job-engine.ts';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';
import { TINY_WORKFLOWS, openEngine, startEngine } from './open.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const saving = (seed: number) =>
  graph({ 1: ['Number', { value: seed }], 2: ['Save', { value: ['1', 0], prefix: 'r' }] });

/** An engine whose clock is moved by hand and that sweeps all the time. */
async function engineWithClock(limits: { assetBudgetBytes?: number; retentionMs?: number } = {}) {
  const time = { nowMs: Date.parse('2026-01-01T00:00:00Z') };
  const dataDir = await tempFolder('data');
  const engine = await startEngine({
    dataDir,
    clock: { ...systemClock, now: () => time.nowMs },
    limits: { sweepIntervalMs: 5, retentionMs: 7 * DAY_MS, ...limits },
  });
  const blobs = async (): Promise<number> => {
    const entries = await readdir(path.join(dataDir, 'blobs'), {
      recursive: true,
      withFileTypes: true,
    });
    return entries.filter((entry) => entry.isFile()).length;
  };
  return { engine, time, blobs };
}

const upload = async (content: string, more: { expiresInSeconds?: number } = {}) => ({
  file: await spooled(content),
  contentType: 'text/plain',
  filePath: 'input/a.txt',
  ...more,
});

describe('retention', () => {
  test('a job lives for the retention after its end, then it, its outputs and their bytes are gone', async () => {
    const { engine, time, blobs } = await engineWithClock();
    const { job } = await runJob(engine, saving(1));
    expect(job.expires_at).toBe('2026-01-08T00:00:00.000Z');
    time.nowMs += 7 * DAY_MS - 1;
    expect(value(await engine.get(ANNA, job.id)).status).toBe('succeeded');
    time.nowMs += 1;
    await vi.waitFor(async () => expect((await engine.get(ANNA, job.id)).ok).toBe(false));
    expect((await engine.asset(ANNA, job.outputs[0]?.id ?? '')).ok).toBe(false);
    expect(await blobs()).toBe(0);
  });

  test('an unfinished job is kept: its expires_at is never past, and moves to its end', async () => {
    const { engine, time } = await engineWithClock();
    const { id } = value(
      await engine.submit(ANNA, { workflow: TINY_WORKFLOWS.endless(1), extraData: {} }),
    );
    const shown = async () => value(await engine.get(ANNA, id));
    expect((await shown()).expires_at).toBe('2026-01-08T00:00:00.000Z');
    time.nowMs += 10 * DAY_MS;
    await vi.waitFor(async () => expect((await shown()).status).toBe('running'));
    expect((await shown()).expires_at).toBe('2026-01-18T00:00:00.000Z');
    await engine.cancel(ANNA, id);
    await vi.waitFor(async () => expect((await shown()).status).toBe('canceled'));
    expect((await shown()).expires_at).toBe('2026-01-18T00:00:00.000Z');
  });

  test('outputs taken over from the cache live as long as the job that lists them', async () => {
    const { engine, time } = await engineWithClock();
    const first = await runJob(engine, saving(1));
    time.nowMs += 5 * DAY_MS;
    const again = await runJob(engine, saving(1));
    expect(again.job.x_cached_nodes).toEqual(['1', '2']);
    time.nowMs += 5 * DAY_MS;
    expect(value(await engine.get(ANNA, first.job.id)).status).toBe('succeeded');
    expect(await contentText(engine, again.job.outputs[0]?.id ?? '')).toBe('1');
  });

  test('a cached node whose files have gone runs again', async () => {
    const { engine, time } = await engineWithClock();
    const first = await runJob(engine, saving(1));
    time.nowMs += 8 * DAY_MS;
    await vi.waitFor(async () => expect((await engine.get(ANNA, first.job.id)).ok).toBe(false));
    const again = await runJob(engine, saving(1));
    expect(again.job.x_cached_nodes).toEqual(['1']);
    expect(await contentText(engine, again.job.outputs[0]?.id ?? '')).toBe('1');
  });

  test('an asset that expires is 404 from that moment and its bytes go', async () => {
    const { engine, time, blobs } = await engineWithClock();
    const asset = value(
      await engine.createAsset(ANNA, await upload('x', { expiresInSeconds: 60 })),
    );
    expect(asset.expires_at).toBe('2026-01-01T00:01:00.000Z');
    time.nowMs += 60_000;
    expect(await engine.asset(ANNA, asset.id)).toMatchObject({ error: { status: 404 } });
    await vi.waitFor(async () => expect(await blobs()).toBe(0));
  });

  test.each([59, 604_801, 60.5])('expires_in %s is refused with 422', async (expiresInSeconds) => {
    const { engine } = await engineWithClock();
    const refused = await engine.createAsset(ANNA, await upload('x', { expiresInSeconds }));
    expect(refused).toMatchObject({ error: { status: 422 } });
  });

  test('over the disk budget the oldest assets go', async () => {
    const { engine, time } = await engineWithClock({ assetBudgetBytes: 25 });
    const ids: string[] = [];
    for (const content of ['0123456789', 'abcdefghij', 'ABCDEFGHIJ']) {
      time.nowMs += 1000;
      ids.push(value(await engine.createAsset(ANNA, await upload(content))).id);
    }
    await vi.waitFor(async () => expect((await engine.asset(ANNA, ids[0] ?? '')).ok).toBe(false));
    expect(await contentText(engine, ids[1] ?? '')).toBe('abcdefghij');
    expect(await contentText(engine, ids[2] ?? '')).toBe('ABCDEFGHIJ');
  });

  test('over the disk budget a file stays that a job began to read while others went', async () => {
    const dataDir = await tempFolder('data');
    const held = createDeferred();
    const blobs = createFolderBlobs(path.join(dataDir, 'blobs'));
    const markUnrecorded = vi.fn(async (hash: string) => {
      await held.promise;
      await blobs.markUnrecorded(hash);
    });
    const engine = await openEngine({
      dataDir,
      blobs: { ...blobs, markUnrecorded },
      limits: { sweepIntervalMs: 5, assetBudgetBytes: 10 },
    });
    const ids: string[] = [];
    for (const content of ['0123456789', 'abcdefghij', 'ABCDEFGHIJ', '9876543210'])
      ids.push(value(await engine.createAsset(ANNA, await upload(content))).id);
    engine.start();
    await vi.waitFor(() => expect(markUnrecorded).toHaveBeenCalled());
    const id = await submitReader(engine, ids[2] ?? '');
    held.resolve();
    await vi.waitFor(async () => expect((await engine.asset(ANNA, ids[1] ?? '')).ok).toBe(false));
    await sleep(50);
    expect(await contentText(engine, ids[2] ?? '')).toBe('ABCDEFGHIJ');
    await engine.cancel(ANNA, id);
  });

  test('a file that a job is about to read is not removed', async () => {
    const ledger = createMemoryLedger();
    const { reached, goOn, jobs } = pausingInsert(ledger);
    const engine = await openEngine({ ledger: { ...ledger, jobs } });
    const { id } = value(await engine.createAsset(ANNA, await upload('x')));
    const submitted = submitReader(engine, id);
    await reached;
    const refused = await engine.deleteAsset(ANNA, id);
    goOn();
    expect(refused).toMatchObject({ error: { status: 409, code: 'asset_in_use' } });
    expect(await contentText(engine, id)).toBe('x');
    await engine.cancel(ANNA, await submitted);
    expect((await engine.deleteAsset(ANNA, id)).ok).toBe(true);
  });

  test('a file can be removed after a submission that could not look it up', async () => {
    const ledger = createMemoryLedger();
    const faults = [false, true];
    const get = async (id: string) => {
      if (faults.shift() === true) throw new Error('no disk');
      return await ledger.assets.get(id);
    };
    const engine = await openEngine({ ledger: { ...ledger, assets: { ...ledger.assets, get } } });
    const { id } = value(await engine.createAsset(ANNA, await upload('x')));
    await expect(submitReader(engine, id)).rejects.toThrow('no disk');
    await sleep(1);
    expect((await engine.deleteAsset(ANNA, id)).ok).toBe(true);
  });

  test('a job that names a file which is being removed is refused', async () => {
    const dataDir = await tempFolder('data');
    const held = createDeferred();
    const blobs = createFolderBlobs(path.join(dataDir, 'blobs'));
    const markUnrecorded = vi.fn(() => held.promise);
    const engine = await openEngine({ dataDir, blobs: { ...blobs, markUnrecorded } });
    const { id } = value(await engine.createAsset(ANNA, await upload('x')));
    const removed = engine.deleteAsset(ANNA, id);
    await vi.waitFor(() => expect(markUnrecorded).toHaveBeenCalled());
    const submitted = engine.submit(ANNA, { workflow: readerOf(id), extraData: {} });
    await sleep(20);
    held.resolve();
    expect((await removed).ok).toBe(true);
    const details = { missing_ids: [id] };
    expect(await submitted).toMatchObject({ error: { code: 'missing_asset', details } });
  });

  test('a waiting job reads a file that expires meanwhile', async () => {
    const time = { nowMs: Date.parse('2026-01-01T00:00:00Z') };
    const engine = await startEngine({ clock: { ...systemClock, now: () => time.nowMs } });
    const { id } = value(
      await engine.createAsset(ANNA, await upload('x', { expiresInSeconds: 60 })),
    );
    const first = await submitReader(engine, id);
    const workflow = graph({
      1: ['Load', { file: { __type: 'core/ASSET', info: { id } } }],
      2: ['Load', { file: 'a.txt' }],
      3: ['Save', { value: ['1', 0], prefix: 'r' }],
      4: ['Save', { value: ['2', 0], prefix: 's' }],
    });
    const second = value(await engine.submit(ANNA, { workflow, extraData: {} }));
    time.nowMs += 61_000;
    await engine.cancel(ANNA, first);
    await vi.waitFor(
      async () =>
        expect(value(await engine.get(ANNA, second.id)).status).not.toMatch(/queued|running/),
      { timeout: 10_000 },
    );
    expect(value(await engine.get(ANNA, second.id))).toMatchObject({ status: 'succeeded' });
  });

  test('a job past its retention stays while an unfinished one reads its output', async () => {
    const { engine, time } = await engineWithClock();
    const { job } = await runJob(engine, saving(1));
    const id = await submitReader(engine, job.outputs[0]?.id ?? '');
    time.nowMs += 8 * DAY_MS;
    await sleep(50);
    expect(await contentText(engine, job.outputs[0]?.id ?? '')).toBe('1');
    await engine.cancel(ANNA, id);
    await vi.waitFor(async () => expect((await engine.get(ANNA, job.id)).ok).toBe(false));
  });
});

/** Submits a job that reads an asset and does not end. */
async function submitReader(engine: Engine, id: string): Promise<string> {
  return value(await engine.submit(ANNA, { workflow: readerOf(id), extraData: {} })).id;
}

function readerOf(id: string) {
  return graph({
    1: ['Load', { file: { __type: 'core/ASSET', info: { id } } }],
    2: ['Sink', { value: ['1', 0] }],
    3: ['Spin', { seed: 1 }],
    4: ['Sink', { value: ['3', 0] }],
  });
}

/** The jobs of a ledger, which stores the next one when the test says so. */
function pausingInsert({ jobs }: Ledger) {
  const [isReached, mayGoOn] = [createDeferred(), createDeferred()];
  const insert: Ledger['jobs']['insert'] = async (...job) => {
    isReached.resolve();
    await mayGoOn.promise;
    return jobs.insert(...job);
  };
  return { reached: isReached.promise, goOn: mayGoOn.resolve, jobs: { ...jobs, insert } };
}
