import { describe, expect, test } from 'vitest';
import { findOutputs, validateOutputs } from '../../../src/engine/validation/validate-workflow.ts';
import { ALL_NODES } from '../../../src/nodes/library.ts';
import type { NodeDef } from '../../../src/nodes/node.ts';
import {
  type Json,
  type JsonObject,
  parseJson,
  stringifyJson,
} from '../../../src/protocol/json.ts';
import { runSteps } from '../../../src/protocol/steps.ts';
import type { Graph } from '../../../src/protocol/v2.ts';

const node = <T extends object>(class_type: string, inputs: T) => ({ class_type, inputs });
const EMPTY = node('EmptyImage', { width: 16, height: 16, batch_size: 1, color: 0 });
const saved = (from: string) => node('SaveImage', { images: [from, 0], filename_prefix: 'x' });

function validated(workflow: Graph, nodes: ReadonlyMap<string, NodeDef>) {
  const outputs = findOutputs(workflow, nodes);
  const context = { nodes, unknownFiles: new Map() };
  return outputs.ok ? runSteps(validateOutputs(workflow, outputs.value, context)) : outputs;
}

function judge(graph: unknown) {
  const parsed = parseJson(JSON.stringify(graph)) as unknown as Graph;
  return validated(parsed, ALL_NODES);
}

/** A refusal as v1 tells it. */
function refusalOf(graph: unknown): { error: Json; node_errors: Json } {
  const { error, x_native } = detailsOf(graph);
  return { error, node_errors: x_native };
}

function detailsOf(graph: unknown): { error: Json; node_errors: Json; x_native: Json } {
  const result = judge(graph);
  if (result.ok) throw new Error('it was accepted');
  return JSON.parse(stringifyJson(result.error.details)) as ReturnType<typeof detailsOf>;
}

describe('node errors in the shape of the v2 contract', () => {
  test.each([
    [node('SaveImage', { filename_prefix: 'x' }), 'images', 'missing_input'],
    [
      node('SaveImage', { images: ['1', 7], filename_prefix: 'x' }),
      'images',
      'exception_during_validation',
    ],
    [node('KSampler', {}), 'class_type', 'unknown_class'],
    [{ inputs: {} }, 'class_type', 'missing_input'],
  ])('%j is told at %s as %s', (node, field, reason) => {
    const told = detailsOf({ '1': EMPTY, '2': node }).node_errors;
    const isWhole = reason === 'exception_during_validation';
    expect(told).toEqual({ '2': [{ field: isWhole ? '' : field, reason }] });
  });
});

function saving(inputs: object): object {
  return {
    '1': { ...EMPTY, inputs: { ...EMPTY.inputs, ...inputs } },
    '2': saved('1'),
  };
}

describe('literals', () => {
  test.each([
    [{ width: '3' }, { width: 3 }],
    [{ width: 2.9 }, { width: 2 }],
    [{ width: true }, { width: 1 }],
    [{ width: ' 1_6 ' }, { width: 16 }],
    [{ width: { __value__: 5 } }, { width: 5 }],
  ])('%j becomes %j', (given, coerced) => {
    const result = judge(saving(given));
    expect(result.ok && result.value['1']?.inputs).toMatchObject(coerced);
  });

  test('a text becomes true, whatever it says; a number becomes text', () => {
    const graph = {
      '1': node('PrimitiveBoolean', { value: 'false' }),
      '2': node('PrimitiveString', { value: 5 }),
      '3': node('PreviewAny', { source: ['1', 0] }),
      '4': node('PreviewAny', { source: ['2', 0] }),
    };
    const result = judge(graph);
    expect(result.ok && result.value).toMatchObject({
      '1': { inputs: { value: true } },
      '2': { inputs: { value: '5' } },
    });
  });

  test('INT one beyond its limit is refused exactly', () => {
    const graph = parseJson(
      '{"1":{"class_type":"PrimitiveInt","inputs":{"value":9223372036854775808}},"2":{"class_type":"PreviewAny","inputs":{"source":["1",0]}}}',
    ) as unknown as Graph;
    const result = validated(graph, ALL_NODES);
    expect(result.ok).toBe(false);
    expect(!result.ok && stringifyJson(result.error.details)).toContain(
      'Value 9223372036854775808 bigger than max of 9223372036854775807',
    );
  });

  test.each([
    ['', 'invalid_input_type'],
    ['0x10', 'invalid_input_type'],
    ['0O7', 'invalid_input_type'],
    ['nano', 'invalid_input_type'],
    [' Inf', 'value_bigger_than_max'],
    ['1e999', 'value_bigger_than_max'],
    ['-infinity', 'value_smaller_than_min'],
  ])('FLOAT %j is refused with %s', (text, type) => {
    const graph = {
      '1': node('PrimitiveFloat', { value: text }),
      '2': node('PreviewAny', { source: ['1', 0] }),
    };
    expect(refusalOf(graph).node_errors).toMatchObject({ '1': { errors: [{ type }] } });
  });
});

