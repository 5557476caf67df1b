// v1's validation of values that are of no use at all, as measured at the original server.
import { describe, expect, test } from 'vitest';
import { findOutputs, validateOutputs } from '../../../src/engine/validation/validate-workflow.ts';
import type { UnknownFile } from '../../../src/engine/validation/validate-node.ts';
import { ALL_NODES } from '../../../src/nodes/library.ts';
import { type Json, parseJson, stringifyJson } from '../../../src/protocol/json.ts';
import { runSteps } from '../../../src/protocol/steps.ts';
import type { NodeErrors } from '../../../src/protocol/v1.ts';
import type { Graph } from '../../../src/protocol/v2.ts';

const node = (class_type: unknown, inputs?: unknown) => ({ class_type, inputs });
const EMPTY = node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 0 });
const saved = (from = '1') => node('SaveImage', { images: [from, 0], filename_prefix: 'x' });

/** A refusal as v1 tells it. */
function refused(graph: object, unknownFiles = new Map<string, UnknownFile[]>()) {
  const workflow = parseJson(JSON.stringify(graph)) as unknown as Graph;
  const options = { nodes: ALL_NODES, unknownFiles };
  const found = findOutputs(workflow, ALL_NODES);
  const result = found.ok ? runSteps(validateOutputs(workflow, found.value, options)) : found;
  if (result.ok) throw new Error('it was accepted');
  const { error, x_native: native } = JSON.parse(stringifyJson(result.error.details)) as {
    error: { message: string };
    x_native: NodeErrors;
  };
  return { error, native };
}

/** Type, Python's exception and details of each error of a node. */
const told = (native: NodeErrors, id: string) =>
  native[id]?.errors.map(({ type, details, extra_info: info }) => [
    type,
    (info['exception_type'] ?? '') as string,
    details,
  ]);

test.each([
  [{}, "Node 'ID #1' has no class_type."],
  [{ class_type: null }, "Node 'None' not found."],
  [{ class_type: 5 }, "Node '5' not found."],
  [{ class_type: 'No', _meta: { title: '' } }, "Node '' not found."],
  [{ class_type: 'No', _meta: { title: null } }, "Node 'None' not found."],
])('%j is no class', (given, message) => {
  expect(refused({ 1: { ...given, inputs: {} } }).error.message).toContain(message);
});

test.each([
  [5, '5'],
  [null, 'None'],
  ["it's", `"it's"`],
  [String.raw`a\b`, String.raw`'a\\b'`],
])('the option %j is told as %s', (blend_mode, shown) => {
  const inputs = { image1: ['1', 0], image2: ['1', 0], blend_factor: 1, blend_mode };
  const { native } = refused({ 1: EMPTY, 2: node('ImageBlend', inputs), 3: saved('2') });
  const details = expect.stringContaining(`blend_mode: ${shown} not in ['normal'`);
  expect(told(native, '2')).toEqual([['value_not_in_list', '', details]]);
});

describe('inputs that are no object', () => {
  const thrown = 'exception_during_validation';
  test.each<[unknown, string[][]]>([
    [undefined, [[thrown, 'KeyError', "'inputs'"]]],
    [null, [[thrown, 'TypeError', "argument of type 'NoneType' is not iterable"]]],
    [5, [[thrown, 'TypeError', "argument of type 'int' is not iterable"]]],
    [
      [],
      [
        ['required_input_missing', '', 'images'],
        ['required_input_missing', '', 'filename_prefix'],
      ],
    ],
    [
      'text',
      [
        ['required_input_missing', '', 'images'],
        ['required_input_missing', '', 'filename_prefix'],
      ],
    ],
  ])('%j', (inputs, errors) => {
    expect(told(refused({ 1: node('SaveImage', inputs) }).native, '1')).toEqual(errors);
  });
});

test.each([
  ['x', EMPTY, 'TypeError', 'tuple indices must be integers or slices, not str'],
  [null, EMPTY, 'TypeError', 'tuple indices must be integers or slices, not NoneType'],
  [0.5, EMPTY, 'TypeError', 'tuple indices must be integers or slices, not float'],
  [1, node('PrimitiveInt', { value: 1 }), 'IndexError', 'list index out of range'],
])('a slot %j of %j is refused by its type', (slot, source, type, message) => {
  const linked = node('SaveImage', { images: ['1', slot], filename_prefix: 'x' });
  expect(told(refused({ 1: source, 2: linked }).native, '2')).toEqual([
    ['exception_during_validation', type, message],
  ]);
});

test('a wrapped value that cannot be converted is shown without its wrapper', () => {
  const inputs = { ...(EMPTY.inputs as object), width: { __value__: [1, 2] } };
  const { native } = refused({ 1: node('EmptyImage', inputs), 2: saved() });
  expect(native['1']?.errors[0]).toMatchObject({
    details: expect.stringContaining('width, [1, 2], int() argument') as string,
    extra_info: { received_value: [1, 2] },
  });
});

describe('the file of a loader', () => {
  const thrown = 'exception_during_inner_validation';
  test.each<[Json, string]>([
    [5, 'int'],
    [null, 'NoneType'],
    [true, 'bool'],
    [{ a: 1 }, 'dict'],
    [[], 'list'],
    [['1', 0], 'NoneType'],
  ])('%j is no name', (image, type) => {
    const graph = { 1: EMPTY, 2: node('LoadImage', { image }), 3: saved('2') };
    const details = `'${type}' object has no attribute 'endswith'`;
    expect(told(refused(graph).native, '2')).toEqual([[thrown, 'AttributeError', details]]);
  });

  test('that is missing is told beside what else is wrong with the graph', () => {
    const graph = {
      1: node('LoadImageMask', { image: 'none.png', channel: 'none' }),
      2: node('MaskPreview', { mask: ['1', 0] }),
      3: node('PreviewImage', {}),
    };
    const { native } = refused(graph, new Map([['1', [{ input: 'image', value: 'none.png' }]]]));
    expect(told(native, '1')).toEqual([
      ['value_not_in_list', '', expect.stringContaining("channel: 'none' not in")],
      ['custom_validation_failed', '', 'image - Invalid image file: none.png'],
    ]);
    expect(native['1']?.dependent_outputs).toEqual(['2']);
    expect(told(native, '3')).toEqual([['required_input_missing', '', 'images']]);
  });
});
