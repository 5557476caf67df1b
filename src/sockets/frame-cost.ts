import type { V1Message } from '../protocol/v1.ts';
import { encodeMessage } from './connection.ts';
import type { Frame } from './frame.ts';

/** Kinds of frames that may be dropped when too many are kept, in the order they are dropped. */
export const DROP_ORDER = ['step', 'text', 'picture', 'executed'] as const;
export type DropKind = (typeof DROP_ORDER)[number];

/** The assumed bytes of one frame besides its content. */
const FRAME_BYTES = 200;

/** The kind under which a frame may be dropped; `undefined`: it is never dropped. */
export function dropKindOf(frame: Frame): DropKind | undefined {
  if ('picture' in frame && frame.picture) return 'picture';
  if (frame.kind !== 'json') return frame.kind;
  return frame.message.type === 'executed' ? 'executed' : undefined;
}

/** The `progress_state` of a frame, if it has one. */
export function progressStateIn(frame: Frame): V1Message | undefined {
  if (frame.kind === 'step') return frame.state;
  return frame.kind === 'json' && frame.message.type === 'progress_state'
    ? frame.message
    : undefined;
}

/** Removes a preview, which is worthless when late. `undefined`: nothing else is in the frame. */
export function withoutPreview(frame: Frame): Frame | undefined {
  const isPreview =
    'picture' in frame && frame.picture !== undefined && frame.picture.kind !== 'result';
  if (!isPreview) return frame;
  if (frame.kind !== 'step') return undefined;
  const { picture: _, ...step } = frame;
  return step;
}

/** Bytes that a kept frame counts for. */
export function frameBytes(frame: Frame): number {
  switch (frame.kind) {
    case 'json':
      return FRAME_BYTES + encodeMessage(frame.message).length;
    case 'text':
      return FRAME_BYTES + frame.text.length;
    case 'picture':
      return FRAME_BYTES + frame.picture.bytes.length;
    case 'step': {
      const { state, picture } = frame;
      const stateBytes = state ? encodeMessage(state).length : 0;
      return 2 * FRAME_BYTES + stateBytes + (picture?.bytes.length ?? 0);
    }
  }
}
