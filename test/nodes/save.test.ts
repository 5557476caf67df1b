import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { decodeFrames } from '../../src/nodes/codecs/decode.ts';
import { pixelsWith } from '../../src/nodes/codecs/decode-still.ts';
import { LOAD_NODES } from '../../src/nodes/image/load.ts';
import {
  NodeFailure,
  type ImageValue,
  type NodeContext,
  type SavedFile,
} from '../../src/nodes/node.ts';
import { readPngChunks } from '../../src/nodes/codecs/png-chunks.ts';
import { PRIMITIVE_NODES } from '../../src/nodes/primitive.ts';
import { SAVE_ANIMATED_NODES, SAVE_NODES } from '../../src/nodes/image/save.ts';
import { fileName, previewPrefix, savePath } from '../../src/nodes/image/save-path.ts';
import { exifBlock } from '../../src/nodes/codecs/encode-webp.ts';
import { recordedFile, recordedJson, runGraph } from '../support/graphs/node-graph.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const NODES = [...LOAD_NODES, ...SAVE_NODES, ...SAVE_ANIMATED_NODES, ...PRIMITIVE_NODES];

/** How many levels a lossy WEBP of ours may be farther from its source, on average, than the original's. */
const LOSSY_MARGIN = 1;

type Recorded = {
  readonly [file: string]: {
    readonly mode: string;
    readonly text?: readonly {
      readonly chunk: string;
      readonly keyword: string;
      readonly text: string;
    }[];
    readonly chunk_order?: readonly string[];
    readonly exif?: { readonly [tag: string]: string };
  };
};

const STILLS = [
  'loadoutput',
  'preview',
  'maskpreview',
  'prefix_batch',
  'prefix_counter_distinct',
  'metadata_workflow',
  'primitive_string',
] as const;

describe('a saved picture is the one the original saved', () => {
  test.each(STILLS)('%s: names, pixels, text chunks and their order', async (name) => {
    const run = await runGraph(name, NODES);
    const chunks = recordedJson(name, 'text_chunks.json') as unknown as Recorded;
    expect(withoutRandom(run.ui)).toEqual(withoutRandom(recordedUi(name)));
    for (const file of run.saved) {
      const recorded = chunks[withoutRandom(file.name)]!;
      expect(await rawPixels(file.bytes)).toEqual(
        await rawPixels(recordedFile(name, 'outputs', withoutRandom(file.name))),
      );
      expect(texts(file.bytes)).toEqual(
        recorded.text?.map(({ chunk, keyword, text }) => [chunk, keyword, wholeNumbers(text)]),
      );
      expect(chunkOrder(file.bytes)).toEqual(recorded.chunk_order);
    }
  });

  test('names that differ by case only count apart', async () => {
    const run = await runGraph('prefix_counter', NODES);
    expect(run.saved.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['cnt_00001_.png', 'CNT_00001_.png']),
    );
  });

  test('a picture without metadata has no text chunks', async () => {
    const [file] = await saveBatch('SaveImage', { filename_prefix: 'x' }, { promptText: null });
    expect(chunkOrder(file!.bytes)).toEqual(['IHDR', 'IDAT', 'IEND']);
  });

  test('four channels are saved with their alpha', async () => {
    const images: ImageValue = {
      ...batchOf(1),
      channels: 4,
      data: new Float32Array(2 * 3 * 4).fill(0.5),
    };
    const [file] = await saveBatch('SaveImage', { filename_prefix: 'x', images });
    expect(await sharp(file!.bytes).metadata()).toMatchObject({ channels: 4, hasAlpha: true });
  });

  test('one channel fails as in the original', async () => {
    const images: ImageValue = { ...batchOf(1), channels: 1, data: new Float32Array(6) };
    await expect(saveBatch('SaveImage', { filename_prefix: 'x', images })).rejects.toMatchObject({
      exceptionType: 'TypeError',
    });
  });
});

