import type { WireFrame } from './wire-frame.ts';

type WriteFrame = (frame: string | WireFrame, done?: () => void) => void;

/**
 * Delays the frames of a new socket until its 101 has been read: some clients drop bytes that
 * arrive together with the 101. The first frame is sent alone, the rest in another turn of the
 * event loop.
 */
export type FirstFrames = {
  /** Keeps the frame for later. `false`: frames are not delayed any more, write it. */
  hold(frame: string | WireFrame, done?: () => void): boolean;
  isHolding(): boolean;
  /** Bytes of the delayed frames; they count as unsent bytes of the socket. */
  bytes(): number;
  /** Writes all frames now, because the socket is about to be closed. */
  flush(): void;
  /** The socket is gone. */
  discard(): void;
};

export function createFirstFrames(write: WriteFrame, holdMs: number): FirstFrames {
  let held: Parameters<WriteFrame>[] | undefined = [];
  let bytes = 0;
  let rest: NodeJS.Immediate | undefined;
  const timer = setTimeout(sendFirst, holdMs).unref();

  function sendFirst(): void {
    const first = held?.shift();
    if (first) {
      bytes -= first[0].length;
      write(...first);
    }
    rest = setImmediate(flush);
  }

  function flush(): void {
    const frames = held ?? [];
    discard();
    for (const frame of frames) write(...frame);
  }

  function discard(): void {
    clearTimeout(timer);
    clearImmediate(rest);
    held = undefined;
    bytes = 0;
  }

  return {
    hold(frame, done) {
      if (held === undefined) return false;
      held.push([frame, done]);
      bytes += frame.length;
      return true;
    },
    isHolding: () => held !== undefined,
    bytes: () => bytes,
    flush,
    discard,
  };
}
