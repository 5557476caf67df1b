import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { scalePlainly } from '../../src/nodes/resample/lanczos.ts';
import type { Bytes } from '../../src/nodes/resample/lanczos-taps.ts';
import { scaleWithVectors } from '../../src/nodes/resample/lanczos-vectors.ts';
import { rowsPlainly, rowsWithVectors } from '../../src/nodes/codecs/encode-png.ts';
import { type Field, emptyFields, react, addSpots } from '../../src/nodes/reaction/field.ts';
import { seeded } from '../support/graphs/seeded.ts';

const FREE = { reserve: () => {}, check: () => {} };

const side = fc.integer({ min: 1, max: 70 });

/** Noise, of the hardest kind now and then: what overshoots is cut off. */
const pictures: fc.Arbitrary<Bytes> = fc
  .record({
    width: side,
    height: side,
    channels: fc.integer({ min: 1, max: 4 }),
    kind: fc.constantFrom('noise', 'black and white'),
    seed: fc.integer(),
  })
  .map(({ width, height, channels, kind, seed }) => {
    const { random: noise } = seeded(seed);
    const data = Uint8Array.from({ length: width * height * channels }, () =>
      kind === 'noise' ? noise() * 256 : noise() < 0.5 ? 0 : 255,
    );
    return { width, height, channels, data };
  });

/** Another field of the same content, without vector instructions. */
function plainly({ width, height, fed, grown }: Field): Field {
  return { width, height, fed: fed.slice(), grown: grown.slice() };
}

/** The border is not set before the next time step. */
function withoutBorder({ width, height, fed, grown }: Field): readonly Float32Array[] {
  const rows = Array.from({ length: height }, (_, y) => (y + 1) * (width + 2) + 1);
  return rows.flatMap((at) => [fed.slice(at, at + width), grown.slice(at, at + width)]);
}

describe('vector instructions', () => {
  test('give the same bytes as plain sums', () => {
    fc.assert(
      fc.property(pictures, side, side, (picture, width, height) => {
        const scaled = scaleWithVectors(FREE, picture, { width, height });
        expect(scaled).toEqual(scalePlainly(FREE, picture, { width, height }));
      }),
      { numRuns: 300 },
    );
  });

  test('grow the same pattern', () => {
    const rate = fc.oneof(fc.double({ min: 0, max: 0.1, noNaN: true }), fc.double());
    fc.assert(
      fc.property(side, side, rate, rate, fc.integer(), (width, height, feed, kill, seed) => {
        const [field, spare] = emptyFields(FREE, { width, height });
        addSpots(field, seeded(seed).random);
        const [plain, plainSpare] = [plainly(field), plainly(spare)];
        for (let turn = 0; turn < 10; turn++) {
          react(FREE, field, spare, { feed, kill });
          react(FREE, spare, field, { feed, kill });
          react(FREE, plain, plainSpare, { feed, kill });
          react(FREE, plainSpare, plain, { feed, kill });
        }
        expect(field.vectors).toBeDefined();
        expect(withoutBorder(field)).toEqual(withoutBorder(plain));
      }),
    );
  });

  test('make the same rows for a PNG', () => {
    fc.assert(
      fc.property(pictures, ({ data, channels, ...size }) => {
        const pixels = { ...size, bytes: data, channels: Math.max(2, channels) as 2 | 3 | 4 };
        const bytes = new Uint8Array(size.width * size.height * pixels.channels).fill(200);
        bytes.set(data);
        expect(rowsWithVectors({ ...pixels, bytes })).toEqual(rowsPlainly({ ...pixels, bytes }));
      }),
    );
  });

  test.each([
    [1, 1, 3, 500, 1],
    [500, 1, 4, 1, 1],
    [1024, 3, 3, 1023, 3],
    [3, 1024, 1, 3, 2047],
  ])('%i × %i of %i channels to %i × %i', (width, height, channels, toWidth, toHeight) => {
    const data = Uint8Array.from({ length: width * height * channels }, (_, i) => (i * 37) % 256);
    const picture = { width, height, channels, data };
    const size = { width: toWidth, height: toHeight };
    expect(scaleWithVectors(FREE, picture, size)).toEqual(scalePlainly(FREE, picture, size));
  });

  test('leave to plain sums what they cannot hold', () => {
    const picture = { width: 2, height: 2, channels: 5, data: new Uint8Array(20) };
    expect(scaleWithVectors(FREE, picture, { width: 4, height: 4 })).toBeUndefined();
  });
});

test('a job that is stopped stops scaling', () => {
  const stopped = new Error('stopped');
  const context = {
    reserve: () => {},
    check() {
      throw stopped;
    },
  };
  const picture = { width: 8, height: 8, channels: 3, data: new Uint8Array(192) };
  expect(() => scaleWithVectors(context, picture, { width: 4, height: 4 })).toThrow(stopped);
});
