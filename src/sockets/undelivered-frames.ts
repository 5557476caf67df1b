import type { V1Message } from '../protocol/v1.ts';
import { type Frame, activeNodeIn } from './frame.ts';
import { encodeMessage } from './connection.ts';

/** The frames of one prompt that a socket may still have to receive, in order. */
export type UndeliveredFrames = {
  /** `at`: position in the prompt's event log. `by`: whether a socket with another id got it. */
  add(frame: Frame, at: number, by?: 'unheard' | 'heard'): void;
  /** Adds a frame that is loaded only when a socket is about to connect. */
  addLazy(loader: FrameLoader, at: number): void;
  /** Loads the frames that were added with a loader. */
  loadAll(): Promise<void>;
  /**
   * Removes frames up to this position: a socket of another process has them. Returns the last
   * frame that named the running node.
   */
  discardUpTo(upTo: number): Frame | undefined;
  /** Removes and returns all frames, with the position of the last. */
  takeAll(): FrameBatch;
  /** Returns the frames no socket got. They stay for the sockets of the prompt's client id. */
  takeUnsent(): FrameBatch;
  /** Marks frames up to this position as sent to some socket. */
  markSentUpTo(at: number): void;
  /** Drops all frames but starts, running nodes and ends. */
  dropDetails(): void;
  readonly size: () => number;
  readonly bytes: () => number;
};

/** Frames in order, and the position of the last. */
export type FrameBatch = { readonly frames: readonly Frame[]; readonly at: number };

export type FrameLoader = () => Promise<Frame | undefined>;

type Item = {
  readonly at: number;
  frame: Frame | undefined;
  loader?: FrameLoader | undefined;
  bytes: number;
  isSent: boolean;
};

/** Maximum bytes of undelivered frames of one prompt. */
const MAX_REPLAY_BYTES = 64 * 1024 * 1024;
/** From this size on, only the latest `progress_state` is kept: each one names all nodes. */
const ALL_STATES_BYTES = 256 * 1024;
/** From this count on, only the latest of consecutive steps is kept. */
const REPLAY_FRAMES = 2000;
/** Overhead of one frame. */
const FRAME_BYTES = 200;

/** The kinds of frames that may be dropped, in the order they are dropped. */
const DROP_ORDER = ['step', 'text', 'picture', 'executed'] as const;
type Droppable = (typeof DROP_ORDER)[number];

/**
 * `onDrop` is called when a frame other than a step or state is dropped, once until the list is
 * empty again.
 */
