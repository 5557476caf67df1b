import sharp from 'sharp';
import { expect, test } from 'vitest';
import { Cancelled, type Inputs, type NodeContext } from '../../src/nodes/node.ts';
import {
  GENERATOR_NODES,
  createReactionDiffusion,
  splitMix64,
} from '../../src/nodes/reaction/reaction-diffusion.ts';
import { nodeNamed, runToImage } from '../support/graphs/pictures.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const node = nodeNamed(GENERATOR_NODES, 'ReactionDiffusion');

const grown = (inputs: Inputs, context: Partial<NodeContext> = {}) => {
  const given = { width: 64, height: 64, seed: 0, steps: 2, feed: 0.055, kill: 0.062, ...inputs };
  return runToImage(node, given, { ...fakeContext({}), ...context });
};

test('the same seed gives the same picture, of the size that was asked for', async () => {
  const [one, other] = [await grown({ seed: 7, width: 72 }), await grown({ seed: 7, width: 72 })];
  expect(one).toMatchObject({ batch: 1, width: 72, height: 64, channels: 3 });
  expect(one.data).toEqual(other.data);
  expect(Math.min(...one.data)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...one.data)).toBeLessThanOrEqual(1);
});

test.each([
  { one: 0, other: 1 },
  { one: 18446744073709551614n, other: 18446744073709551615n },
  { one: 9007199254740992n, other: 9007199254740993n },
])('seeds $one and $other give different pictures', async ({ one, other }) => {
  expect((await grown({ seed: one })).data).not.toEqual((await grown({ seed: other })).data);
});

test('the generator of random numbers is SplitMix64', () => {
  const published = [6457827717110365317n, 3203168211198807973n, 9817491932198370423n];
  const random = splitMix64(1234567n);
  expect(published.map(() => random())).toEqual(
    published.map((word) => Number(word >> 11n) / 2 ** 53),
  );
});

test('rates far out of range do not make the picture run away', async () => {
  const { data } = await grown({ feed: 1e9, kill: -1e9 });
  expect(data.every((level) => level >= 0 && level <= 1)).toBe(true);
});

/** The steps of a run that each take `stepMs`, and those of them that have a preview. */
const told = async (steps: number, stepMs: number) => {
  let nowMs = 1000;
  let previews = 0;
  const all: number[] = [];
  const withPreview: number[] = [];
  const timed = createReactionDiffusion(() => nowMs);
  const inputs = { width: 64, height: 64, seed: 0, steps, feed: 0.055, kill: 0.062 };
  await runToImage(timed, inputs, {
    ...fakeContext({}),
    preview: () => void previews++,
    progress(step) {
      nowMs += stepMs;
      all.push(step);
      if (previews > 0) withPreview.push(step);
      previews = 0;
    },
  });
  return { all, withPreview };
};

test.each([
  { steps: 1, stepMs: 1, withPreview: [1] },
  { steps: 20, stepMs: 10, withPreview: [20] },
  { steps: 20, stepMs: 100, withPreview: [4, 7, 10, 13, 16, 19, 20] },
  { steps: 5, stepMs: 1000, withPreview: [2, 3, 4, 5] },
])(
  'previews come four times a second, and with the last of $steps steps of $stepMs ms',
  async ({ steps, stepMs, withPreview }) => {
    const run = await told(steps, stepMs);
    expect(run.all).toEqual(Array.from({ length: steps }, (_, i) => i + 1));
    expect(run.withPreview).toEqual(withPreview);
  },
);

test.each([
  { width: 64, height: 128, size: '256x512' },
  { width: 640, height: 64, size: '512x51' },
])('the preview of $width×$height is a JPEG of $size', async ({ width, height, size }) => {
  const sizes: string[] = [];
  const pictures: Uint8Array[] = [];
  const preview = (bytes: Uint8Array, contentType: string) => {
    pictures.push(bytes);
    sizes.push(contentType);
  };
  await grown({ width, height, steps: 1 }, { preview });
  const { format, ...sides } = await sharp(pictures[0]).metadata();
  expect([sizes, format]).toEqual([['image/jpeg'], 'jpeg']);
  expect(`${sides.width}x${sides.height}`).toBe(size);
});

test('other work of the thread gets its turn between steps, and cancelling ends the run', async () => {
  const steps: number[] = [];
  let stopped = false;
  const cancel = new Promise<void>((resolve) => {
    setImmediate(() => {
      stopped = true;
      resolve();
    });
  });
  const check = () => {
    if (stopped) throw new Cancelled();
  };
  const run = grown({ steps: 10000 }, { check, progress: (step) => void steps.push(step) });
  await expect(run).rejects.toThrow(Cancelled);
  await cancel;
  expect(steps.length).toBeLessThan(10);
});

test.each(['width', 'height', 'steps'])('%s of 0 is refused', async (name) => {
  await expect(grown({ [name]: 0 })).rejects.toThrow(`${name} must be at least 1, not 0`);
});
