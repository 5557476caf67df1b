import { expect, test } from 'vitest';
import { renewAssets } from '../../src/files/renew-assets.ts';
import type { ResolvedFile } from '../../src/files/resolve-files.ts';
import type { V2Error } from '../../src/protocol/job-api.ts';
import { fakeAssets, fakeFiles } from '../support/app/fake-stores.ts';
import { place } from '../support/app/v1-routes.ts';

const CALLER = { user: 'local' };
const HASH = `blake3:${'a'.repeat(64)}`;

async function app(names: readonly string[]) {
  const assets = fakeAssets();
  const files = fakeFiles();
  const placed: ResolvedFile[] = [];
  for (const [index, filename] of names.entries()) {
    const hash = `blake3:${String(index).repeat(64).slice(0, 64)}`;
    const assetId = await place({ assets, files }, filename, `bytes ${index}`, { hash });
    const where = { type: 'input', subfolder: '', filename } as const;
    placed.push({ ...where, nodeId: `${index}`, input: 'image', value: filename, assetId, hash });
  }
  return { assets, files, placed, deps: { jobs: assets, files } };
}

/** The record of one file is gone, its bytes are still there under another. */
function expire({ assets }: Awaited<ReturnType<typeof app>>, file: ResolvedFile): void {
  const held = assets.held.get(file.assetId)!;
  assets.put(CALLER.user, held.bytes, file.hash);
  assets.lose(file.assetId);
}

function refusal(details: V2Error['details'] = null): V2Error {
  return { status: 422, code: 'missing_asset', message: 'no', details };
}

test.each([
  ['named', true],
  ['not named', false],
])('a file that is gone gets a new record, whose name is the same (%s)', async (_how, isNamed) => {
  const one = await app(['a.png', 'b.png']);
  const [a, b] = one.placed as [ResolvedFile, ResolvedFile];
  expire(one, b);
  const error = refusal(isNamed ? { missing_ids: [b.assetId] } : null);
  const renewed = await renewAssets(one.deps, CALLER, { resolvedFiles: one.placed, error });
  expect(renewed?.map(({ filename }) => filename)).toEqual(['a.png', 'b.png']);
  expect(renewed?.[0]).toEqual(a);
  const id = renewed?.[1]?.assetId ?? '';
  expect(one.assets.held.get(id)?.bytes.toString()).toBe('bytes 1');
  expect((await one.files.get('local', b))?.assetId).toBe(id);
});

test('a file two nodes name gets one new record', async () => {
  const one = await app(['a.png']);
  const [a] = one.placed as [ResolvedFile];
  expire(one, a);
  const placed = [a, { ...a, nodeId: '2' }];
  const error = refusal({ missing_ids: [a.assetId] });
  const renewed = await renewAssets(one.deps, CALLER, { resolvedFiles: placed, error });
  expect(new Set(renewed?.map(({ assetId }) => assetId)).size).toBe(1);
  expect(one.assets.calls).toEqual(['assetFromHash']);
});

test('a file that is uploaded again may get the id that it had', async () => {
  const one = await app(['a.png']);
  const [a] = one.placed as [ResolvedFile];
  one.assets.lose(a.assetId);
  const services = { ...one.deps, reupload: () => Promise.resolve(a.assetId) };
  const error = refusal({ missing_ids: [a.assetId] });
  expect(await renewAssets(services, CALLER, { resolvedFiles: [a], error })).toEqual([a]);
});

test('a name that was overwritten meanwhile keeps its new bytes', async () => {
  const one = await app(['a.png']);
  const [a] = one.placed as [ResolvedFile];
  await place(one, 'a.png', 'newer', { hash: HASH });
  expire(one, a);
  const error = refusal({ missing_ids: [a.assetId] });
  const renewed = await renewAssets(one.deps, CALLER, { resolvedFiles: one.placed, error });
  expect(one.assets.held.get(renewed?.[0]?.assetId ?? '')?.bytes.toString()).toBe('bytes 0');
  expect((await one.files.get('local', a))?.hash).toBe(HASH);
});

test.each([
  ['bytes that are gone', {}, (a: ResolvedFile) => refusal({ missing_ids: [a.assetId] })],
  [
    'a file whose hash is unknown',
    { hash: null },
    (a: ResolvedFile) => refusal({ missing_ids: [a.assetId] }),
  ],
  ['an asset of another user', {}, () => refusal({ missing_ids: ['another'] })],
  ['another refusal', {}, () => ({ ...refusal(), code: 'invalid_workflow' })],
] as const)('%s cannot be renewed', async (_what, change, errorFor) => {
  const one = await app(['a.png']);
  const [a] = one.placed as [ResolvedFile];
  one.assets.lose(a.assetId);
  const placed = [{ ...a, ...change }];
  expect(
    await renewAssets(one.deps, CALLER, { resolvedFiles: placed, error: errorFor(a) }),
  ).toBeUndefined();
});
