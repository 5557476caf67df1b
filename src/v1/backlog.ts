import type { Frame } from './channel.ts';

/** Frames of one prompt that no socket has received, in order. */
export type Backlog = {
  /** `at`: the place in the prompt's journal it comes from. */
  keep(frame: Frame, at: number): void;
  /** One that is fetched only when a socket is about to come. */
  keepUnread(load: Load, at: number): void;
  /** Fetches what is not there yet. */
  read(): Promise<void>;
  /** What came up to this place has reached a socket elsewhere; tells the last node it named. */
  forget(upTo: number): Frame | undefined;
  /** Everything, to be sent now, and the place of the last. */
  empty(): { readonly frames: readonly Frame[]; readonly at: number };
  readonly size: () => number;
};

export type Load = () => Promise<Frame | undefined>;

type Item = { readonly at: number; frame: Frame | undefined; load?: Load };

/** Most bytes of undelivered pictures kept for a socket that may still come. */
const REPLAY_PICTURE_BYTES = 64 * 1024 * 1024;
/** From here on only the latest of consecutive steps is kept for a late socket. */
const REPLAY_FRAMES = 2000;

export function createBacklog(): Backlog {
  let items: Item[] = [];
  let bytes = 0;

  /** Without the picture that is not worth keeping; `undefined`: there is nothing else to it. */
  function worthOf(frame: Frame): Frame | undefined {
    const picture = pictureIn(frame);
    if (picture === undefined) return frame;
    bytes += picture.bytes.length;
    if (picture.essential && bytes <= REPLAY_PICTURE_BYTES) return frame;
    if (frame.kind !== 'step') return undefined;
    const { picture: _, ...step } = frame;
    return step;
  }

  return {
    keep(frame, at) {
      const isStep = frame.kind === 'step' && items.at(-1)?.frame?.kind === 'step';
      if (isStep && items.length >= REPLAY_FRAMES) items.pop();
      const worth = worthOf(frame);
      if (worth) items.push({ frame: worth, at });
    },
    keepUnread: (load, at) => void items.push({ frame: undefined, at, load }),
    async read() {
      for (const item of items.filter(({ load }) => load)) {
        const frame = await item.load?.();
        delete item.load;
        item.frame = frame && worthOf(frame);
      }
    },
    forget(upTo) {
      if ((items[0]?.at ?? Infinity) > upTo) return undefined;
      const gone = items.filter(({ at }) => at <= upTo);
      items = items.slice(gone.length);
      for (const { frame } of gone) bytes -= (frame && pictureIn(frame)?.bytes.length) ?? 0;
      return gone.findLast(({ frame }) => frame && isExecuting(frame))?.frame;
    },
    empty() {
      const at = items.at(-1)?.at ?? 0;
      const frames = items.flatMap(({ frame }) => frame ?? []);
      items = [];
      bytes = 0;
      return { frames, at };
    },
    size: () => items.length,
  };
}

/** Whether it names the node at work. */
function isExecuting(frame: Frame): boolean {
  return frame.kind === 'json' && frame.message.type === 'executing';
}

function pictureIn(frame: Frame) {
  return frame.kind === 'picture' || frame.kind === 'step' ? frame.picture : undefined;
}
