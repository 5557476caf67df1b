import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { LosslessNumber } from '../../src/protocol/json.ts';
import { parseJson, stringifyJson, type Json } from '../../src/protocol/json.ts';
import { partnerCredentialsOf, withoutSecrets } from '../../src/translate/partner-credentials.ts';
import {
  applyCoercions,
  chosenOutputs,
  fileKey,
  fileMentions,
  outputNodes,
  parseFileName,
  withAssets,
} from '../../src/translate/file-mentions.ts';
import { runSteps } from '../../src/protocol/steps.ts';
import { pruneTo } from '../../src/translate/graph.ts';
import type { ClassInfo, ObjectInfo } from '../../src/protocol/v1.ts';
import type { Graph } from '../../src/protocol/v2.ts';

const info = (inputs: { [name: string]: Json }, output_node = false): ClassInfo =>
  ({ input: { required: inputs }, output_node }) as unknown as ClassInfo;

const CLASSES: ObjectInfo = {
  LoadImage: info({ image: [['a.png'], { image_upload: true }] }),
  LoadVideo: info({ file: ['COMBO', { options: [], video_upload: true }] }),
  LoadAudio: info({ audio: [[], { audio_upload: true }] }),
  Load3D: info({ model_file: [[], { file_upload: true }], width: ['INT', {}] }),
  Text: info({
    text: ['STRING', { multiline: true }],
    image: [['a.png'], { image_upload: false }],
  }),
  SaveImage: info({ images: ['IMAGE'], filename_prefix: ['STRING', {}] }, true),
};

const one = (class_type: string, inputs: { [name: string]: Json }): Graph => ({
  '1': { class_type, inputs },
});

