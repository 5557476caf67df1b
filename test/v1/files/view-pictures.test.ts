// How /view draws pictures of all kinds, as measured at the original server.
import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestApp, createTestApp, place } from '../../support/app/v1-routes.ts';

const BITMAP = new URL('../../../fixtures/pixels/load_x_bmp/inputs/x.bmp', import.meta.url);

let app: TestApp;

/** One pixel of the answer, and how many channels it has. */
async function drawn(query: string, headers: Record<string, string> = {}) {
  const path = query.startsWith('/') ? query : `/view?type=input&filename=${query}`;
  const { status, body, headers: told } = await app.ask(path, { headers });
  if (status !== 200) return [status];
  const { data, info } = await sharp(body).raw().toBuffer({ resolveWithObject: true });
  return [told['content-type'], info.channels, ...data.subarray(0, info.channels)];
}

function pixel(channels: 3 | 4, values: readonly number[]) {
  const raw = { width: 1, height: 1, channels };
  return sharp(Buffer.from(values), { raw });
}

beforeAll(async () => {
  app = await createTestApp();
  const rgba = pixel(4, [10, 20, 30, 128]);
  await place(app, 'rgba.png', await rgba.png().toBuffer());
  await place(app, 'grey-alpha.png', await rgba.clone().toColourspace('b-w').png().toBuffer());
  await place(app, 'palette.png', await rgba.clone().png({ palette: true }).toBuffer());
  await place(app, 'rgba.webp', await rgba.clone().webp({ lossless: true }).toBuffer());
  await place(app, 'bitmap.bmp', readFileSync(BITMAP));
  const inks = pixel(3, [200, 100, 50]).toColourspace('cmyk');
  await place(app, 'inks.jpg', await inks.jpeg({ quality: 100 }).toBuffer());
});

afterAll(() => app.close());

describe('channel=a shows the alpha', () => {
  test.each(['rgba.png', 'rgba.webp'])('of %s', async (name) => {
    expect(await drawn(`${name}&channel=a`)).toEqual(['image/png', 4, 0, 0, 0, 128]);
  });

  test.each(['grey-alpha.png', 'palette.png', 'bitmap.bmp', 'inks.jpg'])(
    'of %s as opaque: it has no band of its own beside red, green and blue',
    async (name) => {
      expect(await drawn(`${name}&channel=a`)).toEqual(['image/png', 4, 0, 0, 0, 255]);
    },
  );
});

test('channel=alpha is the file as it is, and for hosted calls the same as a', async () => {
  const [type, channels, ...shown] = await drawn('rgba.png&channel=alpha');
  expect([type, channels, shown]).toEqual(['image/png', 4, [10, 20, 30, 128]]);
  const hosted = '/api/view?type=input&filename=rgba.png&channel=alpha';
  expect(await drawn(hosted, { 'X-API-Key': '' })).toEqual(['image/png', 4, 0, 0, 0, 128]);
});

describe('a Windows bitmap', () => {
  test.each([
    ['channel=rgb', 'image/png'],
    ['preview=webp', 'image/webp'],
    ['preview=jpeg;80', 'image/jpeg'],
  ])('is drawn with %s', async (query, type) => {
    const [found, channels] = await drawn(`bitmap.bmp&${query}`);
    expect([found, channels]).toEqual([type, 3]);
  });
});
