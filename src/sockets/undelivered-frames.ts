import {
  DROP_ORDER,
  type DropKind,
  frameBytes,
  dropKindOf,
  progressStateIn,
  withoutPreview,
} from './frame-cost.ts';
import { type Frame, activeNodeIn } from './frame.ts';

/** Frames in order, and the position of the last frame. */
export type FrameBatch = { readonly frames: readonly Frame[]; readonly position: number };

export type FrameLoader = () => Promise<Frame | undefined>;

type Item = {
  readonly position: number;
  frame: Frame | undefined;
  loader?: FrameLoader | undefined;
  bytes: number;
  isSent: boolean;
};

/** Maximum bytes of undelivered frames of one prompt. */
const MAX_REPLAY_BYTES = 64 * 1024 * 1024;
/** From this size on, only the latest `progress_state` is kept, since each one names all nodes. */
const ALL_STATES_BYTES = 256 * 1024;
/** From this count on, only the latest of consecutive steps is kept. */
const REPLAY_FRAMES = 2000;

/** The frames of one prompt that a socket may still have to receive, in order. */
export class UndeliveredFrames {
  readonly #onDrop: () => void;
  readonly #maxBytes: number;
  #items: Item[] = [];
  #states: Item[] = [];
  /** Created when the first frame is kept: thousands of prompts have no frames yet. */
  #droppable: Record<DropKind, Item[]> | undefined;
  #size = 0;
  #bytes = 0;
  #hasDropped = false;

  /**
   * `onDrop` is called when a frame other than a step or state is dropped. After that it is not
   * called until the list is empty.
   */
  constructor(onDrop: () => void = () => {}, maxBytes = MAX_REPLAY_BYTES) {
    this.#onDrop = onDrop;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds a frame. `position`: its place in the prompt's event log. `sent`: a socket with another id
   * got it.
   */
  add(frame: Frame, position: number, state: 'unsent' | 'sent' = 'unsent'): void {
    const content = withoutPreview(frame);
    if (!content) return;
    const item: Item = { position, frame: content, bytes: 0, isSent: state === 'sent' };
    const isFull = this.#size >= REPLAY_FRAMES;
    const merged = isFull ? this.#mergeStep(this.#items.at(-1), content) : content;
    this.#items.push(item);
    this.#size++;
    this.#fill(item, merged);
  }

  /** Adds a frame that is loaded only when a socket is about to connect. */
  addLazy(loader: FrameLoader, position: number): void {
    this.#items.push({ frame: undefined, position, loader, bytes: 0, isSent: false });
    this.#size++;
  }

  /** True when frames that were added with a loader are not loaded. */
  hasUnloaded(): boolean {
    return this.#unloaded().length > 0;
  }

  /** Loads the frames that were added with a loader, including those that are added meanwhile. */
  async loadAll(): Promise<void> {
    for (let some = this.#unloaded(); some.length > 0; some = this.#unloaded())
      for (const item of some) await this.#load(item);
  }

  /**
   * Removes frames up to this position: a socket of another process has them. Returns the last
   * frame that named the running node.
   */
  discardUpTo(upTo: number): Frame | undefined {
    if ((this.#items[0]?.position ?? Infinity) > upTo) return undefined;
    const discarded = this.#items.filter(({ position }) => position <= upTo);
    const last = discarded.findLast(({ frame }) => frame && activeNodeIn(frame) !== undefined);
    const lastFrame = last?.frame;
    for (const item of discarded) this.#drop(item);
    this.#items = this.#items.filter(({ position }) => position > upTo);
    return lastFrame;
  }

  /** Removes and returns all frames, with the position of the last frame. */
  takeAll(): FrameBatch {
    const items = this.#items.filter(hasContent);
    this.#items = [];
    this.#states = [];
    this.#droppable = undefined;
    this.#size = 0;
    this.#bytes = 0;
    this.#hasDropped = false;
    return toBatch(items);
  }

  /** Returns the frames no socket got. They stay for the sockets of the prompt's client id. */
  takeUnsent(): FrameBatch {
    const unsent = this.#items.filter((item) => hasContent(item) && !item.isSent);
    for (const item of unsent) item.isSent = true;
    return toBatch(unsent);
  }

  /** Marks frames up to this position as sent to some socket. */
  markSentUpTo(upTo: number): void {
    for (const item of this.#items) if (item.position <= upTo) item.isSent = true;
  }

  /** Drops all frames but starts, running nodes and ends. */
  dropDetails(): void {
    for (const item of this.#items) {
      const isDetail = item.frame && (dropKindOf(item.frame) || progressStateIn(item.frame));
      if (item.loader || isDetail) this.#drop(item);
    }
  }

  #unloaded(): readonly Item[] {
    return this.#items.filter(({ loader }) => loader);
  }

  async #load(item: Item): Promise<void> {
    const frame = await item.loader?.();
    if (item.loader === undefined) return;
    item.loader = undefined;
    const content = frame && withoutPreview(frame);
    if (content) this.#fill(item, content);
    else this.#size--;
  }

  #drop(item: Item): void {
    if (!hasContent(item)) return;
    this.#bytes -= item.bytes;
    item.bytes = 0;
    item.frame = undefined;
    item.loader = undefined;
    this.#size--;
    if (this.#items.length > 2 * this.#size + REPLAY_FRAMES) {
      this.#items = this.#items.filter(hasContent);
    }
  }

  #fill(item: Item, frame: Frame): void {
    this.#setFrame(item, frame);
    const kind = dropKindOf(frame);
    if (kind) (this.#droppable ??= emptyQueues())[kind].push(item);
    if (progressStateIn(frame)) this.#noteState(item);
    this.#makeSpace();
  }

  #setFrame(item: Item, frame: Frame): void {
    this.#bytes -= item.bytes;
    item.frame = frame;
    item.bytes = frameBytes(frame);
    this.#bytes += item.bytes;
  }

  #noteState(item: Item): void {
    if (this.#bytes > ALL_STATES_BYTES) {
      for (const older of this.#states.splice(0)) this.#dropState(older);
    }
    this.#states.push(item);
  }

  #dropState(item: Item): void {
    const { frame } = item;
    if (frame?.kind !== 'step') return this.#drop(item);
    const { state: _, ...step } = frame;
    this.#setFrame(item, step);
  }

