import { createHash } from 'node:crypto';
import { hashOf } from '../../lib/hash.ts';
import { fileField, inputSchema, jsonAnswer } from './file-schema.ts';
import type { ThreadModel } from './thread-model.ts';

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
    const bytes = files.data ?? Buffer.from(input.text as string);
    const names = input.algorithms as readonly Algorithm[];
    const digests = names.map((name) => [name, digestOf(name, bytes)] as const);
    const value = { size_bytes: bytes.length, digests: Object.fromEntries(digests) };
    return { kind: 'json', value };
  },
};
