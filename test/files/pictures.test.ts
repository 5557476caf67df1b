import { expect, test } from 'vitest';
import { type Drawing, createPictures } from '../../src/files/pictures.ts';

const MEGA = 1_000_000;

/** The header of a bitmap: its size is all that is read before it is drawn. */
function bitmap(megapixels: number): Buffer {
  const bytes = Buffer.alloc(54);
  bytes.write('BM');
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(1000, 18);
  bytes.writeInt32LE(megapixels * 1000, 22);
  return bytes;
}

/** Drawings that end when the test says so. */
function createDrawings() {
  const begun: { readonly megapixels: number; readonly end: () => void }[] = [];
  const pictures = createPictures(({ files: [file] }) => {
    const megapixels = (Buffer.from(file!).readInt32LE(22) * 1000) / MEGA;
    return new Promise((resolve) => {
      const end = (): void => resolve({ ok: true, bytes: Buffer.alloc(0) });
      begun.push({ megapixels, end });
    });
  });
  const draw = (user: string, ...megapixels: readonly number[]) =>
    pictures.draw(user, async () => drawingOf(megapixels));
  return {
    draw,
    begun: () => begun.map((each) => each.megapixels),
    end: () => begun.at(-1)?.end(),
  };
}

function drawingOf(megapixels: readonly number[]): Drawing {
  const as = megapixels.length > 1 ? 'masked' : 'rgb';
  return { how: { as }, files: megapixels.map(bitmap) };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

test('pictures that are together too large are drawn one after the other', async () => {
  const { draw, begun, end } = createDrawings();
  const results = [draw('one', 40), draw('two', 40)];
  await settled();
  expect(begun()).toEqual([40]);
  end();
  await settled();
  expect(begun()).toEqual([40, 40]);
  end();
  expect(await Promise.all(results)).toMatchObject([{ ok: true }, { ok: true }]);
});

test('smaller ones are drawn at the same time, two at most', async () => {
  const { draw, begun } = createDrawings();
  for (const user of ['one', 'two', 'three']) void draw(user, 20);
  await settled();
  expect(begun()).toEqual([20, 20]);
});

test('a user with many pictures does not delay the picture of another by more than one', async () => {
  const { draw, begun, end } = createDrawings();
  for (let i = 0; i < 5; i++) void draw('one', 64);
  void draw('two', 10);
  await settled();
  expect(begun()).toEqual([64]);
  end();
  await settled();
  expect(begun().slice(0, 2)).toEqual([64, 10]);
});

test.each([[[68]], [[1, 68]], [[68, 1]]])(
  'a picture or mask of too many pixels is refused before it is drawn: %j',
  async (megapixels) => {
    const { draw, begun } = createDrawings();
    expect(await draw('one', ...megapixels)).toEqual({
      ok: false,
      reason: 'The picture has more pixels than are decoded here.',
    });
    expect(begun()).toEqual([]);
  },
);

test('a failure to read reaches the caller, and the next picture is drawn', async () => {
  const { draw, begun } = createDrawings();
  const pictures = createPictures(async () => ({ ok: true, bytes: Buffer.alloc(0) }));
  const failing = () => pictures.draw('one', () => Promise.reject(new Error('gone')));
  await expect(Promise.all([failing(), failing(), failing()])).rejects.toThrow('gone');
  void draw('one', 1);
  await settled();
  expect(begun()).toEqual([1]);
});
