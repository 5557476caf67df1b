import { expect, test } from 'vitest';
import type { AssetRow } from '../../../src/ledger/ledger.ts';
import type { NodeDef } from '../../../src/nodes/node.ts';
import { resolveFiles } from '../../../src/engine/jobs/resolve-files.ts';
import { graph } from '../../support/app/jobs.ts';

const row = (id: string, filePath: string) => ({ id, filePath, hash: `hash of ${id}` }) as AssetRow;
const OLDER = row('older', 'input/cat.png');
const NEWER = row('newer', 'input/cat.png');

const LOOKUP = {
  nodes: new Map([['Load', { fileInputs: ['file'] } as unknown as NodeDef]]),
  byId: async (id: string) => [OLDER, NEWER].find((each) => each.id === id),
  byPath: async (filePath: string) => (filePath === NEWER.filePath ? NEWER : undefined),
};

const REFERENCE = { __type: 'core/ASSET', info: { id: OLDER.id } };

test.each([
  ['a reference before the name', { 1: REFERENCE, 2: 'cat.png' }],
  ['a name before the reference', { 2: REFERENCE, 1: 'cat.png' }],
])('%s: each node reads its own file', async (_, files) => {
  const nodes = Object.entries(files).map(([id, file]) => [id, ['Load', { file }] as const]);
  const workflow = graph(Object.fromEntries(nodes));
  const targets = Object.keys(workflow);
  const resolved = await resolveFiles({ workflow, targets }, LOOKUP);
  const hashOf = (id: string) =>
    resolved.files.get(resolved.workflow[id]?.inputs['file'] as string);
  const read = Object.entries(files).map(([id, file]) => [file === REFERENCE, hashOf(id)]);
  expect(Object.fromEntries(read)).toEqual({ true: OLDER.hash, false: NEWER.hash });
});