describe('file names in inputs', () => {
  test.each([
    ['x.png', 'input', '', 'x.png'],
    ['sub/x.png', 'input', 'sub', 'x.png'],
    ['a/b/x.png', 'input', 'a/b', 'x.png'],
    ['x.png [output]', 'output', '', 'x.png'],
    ['clipspace/m.png [input]', 'input', 'clipspace', 'm.png'],
    ['x.png [temp]', 'temp', '', 'x.png'],
    ['x.png [other]', 'input', '', 'x.png [other]'],
    ['x.png[output]', 'input', '', 'x.png[output]'],
    ['a [input].png', 'input', '', 'a [input].png'],
    ['/x.png', 'input', '', 'x.png'],
    ['/srv/in/x.png', 'input', '/srv/in', 'x.png'],
    ['a\\b\\/./x.png', 'input', 'a/b', 'x.png'],
  ])('%s', (value, type, subfolder, filename) => {
    expect(parseFileName(value)).toEqual({ type, subfolder, filename });
  });

  test.each([
    ['LoadImage', 'image'],
    ['LoadVideo', 'file'],
    ['LoadAudio', 'audio'],
    ['Load3D', 'model_file'],
  ])('%s.%s names a file', (className, input) => {
    const found = fileMentions(one(className, { [input]: 'x.bin', other: 'x.bin' }), CLASSES);
    expect(found).toEqual([
      { nodeId: '1', input, value: 'x.bin', type: 'input', subfolder: '', filename: 'x.bin' },
    ]);
  });

  test.each([
    ['LoadImage', 'image'],
    ['LoadImageMask', 'image'],
    ['LoadImageOutput', 'image'],
    ['LoadAudio', 'audio'],
    ['LoadVideo', 'file'],
    ['Load3D', 'model_file'],
    ['VHS_LoadVideo', 'video'],
  ])('%s.%s names a file even when no class list describes it', (className, input) => {
    expect(fileMentions(one(className, { [input]: 'x.bin' }), {})).toHaveLength(1);
  });

  const chooser = ['COMBO', { options: ['a.png'], image_upload: true }];
  const nesting = {
    Modes: info({
      mode: [
        'COMFY_DYNAMICCOMBO_V3',
        { options: [{ key: 'image', inputs: { required: { image: chooser } } }] },
      ],
    }),
    Several: info({
      images: [
        'COMFY_AUTOGROW_V3',
        { template: { input: { required: { image: chooser } }, prefix: 'image', min: 1, max: 4 } },
      ],
    }),
    Many: info({ images: ['COMBO', { options: [], multiselect: true, image_upload: true }] }),
    Scene: info({ scene: ['LOAD_3D', {}] }),
    Record: info({ audio: ['AUDIO_RECORD', {}] }),
    Camera: info({ image: ['WEBCAM', {}] }),
  };
  const scene = {
    image: '3d/x.png [temp]',
    mask: '',
    camera_info: { name: 'b.png' },
    normal: 'b.png',
  };

  test.each<[string, { [name: string]: Json }, readonly (readonly Json[])[]]>([
    ['Modes', { mode: 'image', 'mode.image': 'b.png' }, [['mode.image', [], 'b.png']]],
    ['Modes', { mode: 'other', 'mode.image': 'b.png' }, []],
    [
      'Several',
      { 'images.image1': 'b.png', 'images.no': 'b.png' },
      [['images.image1', [], 'b.png']],
    ],
    [
      'Many',
      { images: { __value__: ['b.png', 'c.png'] } },
      [
        ['images', ['__value__', 0], 'b.png'],
        ['images', ['__value__', 1], 'c.png'],
      ],
    ],
    [
      'Scene',
      { scene },
      [
        ['scene', ['image'], '3d/x.png [temp]'],
        ['scene', ['normal'], 'b.png'],
      ],
    ],
    ['Record', { audio: 'audio/x.wav' }, [['audio', [], 'audio/x.wav']]],
    ['Camera', { image: 'webcam/x.png [temp]' }, [['image', [], 'webcam/x.png [temp]']]],
  ])('%s of %j names files inside its inputs', (name, inputs, names) => {
    const graph = one(name, inputs);
    const found = fileMentions(graph, nesting);
    expect(found.map(({ input, path = [], value }) => [input, path, value])).toEqual(names);
    const assets = new Map(found.map((mention) => [fileKey(mention), { id: 'asset' }]));
    const sent = withAssets(graph, found, assets);
    expect(JSON.stringify(sent).split('core/ASSET')).toHaveLength(names.length + 1);
    // v1 shows the graph as the client wrote it.
    expect(runSteps(applyCoercions(graph, sent, found))).toEqual(graph);
  });

  test('a value that validation unwrapped is shown with the names of the client', () => {
    const graph = one('Many', { images: { __value__: ['b.png', 'c.png'] } });
    const unwrapped = one('Many', { images: [{ __type: 'core/ASSET' }, 'c.png'] });
    expect(runSteps(applyCoercions(graph, unwrapped, fileMentions(graph, nesting)))).toEqual(
      one('Many', { images: ['b.png', 'c.png'] }),
    );
  });

  test.each<[string, Graph]>([
    ['free text, even when it equals a file name', one('Text', { text: 'a.png' })],
    ['an input whose flag is off', one('Text', { image: 'a.png' })],
    ['filename_prefix', one('SaveImage', { filename_prefix: 'a.png' })],
    ['a link', one('LoadImage', { image: ['2', 0] })],
    ['an empty name', one('LoadImage', { image: '' })],
    ['an unknown class', one('constructor', { image: 'a.png' })],
    [
      'nodes that are none',
      { '1': null, '2': 'x', '3': { class_type: 'LoadImage' } } as unknown as Graph,
    ],
  ])('%s is no file name', (_, graph) => {
    expect(fileMentions(graph, CLASSES)).toEqual([]);
  });

  test.each(['LoadImage', 'LoadImageMask', 'LoadImageOutput'])(
    '%s.image names a file by the recorded class list',
    (className) => {
      const url = new URL('../../fixtures/object_info.json', import.meta.url);
      const classes = parseJson(readFileSync(url, 'utf8')) as unknown as ObjectInfo;
      const graph = one(className, { image: 'x.png', channel: 'alpha' });
      expect(classes).toHaveProperty(className);
      expect(fileMentions(graph, classes).map(({ input }) => input)).toEqual(['image']);
    },
  );
});