describe('an animation', () => {
  test('as PNG has the recorded pixels, texts, chunk order and pace', async () => {
    const { saved, ui } = await runGraph('animpng', NODES);
    const theirs = recordedFile('animpng', 'outputs', 'animpng_00001_.png');
    const recorded = (recordedJson('animpng', 'text_chunks.json') as unknown as Recorded)[
      'animpng_00001_.png'
    ];
    expect(ui).toEqual(recordedUi('animpng'));
    expect(await frames(saved[0]!.bytes)).toEqual(await frames(theirs));
    expect(texts(saved[0]!.bytes)).toEqual(
      recorded?.text?.map(({ chunk, keyword, text }) => [chunk, keyword, wholeNumbers(text)]),
    );
    expect(chunkOrder(saved[0]!.bytes)).toEqual(recorded?.chunk_order);
    expect(pace(saved[0]!.bytes)).toEqual([0.166, 0.166, 0.166]);
    expect(pace(theirs)).toEqual([0.166, 0.166, 0.166]);
  });

  test('as PNG of one picture is an ordinary PNG', async () => {
    const inputs = { filename_prefix: 'x', fps: 6, compress_level: 4, images: batchOf(1) };
    const [file] = await saveBatch('SaveAnimatedPNG', inputs, { promptText: '{}' });
    expect(chunkOrder(file!.bytes)).toEqual(['IHDR', 'IDAT', 'comf', 'IEND']);
  });

  test.each([
    { name: 'animwebp_lossless', delay: 100 },
    { name: 'animwebp_lossy', delay: 166 },
  ])('as WEBP has the recorded quality, texts and pace: $name', async ({ name, delay }) => {
    const { saved, ui } = await runGraph(name, NODES);
    const theirs = recordedFile(name, 'outputs', `${name}_00001_.webp`);
    expect(ui).toEqual(recordedUi(name));
    const source = recordedFile(name, 'inputs', 'anim.gif');
    const [ours, original] = [await loss(source, saved[0]!.bytes), await loss(source, theirs)];
    expect(ours).toBeLessThanOrEqual(original === 0 ? 0 : original + LOSSY_MARGIN);
    expect(await sharp(saved[0]!.bytes, { animated: true }).metadata()).toMatchObject({
      format: 'webp',
      pages: 3,
      loop: 0,
      delay: [delay, delay, delay],
    });
    const text = (recordedJson(name, 'text_chunks.json') as unknown as Recorded)[
      `${name}_00001_.webp`
    ]?.exif?.['0x110'];
    expect(exifChunk(saved[0]!.bytes).toString('latin1')).toContain(`${wholeNumbers(text!)}\0`);
    const [key, ...rest] = text!.split(':');
    expect(exifBlock([{ key: key!, text: rest.join(':') }])).toEqual(exifChunk(theirs));
  });

  test('as WEBP puts extra texts under the tags below the prompt, in order of their numbers', () => {
    const block = exifBlock([
      { key: 'prompt', text: '{}' },
      { key: 'workflow', text: '[1]' },
      { key: 'a', text: '' },
    ]);
    const entry = (i: number) => block.subarray(16 + i * 12, 28 + i * 12).toString('hex');
    expect(entry(0)).toBe(`010e0002${'00000003'}${'613a0000'}`);
    expect(entry(1)).toBe(`010f0002${'0000000d'}${'00000032'}`);
    expect(entry(2)).toBe(`01100002${'0000000a'}${'00000040'}`);
    expect(block.toString('latin1', 6 + 0x32, 6 + 0x32 + 13)).toBe('workflow:[1]\0');
  });

  test.each([
    [0.01, 100_000],
    [6, 166],
    [1000, 1],
  ])('as WEBP at %d frames a second shows each for %d ms', async (fps, durationMs) => {
    const pace = { fps, lossless: true, quality: 80, method: 'fastest' };
    const images: ImageValue = {
      ...batchOf(2),
      data: Float32Array.from({ length: 36 }, (_, i) => i / 36),
    };
    const inputs = { filename_prefix: 'x', ...pace, images };
    for (const promptText of [null, '{"1":{}}']) {
      const [file] = await saveBatch('SaveAnimatedWEBP', inputs, { promptText });
      expect(durationsOf(Buffer.from(file!.bytes))).toEqual([durationMs, durationMs]);
      const { pages } = await sharp(file!.bytes, { animated: true }).metadata();
      expect(pages).toBe(2);
    }
  });

  test('as WEBP keeps the time of pictures that are equal', async () => {
    const pace = { fps: 0.1, lossless: true, quality: 80, method: 'fastest' };
    const inputs = { filename_prefix: 'x', ...pace, images: batchOf(3) };
    const [file] = await saveBatch('SaveAnimatedWEBP', inputs, { promptText: null });
    const total = durationsOf(Buffer.from(file!.bytes)).reduce((sum, each) => sum + each, 0);
    expect([0, 30_000]).toContain(total);
  });

  test('as WEBP without metadata, or of one picture, is a readable file', async () => {
    const inputs = { filename_prefix: 'x', fps: 24, lossless: true, quality: 0, method: 'slowest' };
    const [bare] = await saveBatch(
      'SaveAnimatedWEBP',
      { ...inputs, images: batchOf(1) },
      { promptText: null },
    );
    const [told] = await saveBatch(
      'SaveAnimatedWEBP',
      { ...inputs, images: batchOf(1) },
      { promptText: '{}' },
    );
    expect(await rawPixels(bare!.bytes)).toEqual(await rawPixels(told!.bytes));
    expect(exifChunk(told!.bytes).toString('latin1')).toContain('prompt:{}');
  });
});

