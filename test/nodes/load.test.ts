import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { LOAD_NODES } from '../../src/nodes/image/load.ts';
import { NodeFailure, OutOfMemory } from '../../src/nodes/node.ts';
import type { Pixels, NodeContext, NodeDef } from '../../src/nodes/node.ts';
import { readPngChunks, writePng } from '../../src/nodes/codecs/png-chunks.ts';
import { fakeContext, recordedFile } from '../support/graphs/pixels.ts';

describe('LoadImage', () => {
  test('leaves values alone when the file has a colour profile', async () => {
    const plain = await solid({ r: 200, g: 30, b: 90 }).png().toBuffer();
    const tagged = await sharp(plain).withIccProfile('p3').png().toBuffer();
    const raw = await sharp(tagged, { ignoreIcc: true }).raw().toBuffer();
    const [image] = await loadImage(tagged);
    expect(Array.from(image.data, (level) => Math.round(level * 255))).toEqual([...raw]);
    expect([...raw.subarray(0, 3)]).not.toEqual([200, 30, 90]);
  });

  test('sees a mask in a colour key', async () => {
    const [header, ...rest] = readPngChunks(await solid({ r: 1, g: 2, b: 3 }).png().toBuffer());
    const key = { type: 'tRNS', data: Buffer.from([0, 1, 0, 2, 0, 3]) };
    const keyed = writePng([header!, key, ...rest]);
    const [, mask] = await loadImage(keyed);
    expect([mask.width, mask.height, new Set(mask.data)]).toEqual([4, 2, new Set([1])]);
  });

  test('ignores the colour key of a PNG with one bit', async () => {
    const [size, depth] = [words(8, 1), Buffer.from([1, 0, 0, 0, 0])];
    const [image, mask] = await loadImage(
      writePng([
        { type: 'IHDR', data: Buffer.concat([size, depth]) },
        { type: 'tRNS', data: Buffer.from([0, 1]) },
        { type: 'IDAT', data: deflateSync(Buffer.from([0, 0b10100000])) },
        { type: 'IEND', data: Buffer.alloc(0) },
      ]),
    );
    expect([image.data[0], image.data[3], mask.width, mask.height]).toEqual([1, 0, 64, 64]);
  });

  test.each([
    ['bitmap with a palette', paletteBmp(), [2, 1]],
    ['TIFF with a palette', paletteTiff(), [2, 1]],
    ['bitmap of OS/2 without one', os2Bmp(), [64, 64]],
    ['bitmap with a mask of alpha bits', alphaBmp(), [2, 1]],
  ])('gives the mask of a %s its size', async (_what, bytes, size) => {
    const [image, mask] = await loadImage(bytes);
    expect([...image.data].map(Math.round)).toEqual([1, 0, 0, 0, 0, 1]);
    expect([mask.width, mask.height, new Set(mask.data)]).toEqual([...size, new Set([0])]);
  });

  test.each([
    [true, [4, 2]],
    [false, [64, 64]],
  ])(
    'gives the mask of a WEBP with metadata its size without loss only: %s',
    async (lossless, size) => {
      const webp = solid({ r: 1, g: 2, b: 3 })
        .withExif({ IFD0: { Make: 'x' } })
        .webp({ lossless });
      const [, mask] = await loadImage(await webp.toBuffer());
      expect([mask.width, mask.height]).toEqual(size);
    },
  );

  test('loads a cut-off file as far as it goes', async () => {
    const bytes = recordedFile('load_rgb_png', 'inputs', 'rgb.png');
    const [image] = await loadImage(bytes.subarray(0, bytes.length - 4000));
    expect([image.width, image.height]).toEqual([64, 48]);
    expect(Math.max(...image.data.subarray(0, 64 * 3))).toBeGreaterThan(0);
  });

  test.each([
    { what: 'text', bytes: Buffer.from('not a picture') },
    { what: 'an empty file', bytes: Buffer.alloc(0) },
    {
      what: 'SVG',
      bytes: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"/>'),
    },
    {
      what: 'a PNG that is only a signature',
      bytes: Buffer.from('89504e470d0a1a0a00000000', 'hex'),
    },
    { what: 'a bitmap that is only a marker', bytes: Buffer.from('BM') },
  ])('fails as the original does on $what', async ({ bytes }) => {
    const error = await loadImage(bytes).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(NodeFailure);
    expect(error).toMatchObject({
      exceptionType: 'PIL.UnidentifiedImageError',
      message: "cannot identify image file 'picture'",
    });
  });

  test.each([
    { what: 'PNG', bytes: hugePng() },
    { what: 'bitmap', bytes: hugeBmp() },
  ])('refuses a $what of more than 64 megapixels before decoding it', async ({ bytes }) => {
    await expect(loadImage(bytes)).rejects.toBeInstanceOf(OutOfMemory);
  });

  test('refuses frames that are together larger than that on a canvas of one pixel', async () => {
    await expect(loadImage(await apngOfLargeFrames())).rejects.toBeInstanceOf(OutOfMemory);
  });
});

