import type { V1Message } from '../wire/v1.ts';
import { type Frame, nodeIn } from './frame.ts';
import { encodeMessage } from './session.ts';

/** Frames of one prompt that no socket has received, in order. */
export type Backlog = {
  /** `at`: the place in the prompt's journal it comes from; `heard`: by a socket of another id. */
  keep(frame: Frame, at: number, by?: 'unheard' | 'heard'): void;
  /** One that is fetched only when a socket is about to come. */
  keepUnread(load: Load, at: number): void;
  /** Fetches what is not there yet. */
  read(): Promise<void>;
  /** What came up to this place has reached a socket elsewhere; tells the last node it named. */
  forget(upTo: number): Frame | undefined;
  /** Everything, to be sent now, and the place of the last. */
  empty(): Kept;
  /** The frames that no socket has heard, to be sent now; they stay for the sockets of their id. */
  hear(): Kept;
  /** Some socket has heard what came up to this place. */
  hearUpTo(at: number): void;
  /** Drops all that is not v1's word about a start, a node or an end. */
  shed(): void;
  readonly size: () => number;
  readonly bytes: () => number;
};

/** Frames in order, and the place of the last. */
export type Kept = { readonly frames: readonly Frame[]; readonly at: number };

export type Load = () => Promise<Frame | undefined>;

type Item = {
  readonly at: number;
  frame: Frame | undefined;
  load?: Load | undefined;
  bytes: number;
  isHeard: boolean;
};

/** Most bytes of undelivered frames kept of one prompt for a socket that may still come. */
const REPLAY_BYTES = 64 * 1024 * 1024;
/** From here on only the latest `progress_state` is kept: it names all nodes each time. */
const ALL_STATES_BYTES = 256 * 1024;
/** From here on only the latest of consecutive steps is kept for a late socket. */
const REPLAY_FRAMES = 2000;
/** Of one frame, beside what it says. */
const FRAME_BYTES = 200;

/** Kinds of frames in the order they are dropped when there is too much; no other is ever dropped. */
const DROP_ORDER = ['step', 'text', 'picture', 'executed'] as const;
type Droppable = (typeof DROP_ORDER)[number];

/** `onDrop`: something other than steps and states was dropped, for the first time since it was empty. */
export function createBacklog(onDrop: () => void = () => {}, mostBytes = REPLAY_BYTES): Backlog {
  let items: Item[] = [];
  let size = 0;
  let bytes = 0;
  let hasDropped = false;
  let states: Item[] = [];
  let droppable = noItems();

  function drop(item: Item): void {
    if (item.frame === undefined && item.load === undefined) return;
    bytes -= item.bytes;
    item.bytes = 0;
    item.frame = undefined;
    item.load = undefined;
    size--;
    if (items.length > 2 * size + REPLAY_FRAMES) items = items.filter(isKept);
  }

  function fill(item: Item, frame: Frame): void {
    item.frame = frame;
    item.bytes = bytesOf(frame);
    bytes += item.bytes;
    const kind = droppableAs(frame);
    if (kind) droppable[kind].push(item);
    if (stateIn(frame)) noteState(item);
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

  /** The step, where the frame before it was one too: that goes, what it told of the nodes stays. */
  function inPlaceOf(last: Item | undefined, frame: Frame): Frame {
    const before = last?.frame;
    if (frame.kind !== 'step' || before?.kind !== 'step' || !last || before.picture) return frame;
    drop(last);
    return frame.state || !before.state ? frame : { ...frame, state: before.state };
  }

  /** More than is needed, so that it is not done again for every frame. */
  function makeRoom(): void {
    if (bytes <= mostBytes) return;
    const wantedBytes = 0.9 * mostBytes;
    for (const kind of DROP_ORDER) {
      const queue = droppable[kind];
      let from = 0;
      // The latest step tells how far a node is.
      const most = kind === 'step' ? queue.length - 1 : queue.length;
      for (; bytes > wantedBytes && from < most; from++) {
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
    droppable = noItems();
    size = 0;
    bytes = 0;
    hasDropped = false;
  }

  return {
    keep(frame, at, by = 'unheard') {
      const worth = worthOf(frame);
      if (!worth) return;
      const item: Item = { at, frame: worth, bytes: 0, isHeard: by === 'heard' };
      const isFull = size >= REPLAY_FRAMES;
      const kept = isFull ? inPlaceOf(items.at(-1), worth) : worth;
      items.push(item);
      size++;
      fill(item, kept);
    },
    keepUnread(load, at) {
      items.push({ frame: undefined, at, load, bytes: 0, isHeard: false });
      size++;
    },
    async read() {
      for (const item of items.filter(({ load }) => load)) {
        const frame = await item.load?.();
        if (item.load === undefined) continue;
        item.load = undefined;
        const worth = frame && worthOf(frame);
        if (worth) fill(item, worth);
        else size--;
      }
    },
    forget(upTo) {
      if ((items[0]?.at ?? Infinity) > upTo) return undefined;
      const gone = items.filter(({ at }) => at <= upTo);
      const last = gone.findLast(({ frame }) => frame && nodeIn(frame) !== undefined)?.frame;
      for (const item of gone) drop(item);
      items = items.filter(({ at }) => at > upTo);
      return last;
    },
    empty() {
      const kept = items.filter(isKept);
      clear();
      return handedOver(kept);
    },
    hear() {
      const unheard = items.filter((item) => isKept(item) && !item.isHeard);
      for (const item of unheard) item.isHeard = true;
      return handedOver(unheard);
    },
    hearUpTo(upTo) {
      for (const item of items) if (item.at <= upTo) item.isHeard = true;
    },
    shed() {
      for (const item of items) {
        if (item.load || (item.frame && (droppableAs(item.frame) || stateIn(item.frame)))) {
          drop(item);
        }
      }
    },
    size: () => size,
    bytes: () => bytes,
  };
}

function handedOver(items: readonly Item[]): Kept {
  return { frames: items.flatMap(({ frame }) => frame ?? []), at: items.at(-1)?.at ?? 0 };
}

function noItems(): Record<Droppable, Item[]> {
  return { step: [], text: [], picture: [], executed: [] };
}

function isKept({ frame, load }: Item): boolean {
  return frame !== undefined || load !== undefined;
}

/** Without a preview: a late one is worth nothing; `undefined`: there is nothing else to it. */
function worthOf(frame: Frame): Frame | undefined {
  const isPreview =
    'picture' in frame && frame.picture !== undefined && frame.picture.kind !== 'result';
  if (!isPreview) return frame;
  if (frame.kind !== 'step') return undefined;
  const { picture: _, ...step } = frame;
  return step;
}

function droppableAs(frame: Frame): Droppable | undefined {
  if ('picture' in frame && frame.picture) return 'picture';
  if (frame.kind !== 'json') return frame.kind;
  return frame.message.type === 'executed' ? 'executed' : undefined;
}

function stateIn(frame: Frame): V1Message | undefined {
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
