// `sockets/wire-frame.ts` builds on `Sender.frame`, which `ws` exports but does not document.
import { readFileSync } from 'node:fs';
import { Sender } from 'ws';
import { expect, test } from 'vitest';
import { toWireFrame } from '../../src/sockets/wire-frame.ts';

/** The version that these tests were last read against: look at its `lib/sender.js` before changing it. */
const KNOWN_VERSION = '8.23.0';

const wsPackage = new URL('../../node_modules/ws/package.json', import.meta.url);

test(`the installed ws is ${KNOWN_VERSION}, whose Sender.frame is known`, () => {
  expect(JSON.parse(readFileSync(wsPackage, 'utf8')).version).toBe(KNOWN_VERSION);
  expect(typeof Reflect.get(Sender, 'frame')).toBe('function');
});

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
