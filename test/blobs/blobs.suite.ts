import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { hashOf } from '../../src/lib/hash.ts';
import { readAtMost } from '../../src/lib/read-at-most.ts';
import type { SpooledFile } from '../../src/protocol/job-api.ts';
import type { Blobs } from '../../src/blobs/blobs.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const KIB = 1024;

async function tempFile(name: string): Promise<string> {
  const dir = await tempFolder('blobs');
  return path.join(dir, name);
}

/** Bytes as an upload leaves them for the store. */
export async function spooledBytes(bytes: Uint8Array): Promise<SpooledFile> {
  const file = await tempFile('spooled');
  await writeFile(file, bytes);
  return { path: file, sizeBytes: bytes.length, hash: hashOf(bytes) };
}

export async function bytesOf(stream: Readable | undefined): Promise<Buffer | undefined> {
  return stream && (await readAtMost(2 ** 30, stream));
}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Behaviour of every store of blobs. `open` gives an empty one. */
export function blobsSuite(name: string, open: () => Promise<Blobs>): void {
  const store = async (bytes: Uint8Array) => {
    const blobs = await open();
    const file = await spooledBytes(bytes);
    await blobs.moveIntoPlace(file);
    return { blobs, file, hash: file.hash };
  };
  const unrecorded = async (blobs: Blobs) =>
    (await all(blobs.listUnrecorded())).map(({ hash }) => hash);

  describe(`${name}: storing`, () => {
    test.each([0, 1, 300 * KIB, 3000 * KIB])('%i bytes come back as they were', async (length) => {
      const bytes = randomBytes(length);
      const { blobs, file, hash } = await store(bytes);
      expect(existsSync(file.path)).toBe(false);
      expect(await blobs.sizeOf(hash)).toBe(length);
      expect(bytes.equals((await bytesOf(await blobs.open(hash))) ?? Buffer.from('gone'))).toBe(
        true,
      );
      expect(bytes.equals((await blobs.read(hash)) ?? Buffer.from('gone'))).toBe(true);
    });

    test('the same bytes are stored once, and again after they were removed', async () => {
      const bytes = randomBytes(5000);
      const { blobs, hash } = await store(bytes);
      await blobs.moveIntoPlace(await spooledBytes(bytes));
      expect(
        (await all(blobs.list())).map(({ sizeBytes, ...one }) => [one.hash, sizeBytes]),
      ).toEqual([[hash, 5000]]);
      await blobs.remove(hash);
      expect(await blobs.sizeOf(hash)).toBeUndefined();
      await blobs.moveIntoPlace(await spooledBytes(bytes));
      expect(await blobs.sizeOf(hash)).toBe(5000);
    });

    test('a range has the bytes of both its ends', async () => {
      const bytes = randomBytes(2000 * KIB);
      const { blobs, hash } = await store(bytes);
      for (const [start, end] of [
        [0, 0],
        [5, 9],
        [1500 * KIB, 2000 * KIB - 1],
      ] as const) {
        const part = await bytesOf(await blobs.open(hash, { start, end }));
        expect(bytes.subarray(start, end + 1).equals(part ?? Buffer.alloc(0))).toBe(true);
      }
    });

    test('a reader that leaves early does not keep the bytes open', async () => {
      const { blobs, hash } = await store(randomBytes(2000 * KIB));
      const stream = await blobs.open(hash);
      stream?.destroy();
      expect(stream?.destroyed).toBe(true);
      expect(await blobs.sizeOf(hash)).toBe(2000 * KIB);
    });

    test('bytes that are not there are absent, and removing them is no error', async () => {
      const blobs = await open();
      const hash = hashOf(Buffer.from('absent'));
      expect(await blobs.open(hash)).toBeUndefined();
      expect(await blobs.open(hash, { start: 0, end: 1 })).toBeUndefined();
      expect(await blobs.read(hash)).toBeUndefined();
      expect(await blobs.sizeOf(hash)).toBeUndefined();
      expect(await blobs.setAside(hash)).toBeUndefined();
      expect(await blobs.copyTo(hash, await tempFile('copy'))).toBe(false);
      await blobs.remove(hash);
    });

    test('a name that is not a hash is never a path or a key', async () => {
      const blobs = await open();
      for (const hash of ['blake3:../../x', '', `blake3:${'A'.repeat(64)}`, 'sha256:00']) {
        await expect((async () => blobs.remove(hash))()).rejects.toThrow('not a blake3 hash');
      }
    });

    test('a copy on this machine has the same bytes', async () => {
      const bytes = randomBytes(4000);
      const { blobs, hash } = await store(bytes);
      const target = await tempFile('copy');
      expect(await blobs.copyTo(hash, target)).toBe(true);
      expect(bytes.equals(await readFile(target))).toBe(true);
    });
  });

  describe(`${name}: records`, () => {
    test.each(['moveIntoPlace', 'put'] as const)(
      'bytes that are new for %s have a marker until recorded',
      async (way) => {
        const bytes = randomBytes(10);
        const blobs = await open();
        const file = await spooledBytes(bytes);
        const { hash } = file;
        await blobs[way](file);
        expect(existsSync(file.path)).toBe(false);
        expect(await bytesOf(await blobs.open(hash))).toEqual(bytes);
        expect(await unrecorded(blobs)).toEqual([hash]);
        await blobs.markRecorded(hash);
        await blobs.markRecorded(hash);
        expect(await unrecorded(blobs)).toEqual([]);
      },
    );

    test('bytes that are there without a marker never get one by being stored again', async () => {
      const bytes = randomBytes(10);
      const { blobs, hash } = await store(bytes);
      await blobs.markRecorded(hash);
      await blobs.moveIntoPlace(await spooledBytes(bytes));
      await blobs.put(await spooledBytes(bytes));
      expect(await unrecorded(blobs)).toEqual([]);
      expect(await blobs.sizeOf(hash)).toBe(10);
    });

    test('a marker tells since when, and goes with the bytes', async () => {
      const { blobs, hash } = await store(randomBytes(10));
      await blobs.markRecorded(hash);
      await blobs.markUnrecorded(hash);
      const [marker] = await all(blobs.listUnrecorded());
      expect(Math.abs(Date.now() - (marker?.sinceMs ?? 0))).toBeLessThan(60_000);
      await blobs.remove(hash);
      expect(await unrecorded(blobs)).toEqual([]);
    });
  });

  describe(`${name}: bytes that are taken away`, () => {
    test('are absent meanwhile, listed, and come back whole', async () => {
      const bytes = randomBytes(700 * KIB);
      const { blobs, hash } = await store(bytes);
      const aside = await blobs.setAside(hash);
      expect(await blobs.sizeOf(hash)).toBeUndefined();
      expect((await all(blobs.listAside())).map((one) => [one.name, one.hash])).toEqual([
        [aside, hash],
      ]);
      await blobs.putBack(aside ?? '');
      expect(bytes.equals((await blobs.read(hash)) ?? Buffer.alloc(0))).toBe(true);
      expect(await all(blobs.listAside())).toEqual([]);
    });

    test('are gone when they are removed, and bytes that came meanwhile stay', async () => {
      const bytes = randomBytes(50);
      const { blobs, hash } = await store(bytes);
      const first = await blobs.setAside(hash);
      await blobs.moveIntoPlace(await spooledBytes(bytes));
      await blobs.removeAside(first ?? '');
      expect(await blobs.sizeOf(hash)).toBe(50);
      const second = await blobs.setAside(hash);
      await blobs.moveIntoPlace(await spooledBytes(bytes));
      await blobs.putBack(second ?? '');
      expect(bytes.equals((await blobs.read(hash)) ?? Buffer.alloc(0))).toBe(true);
      expect(await all(blobs.listAside())).toEqual([]);
    });

    test('what broke off is removed without harm to what is whole', async () => {
      const { blobs, hash } = await store(randomBytes(50));
      await blobs.removeAbandoned();
      expect(await blobs.sizeOf(hash)).toBe(50);
    });
  });
}