test.each(['alpha', 'blue'])('LoadImageMask takes %s of every frame', async (channel) => {
  const bytes = recordedFile('load_anim_gif', 'inputs', 'anim.gif');
  const inputs = { image: 'picture', channel };
  const { outputs } = await node('LoadImageMask').run(inputs, contextOf(bytes));
  expect(outputs[0]).toMatchObject({ kind: 'mask', batch: 3, width: 24, height: 16 });
});

describe('an animated PNG is composed', () => {
  test('with the colours below a low alpha, where a frame replaces what was there', async () => {
    const [header, ...rest] = readPngChunks(await rgba(1, '#c8643203'));
    const rules = Buffer.concat([words(0, 1, 1, 0, 0), Buffer.from([0, 1, 0, 10, 0, 0])]);
    const animated = { type: 'acTL', data: words(1, 0) };
    const [image, mask] = await loadImage(
      writePng([header!, animated, { type: 'fcTL', data: rules }, ...rest]),
    );
    const levels = [...image.data, ...mask.data].map((level) => Math.round(level * 255));
    expect(levels).toEqual([200, 100, 50, 252]);
  });

  /** `third`: the colours of the third frame; the second frame had drawn over the middle. */
  const cases = [
    { what: 'over what stays', dispose: 0, third: ['red', 'green', 'green', 'blue'] },
    { what: 'over a cleared region', dispose: 1, third: ['red', 'none', 'none', 'blue'] },
    { what: 'over what was there before', dispose: 2, third: ['red', 'red', 'red', 'blue'] },
  ] as const;

  test.each(cases)('$what', async ({ dispose, third }) => {
    const [image, mask] = await loadImage(await apng(dispose));
    expect([image.batch, image.width, mask.width]).toEqual([3, 4, 4]);
    expect(colours(image, 1)).toEqual(['red', 'green', 'green', 'red']);
    expect(colours(image, 2)).toEqual(third.map((name) => (name === 'none' ? 'black' : name)));
    expect(Array.from(mask.data.subarray(8))).toEqual(
      third.map((name) => (name === 'none' ? 1 : 0)),
    );
  });
});

function node(name: string): NodeDef {
  return LOAD_NODES.find((def) => def.name === name)!;
}

async function loadImage(bytes: Uint8Array): Promise<[Pixels, Pixels]> {
  const { outputs } = await node('LoadImage').run({ image: 'picture' }, contextOf(bytes));
  return [outputs[0] as Pixels, outputs[1] as Pixels];
}

function contextOf(bytes: Uint8Array): NodeContext {
  return { ...fakeContext({}), readFile: async () => bytes };
}

function solid(background: { r: number; g: number; b: number }) {
  return sharp({ create: { width: 4, height: 2, channels: 3, background } });
}

function hugePng(): Uint8Array {
  const header = Buffer.from('00004e2000004e200802000000', 'hex');
  return writePng([
    { type: 'IHDR', data: header },
    { type: 'IDAT', data: Buffer.from('789c030000000001', 'hex') },
    { type: 'IEND', data: Buffer.alloc(0) },
  ]);
}

/** A red pixel and a blue one. */
function os2Bmp(): Uint8Array {
  const bytes = Buffer.alloc(34);
  bytes.write('BM');
  bytes.writeUInt32LE(34, 2);
  bytes.writeUInt32LE(26, 10);
  bytes.writeUInt32LE(12, 14);
  for (const [at, value] of [2, 1, 1, 24].entries()) bytes.writeUInt16LE(value, 18 + at * 2);
  bytes.set([0, 0, 255, 255, 0, 0], 26);
  return bytes;
}

/** The same, with places for red, green, blue and alpha. */
function alphaBmp(): Uint8Array {
  const head = Buffer.alloc(70);
  head.write('BM');
  head.writeUInt32LE(70, 10);
  for (const [i, value] of [56, 2, 1].entries()) head.writeUInt32LE(value, 14 + i * 4);
  head.set([1, 0, 32, 0, 3], 26);
  head.set(Buffer.from('0000ff0000ff0000ff000000000000ff', 'hex'), 54);
  return Buffer.concat([head, Buffer.from('0000ffffff0000ff', 'hex')]);
}

