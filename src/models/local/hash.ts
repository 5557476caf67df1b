import { createHash } from 'node:crypto';
import type { Sharp } from 'sharp';
import { hashOf } from '../../lib/hash.ts';
import type { JsonObject } from '../../protocol/json.ts';
import { choice, fileField, inputSchema, jsonAnswer, textOf } from './file-schema.ts';
import { openInputPicture, throwUnreadable } from './picture.ts';
import type { Files, ThreadModel } from './thread-model.ts';

const ALGORITHMS = ['blake3', 'sha256', 'sha512'] as const;

type Algorithm = (typeof ALGORITHMS)[number];

function digestOf(name: Algorithm, bytes: Uint8Array): string {
  if (name === 'blake3') return hashOf(bytes).replace('blake3:', '');
  return createHash(name).update(bytes).digest('hex');
}

/** Computes a fingerprint of a file or text. */
export const digest: ThreadModel = {
  model: 'digest',
  title: 'Digest of a file or text',
  description: 'BLAKE3, SHA-256 and SHA-512 of a text (as UTF-8) or of a file.',
  files: ['data'],
  input: {
    ...inputSchema(
      {
        text: { type: 'string', description: 'the text' },
        data: fileField('the file'),
        algorithms: {
          type: 'array',
          minItems: 1,
          maxItems: ALGORITHMS.length,
          items: { type: 'string', enum: [...ALGORITHMS] },
          default: ['blake3', 'sha256'],
        },
      },
      ['text', 'data'],
    ),
    oneOf: [{ required: ['text'] }, { required: ['data'] }],
  },
  output: jsonAnswer({
    size_bytes: { type: 'integer' },
    digests: { type: 'object', additionalProperties: { type: 'string' } },
  }),
  async compute(input, files) {
    const bytes = files.data ?? Buffer.from(textOf(input, 'text'));
    const names = input.algorithms as readonly Algorithm[];
    const digests = names.map((name) => [name, digestOf(name, bytes)] as const);
    const value = { size_bytes: bytes.length, digests: Object.fromEntries(digests) };
    return { kind: 'json', value };
  },
};

/** Sixty-four bits, the highest first. */
type Bits = readonly boolean[];

const BITS: { readonly [algorithm: string]: (image: Sharp) => Promise<Bits> } = {
  /** Compares the low frequencies with their median. */
  async phash(image) {
    const size = 32;
    const grey = await greyLevels(image, size, size);
    const low = withoutNoise(frequencies(grey, size));
    const sorted = low.slice(1).toSorted((a, b) => a - b);
    const median = ((sorted[30] ?? 0) + (sorted[31] ?? 0) + (sorted[32] ?? 0)) / 3;
    return low.map((value) => value > median);
  },
  /** Compares each pixel with its right neighbour. */
  async dhash(image) {
    const grey = await greyLevels(image, 9, 8);
    return Array.from({ length: 64 }, (_, i) => {
      const at = Math.floor(i / 8) * 9 + (i % 8);
      return (grey[at] ?? 0) > (grey[at + 1] ?? 0);
    });
  },
  /** Compares each pixel with the average. */
  async ahash(image) {
    const grey = await greyLevels(image, 8, 8);
    const mean = grey.reduce((sum, level) => sum + level, 0) / grey.length;
    return [...grey].map((level) => level > mean);
  },
};

async function greyLevels(image: Sharp, width: number, height: number): Promise<Uint8Array> {
  return await image
    .flatten({ background: '#ffffff' })
    .resize(width, height, { fit: 'fill' })
    .greyscale()
    .raw()
    .toBuffer()
    .catch(() => throwUnreadable('image'));
}

/** Returns the lowest 8 × 8 frequencies of a square picture (DCT-II), without scale factors. */
function frequencies(grey: Uint8Array, size: number): number[] {
  const wave = (k: number, n: number): number => Math.cos((Math.PI * (2 * n + 1) * k) / (2 * size));
  return Array.from({ length: 64 }, (_, i) => {
    const [v, u] = [Math.floor(i / 8), i % 8];
    let sum = 0;
    for (let at = 0; at < grey.length; at++) {
      sum += (grey[at] ?? 0) * wave(u, at % size) * wave(v, Math.floor(at / size));
    }
    return sum;
  });
}

/**
 * Rounds small values to 0: sums that cancel out are not exactly 0, and their signs mean nothing.
 */
function withoutNoise(low: readonly number[]): number[] {
  const least = (low[0] ?? 0) * 1e-6;
  return low.map((value) => (Math.abs(value) < least ? 0 : value));
}

async function bitsOf(files: Files, field: string, algorithm: string): Promise<Bits> {
  const bits = BITS[algorithm];
  if (bits === undefined) throw new Error(`no such hash: ${algorithm}`);
  return await bits(await openInputPicture(files, field));
}

function toHex(bits: Bits): string {
  const nibbles = Array.from({ length: 16 }, (_, i) => bits.slice(i * 4, i * 4 + 4));
  return nibbles
    .map((nibble) => nibble.reduce((value, bit) => value * 2 + Number(bit), 0).toString(16))
    .join('');
}

export const perceptualHash: ThreadModel = {
  model: 'perceptual-hash',
  title: 'Perceptual hash of a picture',
  description:
    'Sixty-four bits that stay alike while a picture is scaled, recompressed or recoloured a ' +
    'little. With a second picture, also in how many bits the two differ.',
  files: ['image', 'other'],
  input: inputSchema(
    {
      image: fileField('the picture'),
      other: fileField('a picture to compare with'),
      algorithm: choice(Object.keys(BITS), 'what the bits say'),
    },
    ['other'],
  ),
  output: {
    'application/json': {
      type: 'object',
      required: ['algorithm', 'hash'],
      properties: {
        algorithm: { type: 'string' },
        hash: { type: 'string', pattern: '^[0-9a-f]{16}$' },
        other_hash: { type: 'string', pattern: '^[0-9a-f]{16}$' },
        distance: { type: 'integer', minimum: 0, maximum: 64 },
      },
    },
  },
  async compute(input, files) {
    const algorithm = textOf(input, 'algorithm');
    const bits = await bitsOf(files, 'image', algorithm);
    const value: JsonObject = { algorithm, hash: toHex(bits) };
    if (files.other === undefined) return { kind: 'json', value };
    const other = await bitsOf(files, 'other', algorithm);
    const distance = bits.filter((bit, i) => bit !== other[i]).length;
    return { kind: 'json', value: { ...value, other_hash: toHex(other), distance } };
  },
};