test.each(['SaveImage', 'SaveAnimatedPNG'])('%s refuses a picture without pixels', async (name) => {
  const images = { ...batchOf(1), width: 0, data: new Float32Array() };
  const inputs = { filename_prefix: 'x', images, fps: 1, compress_level: 4 };
  await expect(saveBatch(name, inputs, {})).rejects.toMatchObject({
    exceptionType: 'ValueError',
  });
});

test('SaveImage refuses a batch without pictures', async () => {
  const inputs = { filename_prefix: 'x', images: { ...batchOf(0), data: new Float32Array() } };
  await expect(saveBatch('SaveImage', inputs, {})).rejects.toMatchObject({
    exceptionType: 'IndexError',
  });
});

describe('SaveImageWebsocket', () => {
  test('sends each picture before the progress message of its step, which counts from 0', async () => {
    const log: unknown[] = [];
    const context: NodeContext = {
      ...fakeContext({}),
      promptText: '{}',
      progress: (step, steps) => log.push(`${step}/${steps}`),
      save: async (file) => {
        log.push([file.websocket, file.contentType, chunkOrder(file.bytes).join(' ')]);
        return {};
      },
    };
    const result = await nodeNamed('SaveImageWebsocket').run({ images: batchOf(2) }, context);
    const picture = [true, 'image/png', 'IHDR IDAT IEND'];
    expect(log).toEqual([picture, '0/2', picture, '1/2']);
    expect(result.ui).toBeUndefined();
  });

  test('is never cached', () => {
    expect(nodeNamed('SaveImageWebsocket').alwaysRuns).toBe(true);
  });
});

describe('filename_prefix', () => {
  const facts = { width: 31, height: 7, now: new Date(2026, 2, 5, 4, 3, 9) };

  test.each([
    ['ComfyUI', '', 'ComfyUI'],
    ['a/b/c', 'a/b', 'c'],
    ['a//b/', 'a', 'b'],
    ['a/../b', '', 'b'],
    ['./x', '', 'x'],
    ['', '', '.'],
    ['%width%x%height%', '', '31x7'],
    ['%year%/%month%-%day%/%hour%%minute%%second%', '2026/03-05', '040309'],
    ['b%batch_num%', '', 'b%batch_num%'],
    ['100% sure', '', '100% sure'],
  ])('%j goes to folder %j as %j', (prefix, subfolder, stem) => {
    expect(savePath(prefix, facts)).toEqual({ subfolder, stem });
  });

  test.each(['../x', 'a/../../x', '/etc/x', '../../x/y', 'a\0b'])('%j is refused', (prefix) => {
    expect(() => savePath(prefix, facts)).toThrow(NodeFailure);
  });

  test('makes names with five digits, more when they run out', () => {
    expect([fileName('a', 1, 'png'), fileName('a', 123_456, 'webp')]).toEqual([
      'a_00001_.png',
      'a_123456_.webp',
    ]);
  });

  test('longer than a file system allows is refused', () => {
    expect(() => fileName('猫'.repeat(90), 1, 'png')).toThrow(/File name too long/);
  });

  test('of a preview ends in five random letters', () => {
    expect(previewPrefix(() => 1)).toBe('ComfyUI_temp_bbbbb');
    expect(previewPrefix()).toMatch(/^ComfyUI_temp_[a-z]{5}$/);
  });

  test('counts on over numbers that another job took meanwhile', async () => {
    const taken = [4, 4, 9];
    const files = await saveBatch(
      'SaveImage',
      { filename_prefix: 'x', images: batchOf(3) },
      {
        nextCounter: async () => taken.shift()!,
      },
    );
    expect(files.map(({ name }) => name)).toEqual(['x_00004_.png', 'x_00005_.png', 'x_00009_.png']);
  });
});