/** A red pixel and a blue one, by their numbers. */
function paletteBmp(): Uint8Array {
  const head = Buffer.alloc(54);
  head.write('BM');
  head.writeUInt32LE(62, 10);
  for (const [i, value] of [40, 2, 1].entries()) head.writeUInt32LE(value, 14 + i * 4);
  head.set([1, 0, 8], 26);
  head.writeUInt32LE(2, 46);
  return Buffer.concat([head, Buffer.from('0000ff00ff000000' + '00010000', 'hex')]);
}

/** The same: size, 8 bits, palette, place and length of the strip, colour map. */
function paletteTiff(): Uint8Array {
  const map = Buffer.alloc(256 * 6);
  map.writeUInt16LE(65_535, 0);
  map.writeUInt16LE(65_535, (512 + 1) * 2);
  const tags = [256, 2, 257, 1, 258, 8, 259, 1, 262, 3, 273, 8, 278, 1, 279, 2, 320, 10];
  const page = Buffer.alloc(2 + 9 * 12 + 4);
  page.writeUInt16LE(9, 0);
  for (let i = 0; i < 9; i++) {
    const count = tags[i * 2] === 320 ? 256 * 3 : 1;
    page.writeUInt16LE(tags[i * 2]!, 2 + i * 12);
    page.writeUInt16LE(tags[i * 2] === 320 ? 3 : 4, 4 + i * 12);
    page.writeUInt32LE(count, 6 + i * 12);
    page.writeUInt32LE(tags[i * 2 + 1]!, 10 + i * 12);
  }
  const start = Buffer.from('49492a000000000000010000', 'hex').subarray(0, 10);
  start.writeUInt32LE(10 + map.length, 4);
  return Buffer.concat([start, map, page]);
}

function hugeBmp(): Uint8Array {
  const bytes = Buffer.alloc(64);
  bytes.write('BM');
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(20_000, 18);
  bytes.writeInt32LE(-20_000, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  return bytes;
}

/** Two frames of 6000×6000 without their data, on a canvas of 1×1. */
async function apngOfLargeFrames(): Promise<Uint8Array> {
  const [header, ...rest] = readPngChunks(await rgba(1, '#ff0000'));
  const idat = rest.filter(({ type }) => type === 'IDAT');
  const control = (sequence: number) => ({
    type: 'fcTL',
    data: Buffer.concat([words(sequence, 6000, 6000, 0, 0), Buffer.from([0, 1, 0, 10, 0, 1])]),
  });
  const frames = [control(0), ...idat, control(1), ...idat];
  return writePng([header!, { type: 'acTL', data: words(2, 0) }, ...frames]);
}

/** Red 4×1, then green 2×1 in the middle with this dispose rule, then blue 1×1 at the end. */
async function apng(dispose: number): Promise<Uint8Array> {
  const whole = readPngChunks(await rgba(4, '#ff0000'));
  const idat = async (width: number, colour: string) =>
    readPngChunks(await rgba(width, colour)).find(({ type }) => type === 'IDAT')!.data;
  const fdat = (sequence: number, data: Uint8Array) => ({
    type: 'fdAT',
    data: Buffer.concat([words(sequence), data]),
  });
  const control = (sequence: number, width: number, left: number, rule: number) => ({
    type: 'fcTL',
    data: Buffer.concat([words(sequence, width, 1, left, 0), Buffer.from([0, 1, 0, 10, rule, 0])]),
  });
  return writePng([
    whole[0]!,
    { type: 'acTL', data: words(3, 0) },
    control(0, 4, 0, 0),
    ...whole.filter(({ type }) => type === 'IDAT'),
    control(1, 2, 1, dispose),
    fdat(2, await idat(2, '#00ff00')),
    control(3, 1, 3, 0),
    fdat(4, await idat(1, '#0000ff')),
    { type: 'IEND', data: Buffer.alloc(0) },
  ]);
}

function rgba(width: number, background: string): Promise<Buffer> {
  return sharp({ create: { width, height: 1, channels: 4, background } })
    .png()
    .toBuffer();
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4);
  return bytes;
}

function colours(image: Pixels, frame: number): readonly string[] {
  const names: { readonly [rgb: string]: string } = {
    '1,0,0': 'red',
    '0,1,0': 'green',
    '0,0,1': 'blue',
    '0,0,0': 'black',
  };
  const size = image.width * 3;
  return Array.from({ length: image.width }, (_, x) => {
    const at = frame * size + x * 3;
    return names[image.data.subarray(at, at + 3).join(',')] ?? '?';
  });
}
