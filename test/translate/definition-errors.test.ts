import { expect, test } from 'vitest';
import { partialNodeErrors } from '../../src/translate/definition-errors.ts';
import { LosslessNumber } from '../../src/protocol/json.ts';
import type { ObjectInfo } from '../../src/protocol/v1.ts';
import type { Graph } from '../../src/protocol/v2.ts';

const INFO = {
  Make: {
    input: { required: { steps: ['INT', { min: 1, max: 9 }], mode: [['fast', 'slow'], {}] } },
  },
  Save: { input: { required: { images: ['IMAGE'], prefix: ['STRING', {}] } }, output_node: true },
} as unknown as ObjectInfo;

const good = { class_type: 'Make', inputs: { steps: 3, mode: 'fast' } };
const save = (from: string) => ({ class_type: 'Save', inputs: { images: [from, 0], prefix: 'x' } });
const errorsOf = (bad: object, outputs = ['8', '9']) =>
  partialNodeErrors(
    { '1': good, '2': bad, '8': save('1'), '9': save('2') } as unknown as Graph,
    INFO,
    outputs,
  );

test.each([
  ['required_input_missing', { steps: 3 }, 'mode'],
  ['value_not_in_list', { steps: 3, mode: 'odd' }, "mode: 'odd' not in ['fast', 'slow']"],
  ['value_smaller_than_min', { steps: 0, mode: 'fast' }, 'steps'],
  ['value_bigger_than_max', { steps: 10, mode: 'fast' }, 'steps'],
  ['value_bigger_than_max', { steps: new LosslessNumber('1e400'), mode: 'fast' }, 'steps'],
])('%s is reported at its node, with the outputs that fail for it', (type, inputs, details) => {
  const { '2': node, ...others } = errorsOf({ class_type: 'Make', inputs });
  expect(others).toEqual({});
  expect(node).toMatchObject({ class_type: 'Make', dependent_outputs: ['9'] });
  expect(node?.errors).toMatchObject([{ type, details }]);
});

test('a refusal of many values is of bounded length', () => {
  const info = { Make: { input: { required: { tags: [['a'], { multiselect: true }] } } } };
  const tags = Array.from({ length: 100 }, () => 'x'.repeat(9_000));
  const bad = { '2': { class_type: 'Make', inputs: { tags } }, '8': save('1'), '9': save('2') };
  const graph = { '1': { class_type: 'Make', inputs: { tags: ['a'] } }, ...bad } as Graph;
  const { '2': node } = partialNodeErrors(graph, { ...INFO, ...info } as unknown as ObjectInfo, [
    '8',
    '9',
  ]);
  expect(JSON.stringify(node).length).toBeLessThan(30_000);
});

const DYNAMIC = {
  ...INFO,
  Make: {
    input: {
      required: {
        blend: ['COMBO', { multiselect: false, options: ['normal', 'screen'] }],
        tags: ['COMBO', { multiselect: true, options: ['a', 'b'] }],
        size: [
          'COMFY_DYNAMICCOMBO_V3',
          { options: [{ key: 'width', inputs: { required: { width: ['INT', { min: 0 }] } } }] },
        ],
        images: [
          'COMFY_AUTOGROW_V3',
          { template: { input: { required: { image: ['IMAGE', {}] } }, prefix: 'image', min: 1 } },
        ],
        rows: ['COMFY_DYNAMICGROUP_V3', { template: { required: { text: ['STRING', {}] } } }],
      },
    },
  },
} as unknown as ObjectInfo;
const RIGHT = {
  blend: { __value__: 'screen' },
  tags: { __value__: ['a', 'b'] },
  size: 'width',
  'size.width': 0,
  'images.image0': ['7', 0],
};

test.each([
  ['value_not_in_list', 'blend', { blend: 'magic' }, "blend: 'magic' not in ['normal', 'screen']"],
  ['value_not_in_list', 'tags', { tags: { __value__: ['a', 'z'] } }, "tags: 'z' not in ['a', 'b']"],
  ['value_not_in_list', 'tags', { tags: { __value__: ['a', 0] } }, "tags: 0 not in ['a', 'b']"],
  ['value_smaller_than_min', 'size.width', { 'size.width': -5 }, 'size.width'],
  ['required_input_missing', 'size.width', { 'size.width': undefined }, 'width'],
  ['required_input_missing', 'images.image0', { 'images.image0': undefined }, 'image0'],
  ['invalid_dynamic_input', 'rows.x', { 'rows.x': 1 }, expect.stringContaining("'rows.x'")],
])('%s of %s is reported', (type, input, change, details) => {
  const nodes = {
    '1': { class_type: 'Make', inputs: RIGHT },
    '2': { class_type: 'Make', inputs: { ...RIGHT, ...change } },
  };
  const graph = JSON.parse(JSON.stringify({ ...nodes, '8': save('1'), '9': save('2') })) as Graph;
  const { '2': node, ...others } = partialNodeErrors(graph, DYNAMIC, ['8', '9']);
  expect(others).toEqual({});
  expect(node?.errors).toMatchObject([{ type, details, extra_info: { input_name: input } }]);
});

test.each([
  ['a good graph', good, ['8', '9']],
  ['a class that no definition describes', { class_type: 'Unknown', inputs: {} }, ['8', '9']],
  ['a fault that no output needs', { class_type: 'Make', inputs: {} }, ['8']],
  [
    'faults in all outputs: the definitions are not the engine’s',
    { class_type: 'Make', inputs: {} },
    ['9'],
  ],
  [
    'a value that comes by a link',
    { class_type: 'Make', inputs: { steps: ['1', 0], mode: 'slow' } },
    ['8', '9'],
  ],
])('nothing is reported of %s', (_, bad, outputs) => {
  expect(errorsOf(bad, outputs)).toEqual({});
});