describe('graphs', () => {
  test('an unknown class is named, with a way out, in v1 words', () => {
    const graph = { '1': node('KSampler', {}) };
    expect(refusalOf(graph).error).toMatchObject({
      type: 'missing_node_type',
      message: "Node 'KSampler' not found. The custom node may not be installed.",
      details: "Node ID '#1'",
    });
    expect(judge(graph)).toMatchObject({ error: { message: expect.stringMatching(/remote/) } });
  });

  test('a UI-format graph is refused with the advice to export in API format', () => {
    const result = judge({ nodes: [], links: [], version: 0.4 });
    expect(result).toMatchObject({
      ok: false,
      error: {
        status: 422,
        code: 'workflow_format_ui',
        message: expect.stringMatching(/API format/),
      },
    });
  });

  test('a cycle is refused and named', () => {
    const graph = {
      '1': node('ImageInvert', { image: ['2', 0] }),
      '2': node('ImageInvert', { image: ['1', 0] }),
      '3': saved('2'),
    };
    expect(refusalOf(graph)).toMatchObject({
      error: { type: 'prompt_outputs_failed_validation', details: '' },
      node_errors: Object.fromEntries(
        ['1', '2'].map((id) => [
          id,
          {
            errors: [
              {
                type: 'dependency_cycle',
                details: '2 (ImageInvert) -> 1 (ImageInvert) -> 2 (ImageInvert)',
                extra_info: { node_id: id, cycle_nodes: ['2', '1'] },
              },
            ],
            dependent_outputs: ['3'],
          },
        ]),
      ),
    });
  });

  test.each([
    ['5,000 nodes', 5000, ''],
    ['long names', 200, 'x'.repeat(30_000)],
  ])('the refusal of a cycle of %s is of bounded length', (_, count, prefix) => {
    const idAt = (i: number) => `${prefix}${i % count}`;
    const ring = Array.from({ length: count }, (_each, i) => {
      return [idAt(i), node('ImageInvert', { image: [idAt(i + 1), 0] })] as const;
    });
    const refusal = refusalOf({ ...Object.fromEntries(ring), out: saved(idAt(0)) });
    expect(Object.keys(refusal.node_errors as object)).toHaveLength(count);
    const idChars = ring.reduce((sum, [id]) => sum + id.length, 0);
    expect(JSON.stringify(refusal).length).toBeLessThan(4 * idChars + 6_000_000);
  });

  test('an error tells only the outputs that fail because of it', () => {
    const graph = {
      '1': EMPTY,
      '2': node('ImageInvert', {}),
      '3': saved('1'),
      '4': saved('2'),
    };
    expect(refusalOf(graph).node_errors).toMatchObject({ '2': { dependent_outputs: ['4'] } });
  });

  test('a chain of 20 000 nodes is judged, not a stack overflow', () => {
    const graph: { [id: string]: unknown } = { '0': EMPTY };
    for (let i = 1; i <= 20_000; i++) graph[i] = node('ImageInvert', { image: [String(i - 1), 0] });
    graph.end = saved('20000');
    expect(judge(graph).ok).toBe(true);
  });
});

