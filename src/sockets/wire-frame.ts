import { Sender } from 'ws';

declare module 'ws' {
  /** Exported, and absent from the types. */
  export const Sender: {
    /** The header of a frame, and what it was given. */
    frame(data: Buffer, options: FrameOptions): FramePieces;
  };
  type FrameOptions = { readonly [name in 'fin' | 'rsv1' | 'mask' | 'readOnly']: boolean } & {
    readonly opcode: number;
  };
}

type FramePieces = readonly [Buffer] | readonly [Buffer, Buffer];

/** A message as it stands on the wire, made once for any number of sockets. */
export type WireFrame = {
  readonly pieces: FramePieces;
  /** Without what frames it. */
  readonly length: number;
};

const OPCODE = { text: 1, binary: 2 } as const;

/** Up to here a copy costs less than a second piece for every socket. */
const MAX_COPIED_BYTES = 64 * 1024;

export function toWireFrame(message: Buffer, kind: keyof typeof OPCODE): WireFrame {
  const { length } = message;
  const opcode = OPCODE[kind];
  const options = { fin: true, rsv1: false, mask: false, readOnly: true, opcode };
  const pieces = Sender.frame(message, options);
  return { pieces: length <= MAX_COPIED_BYTES ? [Buffer.concat(pieces)] : pieces, length };
}