  /**
   * Replaces the previous frame when both are steps. A new step without a `progress_state` gets
   * that of the previous step.
   */
  #mergeStep(last: Item | undefined, frame: Frame): Frame {
    const before = last?.frame;
    if (frame.kind !== 'step' || before?.kind !== 'step' || !last || before.picture) return frame;
    this.#drop(last);
    return frame.state || !before.state ? frame : { ...frame, state: before.state };
  }

  /** Frees more than is needed, so that it does not run again for every frame. */
  #makeSpace(): void {
    if (this.#bytes <= this.#maxBytes) return;
    const targetBytes = 0.9 * this.#maxBytes;
    for (const kind of DROP_ORDER) this.#dropUntil(targetBytes, kind);
  }

  #dropUntil(targetBytes: number, kind: DropKind): void {
    const queues = (this.#droppable ??= emptyQueues());
    const queue = queues[kind];
    // The latest step tells the progress of the node.
    const limit = kind === 'step' ? queue.length - 1 : queue.length;
    let from = 0;
    for (; this.#bytes > targetBytes && from < limit; from++) {
      const item = queue[from];
      if (kind !== 'step' && item?.frame) this.#noteDropped();
      if (item) this.#drop(item);
    }
    if (from > 0) queues[kind] = queue.slice(from);
  }

  #noteDropped(): void {
    if (!this.#hasDropped) this.#onDrop();
    this.#hasDropped = true;
  }
}

function toBatch(items: readonly Item[]): FrameBatch {
  return {
    frames: items.flatMap(({ frame }) => frame ?? []),
    position: items.at(-1)?.position ?? 0,
  };
}

function emptyQueues(): Record<DropKind, Item[]> {
  return { step: [], text: [], picture: [], executed: [] };
}

function hasContent({ frame, loader }: Item): boolean {
  return frame !== undefined || loader !== undefined;
}