describe('the v2 workflow of a v1 prompt', () => {
  const seed = new LosslessNumber('18446744073709551615');
  const graph: Graph = {
    '10': {
      class_type: 'LoadImage',
      inputs: { image: 'x.png [output]' },
      _meta: { title: 'x.png' },
    },
    '2': { class_type: 'LoadImage', inputs: { image: 'gone.png', seed } },
    t: { class_type: 'Text', inputs: { text: 'x.png [output]' } },
  };
  const mentions = fileMentions(graph, CLASSES);
  const found = new Map([['output//x.png', { id: 'asset-1', hash: 'blake3:00' }]]);

  test('names that were found become core/ASSET, everything else stays', () => {
    expect(withAssets(graph, mentions, found)).toEqual({
      ...graph,
      '10': {
        ...graph['10'],
        inputs: { image: { __type: 'core/ASSET', info: { id: 'asset-1', hash: 'blake3:00' } } },
      },
    });
    expect(stringifyJson(withAssets(graph, mentions, found) as Json)).toContain(
      '18446744073709551615',
    );
  });

  test('history shows coerced literals and the names the client wrote', () => {
    const coerced: Graph = {
      '10': { class_type: 'LoadImage', inputs: { image: 'resolved.png' } },
      '2': { class_type: 'LoadImage', inputs: { image: 'gone.png', seed: 7, added: 1 } },
    };
    const resolved = mentions.filter((mention) => found.has(fileKey(mention)));
    expect(runSteps(applyCoercions(graph, coerced, resolved))).toEqual({
      ...graph,
      '2': { class_type: 'LoadImage', inputs: { image: 'gone.png', seed: 7 } },
    });
  });

  test('the original is not changed', () => {
    const before = stringifyJson(graph as Json);
    withAssets(graph, mentions, found);
    runSteps(applyCoercions(graph, {}, mentions));
    expect(stringifyJson(graph as Json)).toBe(before);
  });

  test('a file has one key however it is written', () => {
    expect(fileKey(parseFileName('sub/x.png [input]'))).toBe(fileKey(parseFileName('sub/x.png')));
  });
});

describe('outputs to execute', () => {
  const graph: Graph = {
    a: { class_type: 'LoadImage', inputs: { image: 'x' } },
    b: { class_type: 'SaveImage', inputs: { images: ['a', 0] } },
    c: { class_type: 'SaveImage', inputs: { images: ['d', 0] } },
    d: { class_type: 'LoadImage', inputs: { image: 'y' } },
  };

  test('are the output nodes of the graph', () => {
    expect(outputNodes(graph, CLASSES)).toEqual(['b', 'c']);
  });

  test.each([
    [undefined, ['b', 'c']],
    [['c'], ['c']],
    [['c', 'a'], ['c']],
    [['a'], []],
    [[], []],
  ])('partial_execution_targets %j leaves %j', (targets, chosen) => {
    expect(chosenOutputs(['b', 'c'], targets)).toEqual(chosen);
  });

  test('a graph is cut down to what its targets need', () => {
    expect(Object.keys(pruneTo(graph, ['c']))).toEqual(['c', 'd']);
    expect(
      pruneTo({ x: { class_type: 'A', inputs: { i: ['x', 0], j: ['toString', 0] } } }, ['x']),
    ).toHaveProperty('x');
  });
});

describe('extra_data', () => {
  const extra = {
    api_key_comfy_org: 'k',
    auth_token_comfy_org: 't',
    api_key_service_org: 's',
    API_KEY_other: 'o',
    extra_pnginfo: { workflow: { id: 'w' } },
    client_id: 'c',
  };

  test('its secrets are forwarded and never kept', () => {
    expect(partnerCredentialsOf(extra)).toEqual({
      api_key_comfy_org: 'k',
      auth_token_comfy_org: 't',
    });
    expect(partnerCredentialsOf({ api_key_service_org: 's' })).toEqual({ api_key_comfy_org: 's' });
    expect(partnerCredentialsOf({ api_key_comfy_org: 5 })).toEqual({});
    expect(withoutSecrets(extra)).toEqual({
      extra_pnginfo: { workflow: { id: 'w' } },
      client_id: 'c',
    });
  });
});
