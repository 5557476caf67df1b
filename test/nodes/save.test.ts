import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import {
  NodeFailure,
  type Pixels,
  type NodeContext,
  type SavedFile,
} from '../../src/nodes/node.ts';
import { readPngChunks } from '../../src/nodes/codecs/png-chunks.ts';
import { SAVE_ANIMATED_NODES, SAVE_NODES } from '../../src/nodes/image/save.ts';
import { numberedName, previewPrefix, savePath } from '../../src/nodes/image/save-path.ts';
import { fakeContext, runGraph } from '../support/graphs/pixels.ts';

const NODES = [...SAVE_NODES, ...SAVE_ANIMATED_NODES];

describe('SaveImage', () => {
  test('a picture without metadata has no text chunks', async () => {
    const [file] = await saveBatch('SaveImage', { filename_prefix: 'x' }, { promptText: null });
    expect(chunkOrder(file!.bytes)).toEqual(['IHDR', 'IDAT', 'IEND']);
  });

  test('has a text chunk for each entry, however many there are', async () => {
    const names = Array.from({ length: 200_000 }, (_, i) => `k${i}`);
    const extraPngInfo = Object.fromEntries(names.map((name) => [name, null]));
    const [file] = await saveBatch('SaveImage', { filename_prefix: 'x' }, { extraPngInfo });
    expect(readPngChunks(file!.bytes)).toHaveLength(names.length + 3);
  });

  test('four channels are saved with their alpha', async () => {
    const images: Pixels = {
      ...batchOf(1),
      channels: 4,
      data: new Float32Array(2 * 3 * 4).fill(0.5),
    };
    const [file] = await saveBatch('SaveImage', { filename_prefix: 'x', images });
    expect(await sharp(file!.bytes).metadata()).toMatchObject({ channels: 4, hasAlpha: true });
  });

  test('one channel fails as in the original', async () => {
    const images: Pixels = { ...batchOf(1), channels: 1, data: new Float32Array(6) };
    await expect(saveBatch('SaveImage', { filename_prefix: 'x', images })).rejects.toMatchObject({
      exceptionType: 'TypeError',
    });
  });
});

describe('an animation', () => {
  test('as PNG has the recorded pace', async () => {
    const { saved } = await runGraph('animpng', [...ALL_NODES.values()]);
    expect(pace(saved[0]!.bytes)).toEqual([0.166, 0.166, 0.166]);
  });

  test('as PNG of one picture is an ordinary PNG', async () => {
    const inputs = { filename_prefix: 'x', fps: 6, compress_level: 4, images: batchOf(1) };
    const [file] = await saveBatch('SaveAnimatedPNG', inputs, { promptText: '{}' });
    expect(chunkOrder(file!.bytes)).toEqual(['IHDR', 'IDAT', 'comf', 'IEND']);
  });

  test.each([
    { name: 'animwebp_lossless', delay: 100 },
    { name: 'animwebp_lossy', delay: 166 },
  ])('as WEBP has the recorded pace: $name', async ({ name, delay }) => {
    const { saved } = await runGraph(name, [...ALL_NODES.values()]);
    expect(await webpOf(saved[0]!)).toMatchObject({
      format: 'webp',
      pages: 3,
      loop: 0,
      delay: [delay, delay, delay],
    });
  });

  test('as WEBP carries long texts under the tags of the original, in order of their numbers', async () => {
    const workflow = 'x'.repeat(300_000);
    const inputs = { filename_prefix: 'x', fps: 6, lossless: true, quality: 80, method: 'default' };
    const extraPngInfo = { workflow, a: 1 };
    const [file] = await saveBatch('SaveAnimatedWEBP', inputs, { promptText: '{}', extraPngInfo });
    expect(await exifTexts(file!)).toEqual([
      [0x010e, 'a:1'],
      [0x010f, `workflow:"${workflow}"`],
      [0x0110, 'prompt:{}'],
    ]);
  });

  test.each([
    [0.01, 65_535],
    [1000, 11],
  ])('as WEBP at %d frames a second shows each for %d ms', async (fps, delay) => {
    const data = Float32Array.from({ length: 36 }, (_, i) => i / 36);
    const pace = { fps, lossless: true, quality: 80, method: 'fastest' };
    const inputs = { filename_prefix: 'x', ...pace, images: { ...batchOf(2), data } };
    const [file] = await saveBatch('SaveAnimatedWEBP', inputs);
    expect(await webpOf(file!)).toMatchObject({ pages: 2, delay: [delay, delay] });
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
    expect(await exifTexts(told!)).toEqual([[0x0110, 'prompt:{}']]);
  });
});

test.each(['SaveImage', 'SaveAnimatedPNG', 'SaveAnimatedWEBP'])(
  '%s refuses a picture without pixels',
  async (name) => {
    const images = { ...batchOf(1), width: 0, data: new Float32Array() };
    const webp = { lossless: true, quality: 80, method: 'default' };
    const inputs = { filename_prefix: 'x', images, fps: 1, compress_level: 4, ...webp };
    await expect(saveBatch(name, inputs, {})).rejects.toMatchObject({
      exceptionType: 'ValueError',
    });
  },
);

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

  test('numbers the files of a batch in one series', () => {
    const series = 'b%batch_num%_';
    expect(numberedName('b%batch_num%', '_.png', 3)).toEqual({
      series,
      start: 'b3_',
      end: '_.png',
    });
    expect(numberedName('b%batch_num%', '.txt')).toEqual({ series, start: series, end: '.txt' });
  });

  test('longer than a file system allows is refused', () => {
    expect(() => numberedName('猫'.repeat(90), '_.png')).toThrow(/File name too long/);
    for (const folder of ['d'.repeat(256), 'day/'.repeat(300)])
      expect(() => savePath(`${folder}/x`, facts)).toThrow(/File name too long/);
  });

  test('of a preview ends in five random letters', () => {
    expect(previewPrefix()).toMatch(/^ComfyUI_temp_[a-z]{5}$/);
  });
});

function nodeNamed(name: string) {
  return NODES.find((def) => def.name === name)!;
}

function batchOf(batch: number): Pixels {
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

async function rawPixels(bytes: Uint8Array): Promise<unknown> {
  const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
  return [info.width, info.height, info.channels, data.toString('base64')];
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

const webpOf = ({ bytes }: SavedFile) => sharp(bytes, { animated: true }).metadata();

/** The tags of the Exif directory, and their texts. */
async function exifTexts(file: SavedFile): Promise<readonly (readonly [number, string])[]> {
  const block = (await webpOf(file)).exif!.subarray(6);
  return Array.from({ length: block.readUInt16BE(8) }, (_, i) => {
    const entry = block.subarray(10 + i * 12);
    const [length, at] = [entry.readUInt32BE(4), entry.readUInt32BE(8)];
    const text = block.toString('latin1', at, at + length).replace(/\0+$/, '');
    return [entry.readUInt16BE(0), text] as const;
  });
}
