// Classes that are not installed are replaced by their successors, as the original does.
import { expect, test } from 'vitest';
import type { ObjectInfo } from '../../src/protocol/v1.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { withReplacements } from '../../src/translate/node-replacements.ts';

const OLD = 'ResizeImagesByLongerEdge';
const NEW = 'ImageScaleToMaxDimension';

const replaced = (node: object, installed: readonly string[]) => {
  const info = Object.fromEntries(installed.map((name) => [name, {}])) as unknown as ObjectInfo;
  return withReplacements({ 5: node } as unknown as Graph, info)['5'];
};

test.each([
  [
    { images: ['1', 0], longer_edge: 8, image: 'x' },
    { image: ['1', 0], largest_size: 8 },
  ],
  [{ images: ['1', 0] }, { image: ['1', 0] }],
])('%j are renamed, others are left out', (given, inputs) => {
  expect(replaced({ class_type: OLD, inputs: given }, [NEW])).toEqual({
    class_type: NEW,
    inputs: { ...inputs, upscale_method: 'lanczos' },
    _meta: {},
  });
});

test('the title is kept', () => {
  const node = { class_type: OLD, inputs: {}, _meta: { title: 'Mine' } };
  expect(replaced(node, [NEW])).toMatchObject({ class_type: NEW, _meta: { title: 'Mine' } });
});

test.each([
  ['an installed class', OLD, { images: ['1', 0] }, [OLD, NEW]],
  ['one without an installed successor', OLD, {}, []],
  ['another class', 'Mine', {}, [NEW]],
  ['one without inputs', OLD, undefined, [NEW]],
])('%s stays', (_, class_type, inputs, installed) => {
  const node = { class_type, inputs };
  expect(replaced(node, installed)).toEqual(node);
});
