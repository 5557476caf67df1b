import { expect, test } from 'vitest';
import { payloadOf, toWireFrame } from '../../src/sockets/wire-frame.ts';

/** RFC 6455, 5.2: FIN and the opcode, then the length in 7 bits, in 16, or in 64; no mask from a server. */
function header(opcode: number, length: number): Buffer {
  if (length < 126) return Buffer.from([0x80 | opcode, length]);
  const bytes = Buffer.alloc(length < 65536 ? 4 : 10);
  bytes.set([0x80 | opcode, length < 65536 ? 126 : 127]);
  if (length < 65536) bytes.writeUInt16BE(length, 2);
  else bytes.writeBigUInt64BE(BigInt(length), 2);
  return bytes;
}

test.each([0, 1, 125, 126, 65535, 65536, 70_000])(
  'a frame of %i bytes is as RFC 6455 has it',
  (size) => {
    const payload = Buffer.alloc(size, 'x');
    for (const [kind, opcode] of [
      ['text', 1],
      ['binary', 2],
    ] as const) {
      const { pieces, length } = toWireFrame(payload, kind);
      expect(length).toBe(size);
      expect(Buffer.concat(pieces).equals(Buffer.concat([header(opcode, size), payload]))).toBe(
        true,
      );
    }
    expect(payload.equals(Buffer.alloc(size, 'x'))).toBe(true);
  },
);

test.each(['', 'text', 'é'.repeat(63), '\u{1f600}'.repeat(20_000), 'lone \ud800 half'])(
  'a text is encoded as its bytes are',
  (text) => {
    const frame = toWireFrame(text, 'text');
    const bytes = Buffer.from(text);
    expect(
      Buffer.concat(frame.pieces).equals(Buffer.concat([header(1, bytes.length), bytes])),
    ).toBe(true);
    expect(frame.length).toBe(bytes.length);
    expect(payloadOf(frame)).toBe(bytes.toString());
  },
);
