import { upscale } from '../../src/nodes/resample/resample.ts';
import { describe, expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import {
  type Inputs,
  type NodeContext,
  OutOfMemory,
  type SavedFile,
} from '../../src/nodes/node.ts';
import { newMask } from '../../src/nodes/tensor.ts';
import { type JsonObject } from '../../src/protocol/json.ts';
import { fakeContext, recordedJson, runGraph } from '../support/graphs/pixels.ts';
import { picture } from '../support/graphs/pictures.ts';

const run = async (name: string, inputs: object, change: Partial<NodeContext> = {}) => {
  const { outputs, ui } = await ALL_NODES.get(name)!.run(inputs as Inputs, {
    ...fakeContext({}),
    ...change,
  });
  return { outputs, ui };
};
const resultOf = async (name: string, inputs: object, change?: Partial<NodeContext>) =>
  (await run(name, inputs, change)).outputs[0];

test.each(['n33_resize_bad_key', 'n33_stringformat_missing', 'n33_number_4'])(
  '%s fails as in the original',
  async (name) => {
    const { error } = recordedJson(name, 'outputs.json') as { error: readonly JsonObject[] };
    const { exception_type: exceptionType, exception_message: message } = error[0]!;
    await expect(runGraph(name, [...ALL_NODES.values()])).rejects.toMatchObject({
      exceptionType,
      message: (message as string).trimEnd(),
    });
  },
);

describe('ResizeImageMaskNode', () => {
  const image = picture({ batch: 2, height: 30, width: 70 });
  const mask = newMask(fakeContext({}), { batch: 1, height: 9, width: 5 });
  const sized = async (way: object, input: object = image) => {
    const inputs = Object.entries(way).map(([name, value]): [string, unknown] => [
      name === 'is' ? 'resize_type' : `resize_type.${name}`,
      value,
    ]);
    const given = { input, scale_method: 'bilinear', ...Object.fromEntries(inputs) };
    const { kind, batch, width, height } = (await resultOf(
      'ResizeImageMaskNode',
      given,
    )) as typeof mask;
    return [kind, batch, width, height];
  };

  test.each([
    [{ is: 'scale dimensions', width: 0, height: 15, crop: 'disabled' }, 35, 15],
    [{ is: 'scale dimensions', width: 0, height: 0, crop: 'center' }, 70, 30],
    [{ is: 'scale shorter dimension', shorter_size: 60 }, 140, 60],
    [{ is: 'scale longer dimension', longer_size: 35 }, 35, 15],
    [{ is: 'match size', match: mask, crop: 'center' }, 5, 9],
    [{ is: 'scale to multiple', multiple: 16 }, 64, 16],
    [{ is: 'scale to multiple', multiple: 64 }, 70, 30],
    [{ is: 'scale to multiple', multiple: 10 }, 70, 30],
  ])('%j', async (way, width, height) => {
    expect(await sized(way)).toEqual(['image', 2, width, height]);
  });

  test('whole pixels are counted for the total, unlike in ImageScaleToTotalPixels', async () => {
    const way = { is: 'scale total pixels', megapixels: 0.01 };
    const size = await sized(way, picture({ width: 13, height: 118 }));
    expect(size).toEqual(['image', 1, 34, 308]);
  });

  test('the side that fits a multiple exactly is not scaled beyond it and cut', async () => {
    const wide = picture({ width: 25, height: 27 });
    const way = { resize_type: 'scale to multiple', 'resize_type.multiple': 14 };
    const given = { input: wide, scale_method: 'bilinear', ...way };
    const made = (await resultOf('ResizeImageMaskNode', given)) as typeof mask;
    const options = { width: 14, height: 16, method: 'bilinear' };
    const scaled = upscale(fakeContext({}), wide, options);
    expect(made.data).toEqual(scaled.data.slice(14 * 3, -14 * 3));
  });

  test('a mask stays a mask', async () => {
    expect(await sized({ is: 'scale by multiplier', multiplier: 2 }, mask)).toEqual([
      'mask',
      1,
      10,
      18,
    ]);
  });
});

test('BatchMasksNode brings masks to the size of the first, in the order of their names', async () => {
  const of = (level: number, width: number) => {
    const mask = newMask(fakeContext({}), { batch: 1, height: 2, width });
    mask.data.fill(level);
    return mask;
  };
  const inputs = {
    'masks.mask10': of(0.75, 2),
    'masks.mask0': of(0.25, 2),
    'masks.mask2': of(0.5, 6),
  };
  const joined = (await resultOf('BatchMasksNode', inputs)) as ReturnType<typeof newMask>;
  expect([joined.batch, joined.width]).toEqual([3, 2]);
  expect([...joined.data].map((level) => level.toFixed(2))).toEqual(
    ['0.25', '0.50', '0.75'].flatMap((level) => Array.from({ length: 4 }, () => level)),
  );
});

test('ImageCropV2 takes what a region leaves out from its defaults', async () => {
  const image = picture({ batch: 1, height: 600, width: 600 });
  const part = (await resultOf('ImageCropV2', { image, crop_region: { x: 590 } })) as typeof image;
  expect([part.width, part.height]).toEqual([10, 512]);
  await expect(run('ImageCropV2', { image, crop_region: 'x' })).rejects.toMatchObject({
    exceptionType: 'AttributeError',
  });
});

describe('logic', () => {
  test.each([
    [[true, 0], false, true],
    [['', null], false, false],
    [['False', 2n, 0.5], true, true],
    [[{ x: 0, y: 0, width: 1, height: 1 }], true, true],
  ])('%o', async (values, all, any) => {
    const inputs = Object.fromEntries(values.map((value, i) => [`values.value${i}`, value]));
    expect(await resultOf('ComfyAndNode', inputs)).toBe(all);
    expect(await resultOf('ComfyOrNode', inputs)).toBe(any);
  });

  test('a picture is neither true nor false', async () => {
    const value = picture({ batch: 1, height: 1, width: 1 });
    await expect(run('ComfyNotNode', { value })).rejects.toMatchObject({
      exceptionType: 'RuntimeError',
    });
  });
});

test.each([
  [true, 1, 1],
  ['18446744073709551615', 18446744073709552000, 18446744073709551615n],
  [' +1_000 ', 1000, 1000],
  ['-0.9', -0.9, 0],
  ['.5e1', 5, 5],
  [1e20, 1e20, 100000000000000000000n],
])('ComfyNumberConvert of %o', async (value, float, int) => {
  const { outputs } = await run('ComfyNumberConvert', { value });
  expect(outputs[0]).toBe(float);
  expect(Object.is(outputs[1], -0) ? 0 : outputs[1]).toBe(int);
});

test.each([
  ['', 'Cannot convert empty string to number.'],
  ['0x10', "Cannot convert string to number: '0x10'"],
  ['nan', 'Cannot convert non-finite value to number: nan'],
  ['1e999', 'Cannot convert non-finite value to number: inf'],
  ['-inf', 'Cannot convert non-finite value to number: -inf'],
])('ComfyNumberConvert of %j fails', async (value, message) => {
  await expect(run('ComfyNumberConvert', { value })).rejects.toThrow(message);
});

describe('StringFormat', () => {
  const format = (f_string: string, values: object = {}, change: Partial<NodeContext> = {}) => {
    const named = Object.entries(values).map(([name, value]) => [`values.${name}`, value]);
    return resultOf('StringFormat', { f_string, ...Object.fromEntries(named) }, change);
  };
  const FLOAT = { inputTypes: { 'values.a': 'FLOAT' } };

  // Python 3.11 gives these texts.
  test.each<[string, unknown, string]>([
    ['03d', 7, '007'],
    ['>8', 'ab', '      ab'],
    ['*^9', 'abc', '***abc***'],
    [',', 1234567, '1,234,567'],
    ['_x', 3735928559, 'dead_beef'],
    ['#x', 255, '0xff'],
    ['+.2f', 3.14159, '+3.14'],
    ['.0f', 2.5, '2'],
    ['.0f', 0.5, '0'],
    ['.2f', 2.675, '2.67'],
    ['e', 12345.678, '1.234568e+04'],
    ['.3g', 1.234e-5, '1.23e-05'],
    ['%', 0.256, '25.600000%'],
    ['08.2f', -3.5, '-0003.50'],
    ['.2', 'hello', 'he'],
    ['5', true, '    1'],
    [',.2f', 1234567.891, '1,234,567.89'],
    ['=+7', 5, '+     5'],
    ['x<4', 1, '1xxx'],
    ['.1f', 0.25, '0.2'],
    ['E', 0.00012, '1.200000E-04'],
    [' d', 5, ' 5'],
    ['05', 'ab', 'ab000'],
    ['.10g', 0.1, '0.1'],
    ['b', -5, '-101'],
    ['d', 18446744073709551615n, '18446744073709551615'],
    ['#06x', 255, '0x00ff'],
    ['010,', 1234, '00,001,234'],
    ['08,', 1234, '0,001,234'],
    ['n', 1234, '1234'],
    ['#g', 2.5, '2.50000'],
    ['#.0f', 255, '255.'],
    ['.1g', 2.5, '2'],
    ['.0e', 2.5, '2e+00'],
    ['.1', 0.25, '0.2'],
  ])('{a:%s} of %o', async (spec, a, text) => {
    expect(await format(`{a:${spec}}`, { a })).toBe(text);
  });

  test.each<[string, unknown, string]>([
    ['', 3, '3.0'],
    ['.3', 3, '3.0'],
    ['.1', 3, '3e+00'],
    ['.2', 12, '1.2e+01'],
    ['g', 1e20, '1e+20'],
    ['g', 1_000_000, '1e+06'],
    ['g', 100_000, '100000'],
    ['f', 1e22, '10000000000000000000000.000000'],
  ])('{a:%s} of the FLOAT %o', async (spec, a, text) => {
    expect(await format(`{a:${spec}}`, { a }, FLOAT)).toBe(text);
  });

  test.each<[string, object, string]>([
    ['{{{a}}} {b!r} {a!s:>3}', { a: 1, b: "it's" }, '{1} "it\'s"   1'],
    ['{a:>{b}}', { a: 'x', b: 4 }, '   x'],
    ['{a[1]:>3}{b[x][0]}', { a: 'a😀c', b: { x: 'yz' } }, '  😀y'],
    ['{a[width]} {a}', { a: { width: 5 } }, "5 {'width': 5}"],
    ['{a!a}', { a: 'é上😀' }, "'\\xe9\\u4e0a\\U0001f600'"],
    ['{a} {b}', { a: null, b: false }, 'None False'],
  ])('%s', async (f_string, values, text) => {
    expect(await format(f_string, values)).toBe(text);
  });

  test.each<[string, object, string, string]>([
    ['{', {}, 'ValueError', "Single '{' encountered"],
    ['{a', {}, 'ValueError', "expected '}' before end of string"],
    ['a}', {}, 'ValueError', "Single '}' encountered"],
    ['{}', { a: 1 }, 'IndexError', 'Replacement index 0 out of range'],
    ['{b}', { a: 1 }, 'KeyError', "'b'"],
    ['{a:d}', { a: 'x' }, 'ValueError', "Unknown format code 'd' for object of type 'str'"],
    ['{a:.1d}', { a: 1 }, 'ValueError', 'Precision not allowed'],
    ['{a:5}', { a: null }, 'TypeError', 'unsupported format string passed to NoneType'],
    ['{a.__class__}', { a: 'x' }, 'AttributeError', '__class__'],
    ['{a[constructor]}', { a: { x: 1 } }, 'KeyError', 'constructor'],
    ['{a[3]}', { a: 'abc' }, 'IndexError', 'out of range'],
    ['{a[-1]}', { a: 'abc' }, 'TypeError', 'indices must be integers'],
    ['{a[0]}', { a: 5n }, 'TypeError', 'not subscriptable'],
    ['{a[0]x}', { a: 'abc' }, 'ValueError', 'unfinished part'],
    ['{a:,}', { a: 'abc' }, 'ValueError', "',' not allowed"],
    ['{a:,x}', { a: 5 }, 'ValueError', "Cannot specify ','"],
  ])('%s fails', async (f_string, values, exceptionType, message) => {
    await expect(format(f_string, values)).rejects.toMatchObject({
      exceptionType,
      message: expect.stringContaining(message) as string,
    });
  });

  test('the memory of a wide field is reserved before it is filled', async () => {
    const reserve = (bytes: number): void => {
      if (bytes > 1e6) throw new OutOfMemory('too much');
    };
    await expect(format('{a:999999999}', { a: 1 }, { reserve })).rejects.toThrow(OutOfMemory);
  });
});

describe('SaveText', () => {
  const save = async (format: string, text: string) => {
    const saved: SavedFile[] = [];
    const context = fakeContext({ onSave: (file) => saved.push(file), counters: new Map() });
    const inputs = { text, filename_prefix: 'texts/note', format };
    const { outputs, ui } = await ALL_NODES.get('SaveText')!.run(inputs, context);
    const [file] = saved;
    return { outputs, ui, file: file && { ...file, bytes: Buffer.from(file.bytes).toString() } };
  };

  test.each([
    ['txt', '{"a": 1}', '{"a": 1}', 'text/plain'],
    ['csv', 'a;b', 'a;b', 'text/csv'],
    ['json', '{"a": 1}', '{\n  "a": 1\n}', 'application/json'],
    [
      'json',
      '[{}, "é", 18446744073709551615]',
      '[\n  {},\n  "é",\n  18446744073709551615\n]',
      'application/json',
    ],
    ['json', '{no', '{no', 'application/json'],
  ])('%s of %s', async (format, text, bytes, contentType) => {
    const item = { filename: `note_00001.${format}`, subfolder: 'texts', type: 'output' };
    expect(await save(format, text)).toMatchObject({
      outputs: [text],
      ui: { text: [text], files: [item] },
      file: { bytes, contentType, temp: false },
    });
  });

  test('a format that came by a link does not become a part of a path', async () => {
    await expect(save('../../x', 'a')).rejects.toThrow('Unknown format');
  });
});