function nodeNamed(name: string) {
  return NODES.find((def) => def.name === name)!;
}

function batchOf(batch: number): ImageValue {
  return {
    kind: 'image',
    batch,
    height: 2,
    width: 3,
    channels: 3,
    data: new Float32Array(batch * 18).fill(0.4),
  };
}

async function saveBatch(
  name: string,
  inputs: Parameters<ReturnType<typeof nodeNamed>['run']>[0],
  more: Partial<NodeContext> = {},
): Promise<readonly SavedFile[]> {
  const saved: SavedFile[] = [];
  const context = { ...fakeContext({ onSave: (file) => saved.push(file) }), ...more };
  await nodeNamed(name).run({ images: batchOf(1), ...inputs }, context);
  return saved;
}

function recordedUi(name: string): unknown {
  return (recordedJson(name, 'outputs.json') as { outputs: unknown }).outputs;
}

/** Previews have random names; the recording replaces the letters by abcda. */
function withoutRandom<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replaceAll(/_temp_[a-z]{5}_/g, '_temp_abcda_')) as T;
}

/** We read 6.0 as 6. */
function wholeNumbers(text: string): string {
  return text.replaceAll(/(\d)\.0(?=[,}\]])/g, '$1');
}

async function rawPixels(bytes: Uint8Array): Promise<unknown> {
  const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
  return [info.width, info.height, info.channels, data.toString('base64')];
}

async function frames(bytes: Uint8Array): Promise<readonly string[]> {
  const pictures = await decodeFrames({ name: 'x', bytes });
  return pictures.map(
    (picture) =>
      `${picture.width}x${picture.height} ${Buffer.from(pixelsWith(4, picture)).toString('base64')}`,
  );
}

/** Mean difference in levels between the frames of two files. */
async function loss(a: Uint8Array, b: Uint8Array): Promise<number> {
  const [from, to] = [
    await decodeFrames({ name: 'a', bytes: a }),
    await decodeFrames({ name: 'b', bytes: b }),
  ];
  const differences = from.flatMap((picture, i) =>
    Array.from(pixelsWith(4, picture), (v, at) => Math.abs(v - pixelsWith(4, to[i]!)[at]!)),
  );
  return differences.reduce((sum, one) => sum + one, 0) / differences.length;
}

function texts(bytes: Uint8Array): readonly (readonly string[])[] {
  return readPngChunks(bytes)
    .filter(({ type }) => type === 'tEXt' || type === 'comf')
    .map(({ type, data }) => [type, ...Buffer.from(data).toString('latin1').split('\0')]);
}

/** Runs of one type count as one. */
function chunkOrder(bytes: Uint8Array): readonly string[] {
  const types = readPngChunks(bytes).map(({ type }) => type);
  return types.filter((type, i) => type !== types[i - 1]);
}

function pace(bytes: Uint8Array): readonly number[] {
  return readPngChunks(bytes)
    .filter(({ type }) => type === 'fcTL')
    .map(({ data }) => Buffer.from(data).readUInt16BE(20) / Buffer.from(data).readUInt16BE(22));
}

function exifChunk(webp: Uint8Array): Buffer {
  const file = Buffer.from(webp);
  const at = file.lastIndexOf('EXIF');
  return file.subarray(at + 8, at + 8 + file.readUInt32LE(at + 4));
}

/** Durations of the frames of an animated WEBP, in milliseconds, as its chunks have them. */
function durationsOf(file: Buffer): number[] {
  const found: number[] = [];
  for (let at = 12; at + 8 <= file.length;) {
    const length = file.readUInt32LE(at + 4);
    if (file.toString('latin1', at, at + 4) === 'ANMF') found.push(file.readUIntLE(at + 20, 3));
    at += 8 + length + (length % 2);
  }
  return found;
}