describe('graphs made to be slow', () => {
  const COUNT = 5000;

  /** A chain, every node of which is saved; `first` begins it. */
  function comb(first: object): object {
    const graph: { [id: string]: object } = { n0: first };
    for (let i = 1; i <= COUNT; i++) {
      graph[`n${i}`] = node('ImageInvert', { image: [`n${i - 1}`, 0] });
      graph[`s${i}`] = saved(`n${i}`);
    }
    return graph;
  }

  test('one chain saved at every node is judged node by node', () => {
    expect(judge(comb(EMPTY)).ok).toBe(true);
  });

  test('every output that fails is named with a node that is to blame', () => {
    const nodeErrors = refusalOf(comb({ ...EMPTY, inputs: {} })).node_errors as {
      n0: { dependent_outputs: string[] };
    };
    expect(Object.keys(nodeErrors)).toEqual(['n0']);
    expect(nodeErrors.n0.dependent_outputs.toSorted()).toEqual(
      Array.from({ length: COUNT }, (_, i) => `s${i + 1}`).toSorted(),
    );
  });

  test('an INT of more digits than Python reads is refused', () => {
    const { node_errors: nodeErrors } = refusalOf(saving({ width: '9'.repeat(1_000_000) }));
    expect(nodeErrors).toMatchObject({ '1': { errors: [{ type: 'invalid_input_type' }] } });
  });
});

describe('links in a wrapper', () => {
  const preview = (value: unknown) => ({
    '1': EMPTY,
    '2': node('PreviewImage', { images: { __value__: value } }),
  });

  test('are links', () => {
    const result = judge(preview(['1', 0]));
    expect(result.ok && result.value['2']?.inputs).toEqual({ images: ['1', 0] });
  });

  test.each([
    ['nothing', ['77', 0]],
    ['no slot', ['1', 7]],
    ['the node itself', ['2', 0]],
  ])('to %s are refused as they are without it', (_what, link) => {
    const bare = { '1': EMPTY, '2': node('PreviewImage', { images: link }) };
    expect(refusalOf(preview(link))).toEqual(refusalOf(bare));
  });
});

describe('cycles and errors together', () => {
  const cycle = {
    a: node('ImageInvert', { image: ['b', 0] }),
    b: node('ImageInvert', { image: ['c', 0] }),
    c: node('ImageInvert', { image: ['a', 0] }),
  };

  test.each(['a', 'b', 'c'])('an output behind %s of a cycle is refused', (id) => {
    const { node_errors: nodeErrors } = refusalOf({ ...cycle, s: saved(id) });
    expect(Object.keys(nodeErrors as object)).toEqual(['a', 'b', 'c']);
  });

  test('each of several cycles behind an output is named, before the own errors of its nodes', () => {
    const graph = {
      ...cycle,
      x: node('ImageBatch', { image1: ['x', 0] }),
      both: node('ImageBatch', { image1: ['a', 0], image2: ['x', 0] }),
      s: saved('both'),
    };
    const { node_errors: found } = refusalOf(graph) as { node_errors: Record<string, any> };
    expect(Object.keys(found)).toEqual(['a', 'b', 'c', 'x']);
    expect(found['x'].errors.map(({ type }: JsonObject) => type)).toEqual([
      'dependency_cycle',
      'required_input_missing',
    ]);
  });

  test('a node linked to itself is a cycle of one', () => {
    const graph = { a: node('ImageInvert', { image: ['a', 0] }), s: saved('a') };
    expect(refusalOf(graph).node_errors).toMatchObject({
      a: { errors: [{ details: 'a (ImageInvert) -> a (ImageInvert)' }] },
    });
  });

  test('a node that merely has the name of an object member is an ordinary node', () => {
    const graph = JSON.parse(
      '{"__proto__":{"class_type":"ImageInvert","inputs":{}},"s":{"class_type":"SaveImage","inputs":{"images":["__proto__",0],"filename_prefix":"x"}}}',
    ) as object;
    const { node_errors: nodeErrors } = refusalOf(graph);
    expect(Object.keys(nodeErrors as object)).toEqual(['__proto__']);
  });
});

