import { expect, test } from 'vitest';
import { importFiles } from '../../../src/cli/import/files.ts';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';

const NAME = { type: 'input', subfolder: '', filename: 'a.png' } as const;
const COMMON = { user: 'local', contentType: 'image/png', sizeBytes: 1 };

test('a name that a server gives to an upload meanwhile stays with the upload', async () => {
  const ledger = createMemoryLedger();
  const recorded: string[] = [];
  const upload = { ...COMMON, ...NAME, assetId: 'uploaded', hash: 'blake3:up', modifiedAtMs: 2 };
  const found = [
    { ...NAME, path: '/a.png', sizeBytes: 1, modifiedAtMs: 1 },
    { ...NAME, filename: 'b.png', path: '/b.png', sizeBytes: 1, modifiedAtMs: 1 },
  ];
  const result = await importFiles(
    {
      ledger,
      blobs: {
        moveIntoPlace: async () => {},
        markRecorded: async (hash: string) => void recorded.push(hash),
      },
      copy: async ({ path }: { path: string }) => {
        if (path === '/a.png') await ledger.files.put(upload);
        return { ok: true, file: { path, sizeBytes: 1, hash: `blake3:${path}` } };
      },
      user: 'local',
      now: () => 3,
      onFile: () => {},
    } as never,
    { found, leftOut: [], failed: [] } as never,
  );
  expect(result).toMatchObject({
    files: 1,
    bytes: 1,
    leftOut: [{ name: 'input/a.png', why: 'the name means another file here' }],
  });
  expect((await ledger.files.get('local', NAME))?.assetId).toBe('uploaded');
  expect(await ledger.assets.byFilePath('local', 'input/a.png')).toBeUndefined();
  expect(recorded).toEqual(['blake3:/b.png']);
});