export function createUndeliveredFrames(
  onDrop: () => void = () => {},
  maxBytes = MAX_REPLAY_BYTES,
): UndeliveredFrames {
  let items: Item[] = [];
  let size = 0;
  let bytes = 0;
  let hasDropped = false;
  let states: Item[] = [];
  let droppable = emptyQueues();

  function drop(item: Item): void {
    if (item.frame === undefined && item.loader === undefined) return;
    bytes -= item.bytes;
    item.bytes = 0;
    item.frame = undefined;
    item.loader = undefined;
    size--;
    if (items.length > 2 * size + REPLAY_FRAMES) items = items.filter(hasContent);
  }

  function fill(item: Item, frame: Frame): void {
    item.frame = frame;
    item.bytes = bytesOf(frame);
    bytes += item.bytes;
    const kind = dropKind(frame);
    if (kind) droppable[kind].push(item);
    if (progressStateIn(frame)) noteState(item);
    makeRoom();
  }

  function noteState(item: Item): void {
    if (bytes > ALL_STATES_BYTES) for (const older of states.splice(0)) dropState(older);
    states.push(item);
  }

  function dropState(item: Item): void {
    const { frame } = item;
    if (frame?.kind !== 'step') return drop(item);
    const { state: _, ...rest } = frame;
    bytes -= item.bytes;
    item.frame = rest;
    item.bytes = bytesOf(rest);
    bytes += item.bytes;
  }

  /**
   * Replaces the previous frame when both are steps. The new step gets the previous one's
   * `progress_state` if it has none.
   */
  function mergeStep(last: Item | undefined, frame: Frame): Frame {
    const before = last?.frame;
    if (frame.kind !== 'step' || before?.kind !== 'step' || !last || before.picture) return frame;
    drop(last);
    return frame.state || !before.state ? frame : { ...frame, state: before.state };
  }

  /** Frees more than needed, so that it does not run again for every frame. */
  function makeRoom(): void {
    if (bytes <= maxBytes) return;
    const wantedBytes = 0.9 * maxBytes;
    for (const kind of DROP_ORDER) {
      const queue = droppable[kind];
      let from = 0;
      // The latest step tells the progress of the node.
      const limit = kind === 'step' ? queue.length - 1 : queue.length;
      for (; bytes > wantedBytes && from < limit; from++) {
        const item = queue[from];
        if (kind !== 'step' && item?.frame) noteDropped();
        if (item) drop(item);
      }
      if (from > 0) droppable[kind] = queue.slice(from);
    }
  }

  function noteDropped(): void {
    if (!hasDropped) onDrop();
    hasDropped = true;
  }

  function clear(): void {
    items = [];
    states = [];
    droppable = emptyQueues();
    size = 0;
    bytes = 0;
    hasDropped = false;
  }

  return {
    add(frame, at, by = 'unheard') {
      const content = withoutPreview(frame);
      if (!content) return;
      const item: Item = { at, frame: content, bytes: 0, isSent: by === 'heard' };
      const isFull = size >= REPLAY_FRAMES;
      const remaining = isFull ? mergeStep(items.at(-1), content) : content;
      items.push(item);
      size++;
      fill(item, remaining);
    },
    addLazy(loader, at) {
      items.push({ frame: undefined, at, loader, bytes: 0, isSent: false });
      size++;
    },
    async loadAll() {
      for (const item of items.filter(({ loader }) => loader)) {
        const frame = await item.loader?.();
        if (item.loader === undefined) continue;
        item.loader = undefined;
        const content = frame && withoutPreview(frame);
        if (content) fill(item, content);
        else size--;
      }
    },
    discardUpTo(upTo) {
      if ((items[0]?.at ?? Infinity) > upTo) return undefined;
      const discarded = items.filter(({ at }) => at <= upTo);
      const last = discarded.findLast(
        ({ frame }) => frame && activeNodeIn(frame) !== undefined,
      )?.frame;
      for (const item of discarded) drop(item);
      items = items.filter(({ at }) => at > upTo);
      return last;
    },
    takeAll() {
      const remaining = items.filter(hasContent);
      clear();
      return toBatch(remaining);
    },
    takeUnsent() {
      const unsent = items.filter((item) => hasContent(item) && !item.isSent);
      for (const item of unsent) item.isSent = true;
      return toBatch(unsent);
    },
    markSentUpTo(upTo) {
      for (const item of items) if (item.at <= upTo) item.isSent = true;
    },
    dropDetails() {
      for (const item of items) {
        if (item.loader || (item.frame && (dropKind(item.frame) || progressStateIn(item.frame)))) {
          drop(item);
        }
      }
    },
    size: () => size,
    bytes: () => bytes,
  };
}

function toBatch(items: readonly Item[]): FrameBatch {
  return { frames: items.flatMap(({ frame }) => frame ?? []), at: items.at(-1)?.at ?? 0 };
}

function emptyQueues(): Record<Droppable, Item[]> {
  return { step: [], text: [], picture: [], executed: [] };
}

function hasContent({ frame, loader }: Item): boolean {
  return frame !== undefined || loader !== undefined;
}

/** Removes a preview, which is worthless when late. `undefined`: nothing else is in the frame. */
function withoutPreview(frame: Frame): Frame | undefined {
  const isPreview =
    'picture' in frame && frame.picture !== undefined && frame.picture.kind !== 'result';
  if (!isPreview) return frame;
  if (frame.kind !== 'step') return undefined;
  const { picture: _, ...step } = frame;
  return step;
}

function dropKind(frame: Frame): Droppable | undefined {
  if ('picture' in frame && frame.picture) return 'picture';
  if (frame.kind !== 'json') return frame.kind;
  return frame.message.type === 'executed' ? 'executed' : undefined;
}

function progressStateIn(frame: Frame): V1Message | undefined {
  if (frame.kind === 'step') return frame.state;
  return frame.kind === 'json' && frame.message.type === 'progress_state'
    ? frame.message
    : undefined;
}

function bytesOf(frame: Frame): number {
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
