import { systemClock } from '../../../src/lib/clock.ts';
// Bytes between the disk and the ledger: a note says so, and only noted bytes are ever cleared up.
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { Assets } from '../../../src/engine/assets/assets.ts';
import { createOutputNames, createSaveOutput } from '../../../src/engine/assets/outputs.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { removeUnrecorded } from '../../../src/engine/assets/retention.ts';
import type { AssetStore, Ledger } from '../../../src/ledger/ledger.ts';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const [ANN, BOB, ANNA] = [{ user: 'ann' }, { user: 'bob' }, { user: 'anna' }];
const HASH = `blake3:${'ab'.repeat(32)}`;

class Killed extends Error {}

/** A store of files whose process dies, so to say, at one step of the ledger. */
async function setup(dies: Partial<AssetStore> = {}) {
  const dataDir = await tempFolder('data');
  const whole = createMemoryLedger();
  const blobs = createFolderBlobs(path.join(dataDir, 'blobs'));
  const over = (ledger: Ledger) => {
    const common = {
      ledger,
      blobs,
      withLock: createKeyedMutex(),
      clock: { ...systemClock, now: () => 0 },
      isInUse: () => false,
    };
    return { ...common, assets: new Assets(common).calls };
  };
  const spooled = path.join(dataDir, 'spooled');
  const place = path.join(dataDir, 'blobs', 'ab', 'ab'.repeat(32));
  return {
    place,
    ledger: whole,
    dying: over({ ...whole, assets: { ...whole.assets, ...dies } }),
    next: over(whole),
    upload: async () => {
      await writeFile(spooled, 'bytes');
      const file = { path: spooled, hash: HASH, sizeBytes: 5 };
      return { file, contentType: 'text/plain', filePath: 'input/a', tags: [] };
    },
    notes: () => readdir(path.join(dataDir, 'blobs-unrecorded')),
    isStored: () => existsSync(place),
  };
}

const die = (): Promise<never> => Promise.reject(new Killed());

test('an upload leaves no note once it is recorded, nor once it is discarded', async () => {
  const { next, upload, notes, isStored } = await setup();
  const made = await next.assets.createAsset(ANN, await upload());
  expect([await notes(), isStored()]).toEqual([[], true]);
  await next.assets.deleteAsset(ANN, made.ok ? made.value.id : '');
  expect([await notes(), isStored()]).toEqual([[], false]);
});

test('bytes whose record was never written are cleared up by the next process', async () => {
  const { dying, next, upload, notes, isStored } = await setup({ insert: die });
  await expect(dying.assets.createAsset(ANN, await upload())).rejects.toThrow(Killed);
  expect([(await notes()).length, isStored()]).toEqual([1, true]);
  await removeUnrecorded(next);
  expect([await notes(), isStored()]).toEqual([[], false]);
});

test('bytes whose record is gone while they are not are cleared up by the next process', async () => {
  const { dying, next, upload, notes, isStored } = await setup({ countByHash: die });
  const made = await next.assets.createAsset(ANN, await upload());
  await expect(dying.assets.deleteAsset(ANN, made.ok ? made.value.id : '')).rejects.toThrow(Killed);
  expect([(await notes()).length, isStored()]).toEqual([1, true]);
  await removeUnrecorded(next);
  expect([await notes(), isStored()]).toEqual([[], false]);
});

test('bytes recorded by then lose their note only', async () => {
  const { dying, next, upload, notes, isStored } = await setup({ insert: die });
  await expect(dying.assets.createAsset(ANN, await upload())).rejects.toThrow(Killed);
  await next.assets.createAsset(BOB, await upload());
  await removeUnrecorded(next);
  expect([await notes(), isStored()]).toEqual([[], true]);
});

test('bytes of a ledger that is lost stay, also when an upload of the same bytes dies', async () => {
  const { place, dying, next, upload, isStored } = await setup({ insert: die });
  await mkdir(path.dirname(place), { recursive: true });
  await writeFile(place, 'bytes');
  await expect(dying.assets.createAsset(ANN, await upload())).rejects.toThrow(Killed);
  await removeUnrecorded(next);
  expect(isStored()).toBe(true);
});

test('a request for bytes that are away leaves the records of others', async () => {
  const { place, ledger, next, upload } = await setup();
  await next.assets.createAsset(ANNA, await upload());
  const request = { hash: HASH, contentType: 'text/plain', filePath: 'input/b' };
  const first = await next.assets.assetFromHash(ANNA, request);
  await rename(place, `${place}-away`);
  expect(await next.assets.assetFromHash(ANNA, request)).toMatchObject({ error: { status: 404 } });
  await rename(`${place}-away`, place);
  expect(first.ok && (await ledger.assets.get(first.value.id))).toMatchObject({ hash: HASH });
  expect(await ledger.assets.countByHash(HASH)).toBe(2);
});

async function made({ upload }: Awaited<ReturnType<typeof setup>>) {
  const name = { series: 'a%batch_num%_', start: 'a0_', end: '_.txt' };
  const { file, contentType } = await upload();
  const saved = { ...file, name, subfolder: '', contentType, temp: false };
  return { user: 'ann', jobId: 'j', nodeId: '1', file: saved };
}

test('an output that cannot be stored leaves no file', async () => {
  const service = await setup();
  await writeFile(path.resolve(service.place, '../..'), 'not a folder');
  const saveOutput = createSaveOutput({ ...service.next, names: createOutputNames() });
  const output = await made(service);
  await expect(saveOutput(output)).rejects.toThrow(/ENOTDIR|EEXIST/);
  expect(existsSync(output.file.path)).toBe(false);
});

test('after a restart the number of a name with %batch_num% is found at once', async () => {
  const tried: string[] = [];
  const byFilePath = async (user: string, filePath: string) =>
    tried.push(filePath) > 0 ? service.ledger.assets.byFilePath(user, filePath) : undefined;
  const service = await setup({ byFilePath });
  for (let run = 0; run < 2; run++) {
    const saveOutput = createSaveOutput({ ...service.dying, names: createOutputNames() });
    for (let i = 0; i < 5; i++) await saveOutput(await made(service));
  }
  expect(tried[5]).toBe('output/a0_00006_.txt');
  expect(tried).toHaveLength(10);
});
