import { describe, expect, test } from 'vitest';
import { v1OutputsOf, v1OutputOf, withVideoList } from '../../src/translate/outputs.ts';
import { chain, fileRef, outputOf } from './script.ts';

const GRAPH = chain(['1', 'Make'], ['2', 'Save']);

describe('executed.output from v2 outputs', () => {
  test.each([
    ['image/png', 'image', 'images'],
    ['audio/flac', 'audio', 'audio'],
    ['application/octet-stream', 'latent', 'latents'],
    ['model/gltf-binary', 'file', '3d'],
    ['application/octet-stream', 'image', 'images'],
    ['application/octet-stream', 'audio', 'audio'],
    ['application/zip', 'file', 'files'],
    ['text/plain', 'text', 'files'],
    ['constructor/x', 'file', 'files'],
  ] as const)('%s of the type %s is listed under %s', (content_type, type, key) => {
    const made = outputOf('a', '2', { content_type, type });
    const shown = v1OutputsOf({ outputs: [made] }, new Map([['a', fileRef('a.bin')]]), GRAPH);
    expect(Object.fromEntries(shown)).toEqual({ '2': { [key]: [fileRef('a.bin')] } });
  });

  test('a text that was read is listed beside its file', () => {
    const made = outputOf('a', '2', { content_type: 'text/plain', type: 'text' });
    const shown = v1OutputsOf(
      { outputs: [made] },
      new Map([['a', { ...fileRef('a.txt'), text: 'hello' }]]),
      GRAPH,
    );
    expect(shown.get('2')).toEqual({ text: ['hello'], files: [fileRef('a.txt')] });
  });

  test.each([
    ['video/mp4', 'image'],
    ['video/webm', 'video'],
    ['application/octet-stream', 'video'],
  ] as const)('a video (%s of the type %s) is a picture that moves', (content_type, type) => {
    const made = outputOf('a', '2', { content_type, type });
    const shown = v1OutputsOf({ outputs: [made] }, new Map([['a', fileRef('a.mp4')]]), GRAPH);
    expect(shown.get('2')).toEqual({ images: [fileRef('a.mp4')], animated: [true] });
  });

  test.each([
    ['SaveAnimatedWEBP', 'image/webp', { animated: [true] }],
    ['SaveAnimatedPNG', 'image/png', { animated: [true] }],
    ['MaskPreview', 'image/png', { animated: [false] }],
    ['SaveImage', 'image/webp', {}],
  ] as const)('whether the picture of a %s moves is said by its class', (className, type, more) => {
    const made = outputOf('a', '1', { content_type: type });
    const files = new Map([['a', fileRef('a')]]);
    const shown = v1OutputsOf({ outputs: [made] }, files, chain(['1', className]));
    expect(shown.get('1')).toEqual({ images: [fileRef('a')], ...more });
  });

  test('files keep their order and their own lists', () => {
    const outputs = [
      outputOf('b', '2'),
      outputOf('a', '2'),
      outputOf('v', '2', { content_type: 'audio/flac' }),
    ];
    const files = new Map(outputs.map(({ id }) => [id, fileRef(id)]));
    expect(v1OutputsOf({ outputs }, files, GRAPH).get('2')).toEqual({
      images: [fileRef('b'), fileRef('a')],
      audio: [fileRef('v')],
    });
  });

  test('images for the socket only are not listed', () => {
    const outputs = [outputOf('a', '2', { x_websocket: true })];
    expect(v1OutputsOf({ outputs }, new Map([['a', fileRef('a')]]), GRAPH).size).toBe(0);
  });

  test('an output without a known node belongs to the only node without readers', () => {
    const outputs = [outputOf('a', '')];
    expect([...v1OutputsOf({ outputs }, new Map([['a', fileRef('a')]]), GRAPH).keys()]).toEqual([
      '2',
    ]);
  });

  test('what a node says of itself wins over its files', () => {
    const outputs = [outputOf('a', '2')];
    const x_ui = { '2': { images: [{ x_asset: 'a' }], animated: [true] } };
    expect(v1OutputsOf({ outputs, x_ui }, new Map([['a', fileRef('a')]]), GRAPH).get('2')).toEqual({
      images: [fileRef('a')],
      animated: [true],
    });
  });
});

describe('executed.output from what a node says', () => {
  test('only items that name an asset are replaced, their other members are kept', () => {
    const ui = { images: [{ x_asset: 'a', format: 'png' }, 'x_asset'], text: ['t', 5, null] };
    expect(v1OutputOf(ui, new Map([['a', fileRef('a.png')]]))).toEqual({
      images: [{ ...fileRef('a.png'), format: 'png' }, 'x_asset'],
      text: ['t', 5, null],
    });
  });

  test('it waits for files that have no name yet', () => {
    expect(v1OutputOf({ images: [{ x_asset: 'a' }] }, new Map())).toBeUndefined();
  });
});

describe('videos in a list of their own', () => {
  const [picture, video] = [fileRef('a.png'), fileRef('b.MP4')];

  test.each([
    [{ images: [video], animated: [true] }, { video: [video] }],
    [
      { images: [picture, video], animated: [true], text: ['x'] },
      { images: [picture], text: ['x'], video: [video] },
    ],
    [{ images: [fileRef('b.bin')], animated: [true] }, { video: [fileRef('b.bin')] }],
    [{ images: [video], video: [fileRef('c.webm')] }, { video: [fileRef('c.webm'), video] }],
  ])('%j', (output, expected) => expect(withVideoList(output)).toEqual(expected));

  test.each([
    { images: [picture] },
    { images: [fileRef('a.webp')], animated: [true] },
    { images: [fileRef('a.gif')], animated: [true] },
    { images: [fileRef('b.bin')], animated: [false] },
    { images: [null, 'b.mp4', { filename: 1 }], animated: [true] },
    { audio: [fileRef('a.flac')] },
    {},
  ])('%j stays as it is', (output) => expect(withVideoList(output)).toBe(output));
});
