import sharp from 'sharp';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { drawPicture } from '../../../src/files/draw-picture.ts';
import { createPictures } from '../../../src/files/pictures.ts';
import { readOriginalRef } from '../../../src/v1/files/upload.ts';
import { blackPng } from '../../support/graphs/black-png.ts';
import { recordedFile } from '../../support/golden/recordings.ts';
import { type Called } from '../../support/clients/raw-call.ts';
import { type TestApp, multipart, createTestApp, place } from '../../support/app/v1-routes.ts';

const MASK = recordedFile('mask-upload-c66dd764.png');
const ORIGINAL = recordedFile('mask-upload-input-orig.png');

const pictures = createPictures(drawPicture);

function composeMask(original: Buffer, mask: Buffer) {
  const how = { as: 'masked' } as const;
  return pictures.draw('local', async () => ({ how, files: [original, mask] }));
}

async function pixels(bytes: Buffer): Promise<Buffer> {
  return sharp(bytes).raw().toBuffer();
}

/** Bytes from the end of the header to the first pixels, as text; a density our encoder adds left out. */
function textChunks(png: Buffer): string[] {
  const chunks: string[] = [];
  for (let at = 8; at < png.indexOf('IDAT') - 4; at += 12 + png.readUInt32BE(at)) {
    chunks.push(png.toString('latin1', at + 4, at + 12 + png.readUInt32BE(at)));
  }
  return chunks.filter((chunk) => /^.?.?.?Xt/.test(chunk));
}

describe('the composition', () => {
  test.each([
    [
      'takes the alpha of the mask and keeps the text chunks',
      ORIGINAL,
      MASK,
      'mask-upload-9f60b5eb.png',
    ],
    [
      'is opaque for a mask without alpha',
      ORIGINAL,
      recordedFile('mask-upload-41dc9f25.png'),
      'mask-upload-16a787c6.png',
    ],
    [
      'replaces an alpha that was there',
      recordedFile('mask-upload-input-origa.png'),
      MASK,
      'mask-upload-295758b6.png',
    ],
  ])('%s', async (_, original, mask, recorded) => {
    const made = await composeMask(original, mask);
    const bytes = made.ok ? made.bytes : Buffer.alloc(0);
    expect(made).toMatchObject({ ok: true });
    expect(await pixels(bytes)).toEqual(await pixels(recordedFile(recorded)));
    expect(textChunks(bytes)).toEqual(textChunks(recordedFile(recorded)));
    expect((await sharp(bytes).metadata()).comments).toEqual(
      (await sharp(recordedFile(recorded)).metadata()).comments,
    );
  });

  test.each([
    ['grey', { channels: 3, background: '#808080' }],
    ['see-through', { channels: 4, background: '#80808000' }],
  ] as const)('works on a %s JPEG or WEBP original', async (_, look) => {
    const original = await sharp({ create: { width: 24, height: 16, ...look } })
      .greyscale()
      .webp({ lossless: true })
      .toBuffer();
    const made = await composeMask(original, MASK);
    const png = sharp(made.ok ? made.bytes : Buffer.alloc(0));
    expect(await png.metadata()).toMatchObject({
      format: 'png',
      channels: 4,
      width: 24,
      height: 16,
    });
    expect(await png.extractChannel(3).raw().toBuffer()).toEqual(
      await sharp(MASK).extractChannel(3).raw().toBuffer(),
    );
  });

  test('of two sizes is refused with both', async () => {
    const made = await composeMask(ORIGINAL, recordedFile('mask-upload-8b55ecb3.png'));
    expect(made).toEqual({
      ok: false,
      reason: 'The mask is 10x10, its original 24x16; they must be of one size.',
    });
  });

  test.each([
    ['no picture', Buffer.from('<svg/>')],
    ['cut off', MASK.subarray(0, 600)],
    ['only a header', MASK.subarray(0, 40)],
  ])('of a mask that is %s is refused', async (_, mask) => {
    expect(await composeMask(ORIGINAL, mask)).toMatchObject({ ok: false });
  });

  test('of a mask beyond 64 megapixels is refused', async () => {
    expect(await composeMask(ORIGINAL, blackPng(16_000, 5_000))).toMatchObject({
      ok: false,
      reason: expect.stringContaining('pixels'),
    });
  });
});

test.each([
  ['{"filename":"a.png"}', { filename: 'a.png', subfolder: '', type: 'output' }],
  [
    '{"filename":"a.png","subfolder":"s","type":"input","more":1}',
    { filename: 'a.png', subfolder: 's', type: 'input' },
  ],
  ['{bad', undefined],
  ['[]', undefined],
  ['"a.png"', undefined],
  ['{}', undefined],
  ['{"filename":1}', undefined],
  ['{"filename":"a.png","subfolder":null}', undefined],
])('original_ref %s', (text, ref) => expect(readOriginalRef(text)).toEqual(ref));

describe('POST /upload/mask', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await createTestApp();
    for (const name of ['orig.png', 'origa.png', 'small.png']) {
      await place(app, name, recordedFile(`mask-upload-input-${name}`), {
        hash: `blake3:${name}`,
      });
    }
  });
  afterEach(() => app.close());

  function upload(
    fields: Record<string, string>,
    mask: Buffer = MASK,
    filename = 'mask.png',
  ): Promise<Called> {
    const texts = Object.entries(fields).map(([name, value]) => ({ name, value }));
    return app.ask('/upload/mask', multipart({ name: 'image', filename, data: mask }, ...texts));
  }

  test('takes originalRef, as one client spells it', async () => {
    const answer = await upload({ originalRef: '{"filename":"orig.png","type":"input"}' });
    expect(JSON.parse(answer.body.toString())).toEqual({
      name: 'mask.png',
      subfolder: '',
      type: 'input',
    });
    expect((await app.ask('/view?type=input&filename=mask.png')).status).toBe(200);
  });

  test('finds an original in a subfolder, named either way', async () => {
    await place(app, 'deep.png', ORIGINAL, { subfolder: 'clipspace' });
    for (const ref of [
      '{"filename":"clipspace/deep.png [input]"}',
      '{"filename":"deep.png","subfolder":"clipspace","type":"input"}',
    ]) {
      const { name } = JSON.parse((await upload({ original_ref: ref })).body.toString());
      expect((await app.ask(`/view?type=input&filename=${encodeURIComponent(name)}`)).status).toBe(
        200,
      );
    }
  });

  test.each(['{bad', '[]', '{"filename":1}', '', `{"filename":"${'x'.repeat(200_000)}"}`])(
    'answers 4xx in words for original_ref %#',
    async (ref) => {
      const answer = await upload({ original_ref: ref });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      expect(answer.body.length).toBeGreaterThan(0);
      expect(await app.spooled()).toEqual([]);
    },
  );
});
