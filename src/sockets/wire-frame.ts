type FramePieces = readonly [Buffer] | readonly [Buffer, Buffer];

/** A WebSocket frame as it is on the wire, encoded once for any number of sockets. */
export type WireFrame = {
  readonly pieces: FramePieces;
  /** Bytes of the payload, without the header. */
  readonly length: number;
};

const OPCODE = { text: 1, binary: 2 } as const;

/** Up to this size, a copy costs less than a second write for every socket. */
const MAX_COPIED_BYTES = 64 * 1024;

/** Payloads from these lengths on need 16 or 64 bits for the length in the header. */
const LENGTH_16_BIT = 126;
const LENGTH_64_BIT = 2 ** 16;

/** Encodes a message as a server must send it (RFC 6455, 5.2): one frame, without a mask. */
export function toWireFrame(message: string | Buffer, kind: keyof typeof OPCODE): WireFrame {
  const length = Buffer.byteLength(message);
  const headerBytes = length < LENGTH_16_BIT ? 2 : length < LENGTH_64_BIT ? 4 : 10;
  const isCopied = length <= MAX_COPIED_BYTES;
  const first = Buffer.allocUnsafe(headerBytes + (isCopied ? length : 0));
  writeHeader(first, OPCODE[kind], length);
  if (!isCopied) return { pieces: [first, toBuffer(message)], length };
  if (typeof message === 'string') first.write(message, headerBytes);
  else first.set(message, headerBytes);
  return { pieces: [first], length };
}

function toBuffer(message: string | Buffer): Buffer {
  return typeof message === 'string' ? Buffer.from(message) : message;
}

const FIN = 0x80;

function writeHeader(frame: Buffer, opcode: number, length: number): void {
  frame[0] = FIN | opcode;
  if (length < LENGTH_16_BIT) frame[1] = length;
  else if (length < LENGTH_64_BIT) {
    frame[1] = 126;
    frame[2] = length >> 8;
    frame[3] = length & 0xff;
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
}

/** Returns the payload of a frame: a text unchanged, else its bytes. */
export function payloadOf(frame: string | WireFrame): string | Buffer {
  if (typeof frame === 'string') return frame;
  const [first, second] = frame.pieces;
  const payload = second ?? first.subarray(first.length - frame.length);
  const opcode = (first[0] ?? 0) & 0x0f;
  return opcode === OPCODE.text ? payload.toString() : payload;
}