test('a list of more than 20 options is reported as its length', () => {
  const options = Array.from({ length: 42 }, (_, i) => `o${i}`);
  const picker: NodeDef = {
    name: 'Picker',
    displayName: null,
    description: '',
    category: '',
    pythonModule: 'nodes',
    style: 'legacy',
    required: { which: [options] },
    outputs: [],
    outputNode: true,
    run: () => ({ outputs: [] }),
  };
  const workflow = { '1': node('Picker', { which: 'bogus' }) };
  expect(validated(workflow, new Map([['Picker', picker]]))).toMatchObject({
    error: {
      details: {
        node_errors: { '1': [{ field: 'which', reason: 'value_not_in_list' }] },
        x_native: {
          '1': {
            errors: [
              {
                type: 'value_not_in_list',
                details: "which: 'bogus' not in (list of length 42)",
                extra_info: { input_name: 'which', input_config: null, received_value: 'bogus' },
              },
            ],
          },
        },
      },
    },
  });
});

describe('a refusal repeats only the beginning of', () => {
  const long = 'x'.repeat(1024 * 1024);
  const preview = node('PreviewImage', { images: ['1', 0] });
  const empty = (width: Json) => ({
    1: node('EmptyImage', { width, height: 8, batch_size: 1, color: 0 }),
    2: preview,
  });
  test.each<[string, { readonly [id: string]: Json }]>([
    ['the class of a node', { 1: node(long, {}) }],
    ['a text that is no number', empty(long)],
    ['an object with a long text', empty({ [long]: [long, { a: long }] })],
    ['a list of many', empty({ a: Array.from({ length: 100_000 }, () => long.slice(0, 100)) })],
    ['a link to no node', { 2: node('PreviewImage', { images: [long, 0] }) }],
    ['a link that is none', { 2: node('PreviewImage', { images: [long, 0, 1] }) }],
    [
      'a choice that there is not',
      {
        ...empty(8),
        3: node('ImageScaleBy', { image: ['1', 0], upscale_method: long, scale_by: 1 }),
        4: node('PreviewImage', { images: ['3', 0] }),
      },
    ],
  ])('%s', (_name, graph) => {
    const result = judge(graph);
    expect(result.ok).toBe(false);
    expect(JSON.stringify(result).length).toBeLessThan(200_000);
  });
});

describe('inputs inside dynamic inputs', () => {
  const resized = (inputs: object) => ({
    1: node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 0 }),
    2: node('ResizeImageMaskNode', { input: ['1', 0], scale_method: 'area', ...inputs }),
    3: saved('2'),
  });
  const errorsAt2 = (graph: unknown) =>
    (refusalOf(graph).node_errors as { [id: string]: { errors: unknown } })['2']?.errors;

  test.each([
    ['value_smaller_than_min', 'resize_type.width', -5, 'resize_type.width'],
    ['required_input_missing', 'resize_type.width', undefined, 'width'],
    ['return_type_mismatch', 'resize_type.width', ['1', 0], expect.stringContaining('(IMAGE)')],
  ])('%s of %s', (type, input, value, details) => {
    const graph = resized({ resize_type: 'scale width', 'resize_type.width': value });
    expect(errorsAt2(graph)).toMatchObject([{ type, details, extra_info: { input_name: input } }]);
  });

  test('a choice that does not exist is accepted, as in the original, and fails when it runs', () => {
    expect(judge(resized({ resize_type: 'no such' })).ok).toBe(true);
  });

  test('a batch needs its first picture, and takes pictures only', () => {
    const batch = (inputs: object) => ({
      ...resized({}),
      2: { class_type: 'BatchImagesNode', inputs },
    });
    expect(errorsAt2(batch({}))).toMatchObject([
      {
        type: 'required_input_missing',
        details: 'image0',
        extra_info: { input_name: 'images.image0' },
      },
    ]);
    expect(judge(batch({ 'images.image0': ['1', 0], 'images.image7': ['1', 0] })).ok).toBe(true);
  });
});
