import { Sender } from 'ws';

declare module 'ws' {
  /** Exported by `ws`, but absent from its types and its documentation. */
  export const Sender: {
    /** Returns the header of a frame and its payload. */
    frame(data: Buffer, options: FrameOptions): FramePieces;
  };
  type FrameOptions = { readonly [name in 'fin' | 'rsv1' | 'mask' | 'readOnly']: boolean } & {
    readonly opcode: number;
  };
}

type FramePieces = readonly [Buffer] | readonly [Buffer, Buffer];

/** A WebSocket frame as it is on the wire, encoded once for any number of sockets. */
export type WireFrame = {
  readonly pieces: FramePieces;
  /** Bytes of the payload, without the header. */
  readonly length: number;
};

const OPCODE = { text: 1, binary: 2 } as const;

/** Up to this size a copy costs less than a second write for every socket. */
const MAX_COPIED_BYTES = 64 * 1024;

export function toWireFrame(message: Buffer, kind: keyof typeof OPCODE): WireFrame {
  const { length } = message;
  const opcode = OPCODE[kind];
  const options = { fin: true, rsv1: false, mask: false, readOnly: true, opcode };
  const pieces = Sender.frame(message, options);
  return { pieces: length <= MAX_COPIED_BYTES ? [Buffer.concat(pieces)] : pieces, length };
}

/** The payload of a frame: text as it is, or its bytes. */
export function payloadOf(frame: string | WireFrame): string | Buffer {
  if (typeof frame === 'string') return frame;
  const [first, second] = frame.pieces;
  const payload = second ?? first.subarray(first.length - frame.length);
  const opcode = (first[0] ?? 0) & 0x0f;
  return opcode === OPCODE.text ? payload.toString() : payload;
}
