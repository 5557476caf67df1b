import { existsSync } from 'node:fs';
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { hashOf } from '../../../src/lib/hash.ts';
import { createOutputNames, createOutputs } from '../../../src/upstreams/assets/outputs.ts';
import { createFolderBlobs } from '../../../src/upstreams/folder/folder-blobs.ts';
import { createCallContext } from '../../../src/upstreams/execution/call-context.ts';
import { createMessageBatch } from '../../../src/upstreams/execution/message-batch.ts';
import { createMemoryMeter } from '../../../src/upstreams/execution/memory-meter.ts';
import {
  createOutputPlacer,
  type OutputPlacer,
} from '../../../src/upstreams/execution/place-output.ts';
import type { WorkerRequests } from '../../../src/upstreams/jobs/worker-protocol.ts';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';
import { tempDir } from '../embedded/open.ts';

const BYTES = Buffer.from('bytes');
const HASH = hashOf(BYTES);

async function setup() {
  const dataDir = await tempDir();
  const spoolDir = path.join(dataDir, 'spool');
  await mkdir(spoolDir);
  const blobs = createFolderBlobs(path.join(dataDir, 'blobs'));
  const ledger = createMemoryLedger();
  const outputs = createOutputs({
    ledger,
    blobs,
    withLock: createKeyedMutex(),
    names: createOutputNames(),
    clock: systemClock,
  });
  return {
    blobs,
    ledger,
    outputs,
    placer: createOutputPlacer({ spoolDir, blobsDir: blobs.blobsDir }),
    markers: () => readdir(path.join(dataDir, 'blobs-unrecorded')).catch(() => []),
    spooled: () => readdir(spoolDir),
  };
}

const FILE = {
  bytes: BYTES,
  name: 'a_00001_.txt',
  subfolder: '',
  contentType: 'text/plain',
  temp: false,
} as const;

test('an output is in place under its hash, with a marker until it is recorded', async () => {
  const { placer, blobs, outputs, markers, spooled } = await setup();
  expect(placer.place(BYTES)).toBe(HASH);
  expect(await readFile(blobs.pathOf(HASH) ?? '')).toEqual(BYTES);
  expect([(await markers()).length, await spooled()]).toEqual([1, []]);
  const file = { ...FILE, hash: HASH, sizeBytes: BYTES.length, websocket: false };
  await outputs.commit({ user: 'ann', jobId: 'j', nodeId: '1', file });
  await expect.poll(markers).toEqual([]);
});

test('bytes of a ledger that is lost get no marker, which would let them be removed', async () => {
  const { placer, blobs, markers } = await setup();
  await mkdir(path.dirname(blobs.pathOf(HASH) ?? ''), { recursive: true });
  await writeFile(blobs.pathOf(HASH) ?? '', BYTES);
  placer.place(BYTES);
  expect(await markers()).toEqual([]);
});

test('a cut-off file is replaced', async () => {
  const { placer, blobs, markers } = await setup();
  await mkdir(path.dirname(blobs.pathOf(HASH) ?? ''), { recursive: true });
  await writeFile(blobs.pathOf(HASH) ?? '', 'by');
  placer.place(BYTES);
  expect([await readFile(blobs.pathOf(HASH) ?? ''), await markers()]).toEqual([BYTES, []]);
});

test('an output that cannot be written leaves nothing, and says why without a path', async () => {
  const { placer, blobs, spooled } = await setup();
  await mkdir(path.dirname(blobs.blobsDir), { recursive: true });
  await writeFile(blobs.blobsDir, 'not a folder');
  const context = contextWith(placer, async () => null);
  await expect(context.save(FILE)).rejects.toMatchObject({
    exceptionType: 'OSError',
    message: expect.stringMatching(/^a_00001_\.txt could not be written: E[A-Z]+$/),
  });
  expect(await spooled()).toEqual([]);
});

test('bytes removed with the last record of their hash are written again', async () => {
  const { placer, blobs, outputs, ledger } = await setup();
  const removals: number[] = [];
  const context = contextWith(placer, async (ask) => {
    if (removals.push(1) === 1) await rm(blobs.pathOf(HASH) ?? '');
    return await outputs.commit({ user: 'ann', jobId: 'j', ...ask });
  });
  const { x_asset } = (await context.save(FILE)) as { readonly x_asset: string };
  expect([removals.length, existsSync(blobs.pathOf(HASH) ?? '')]).toEqual([2, true]);
  expect(await ledger.assets.get(x_asset)).toMatchObject({ hash: HASH });
});

const unused = (): never => {
  throw new Error('no file is read here');
};

type SaveRequest = WorkerRequests['save'];

function contextWith(
  outputs: OutputPlacer,
  save: (ask: SaveRequest['ask']) => Promise<SaveRequest['answer']>,
) {
  return createCallContext('1', {
    outputs,
    inputs: { read: unused, sha256: unused },
    files: new Map(),
    flags: new Int32Array(2),
    meter: createMemoryMeter(Infinity),
    textBudget: { left: 0 },
    promptText: null,
    extraPngInfo: null,
    inputTypes: {},
    ask: (async (request: { ask: SaveRequest['ask'] }) => await save(request.ask)) as never,
    messages: createMessageBatch({ postMessage() {} }),
  });
}
