import { expect, test } from 'vitest';
import { workflowText } from '../../src/migration/workflow-text.ts';
import type { Graph } from '../../src/protocol/v2.ts';

const file = {
  assetId: 'a',
  variable: 'cat',
  path: 'inputs/cat.png',
  filePath: 'input/cat.png',
  contentType: 'image/png',
};

test('thousands of files in a long workflow are marked in one reading of it', () => {
  const reference = { __type: 'core/ASSET', info: { id: 'a' } };
  const loaders = Array.from({ length: 10_000 }, (_, i) => [
    `${i}`,
    { class_type: 'LoadImage', inputs: { image: reference } },
  ]);
  const text = '"@'.repeat(8 * 1024 * 1024);
  const own = { class_type: 'PreviewAny', inputs: { source: text, '@inputs/cat.png': ['x'] } };
  const workflow = Object.fromEntries([...loaders, ['text', own]]) as Graph;
  // To read the workflow for each file would be minutes.
  const { inputs } = workflowText(workflow, () => ({ kind: 'file', file }));
  expect(inputs).toHaveLength(10_000);
  expect(new Set(inputs.map(({ placeholder }) => placeholder))).toEqual(
    new Set(['@@inputs/cat.png']),
  );
});
