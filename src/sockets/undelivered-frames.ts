import { encodeMessage } from './connection.ts';
import { type Frame, activeNodeIn } from './frame.ts';

/** Frames in order, and the position of the last frame. */
type FrameBatch = { readonly frames: readonly Frame[]; readonly position: number };

export type FrameLoader = () => Promise<Frame | undefined>;

type Item = {
  readonly position: number;
  /** Absent until it is loaded. */
  frame?: Frame | undefined;
  loader?: FrameLoader | undefined;
  bytes: number;
  isSent: boolean;
};

/** Maximum bytes of undelivered frames of one prompt. */
const MAX_REPLAY_BYTES = 64 * 1024 * 1024;
/** When so many bytes were added, earlier states are dropped, since each one names all nodes. */
const THIN_AFTER_BYTES = 256 * 1024;
/** From this count on, only the latest step is kept. */
const MANY_FRAMES = 2000;
/** The assumed bytes of one frame besides its content. */
const FRAME_BYTES = 200;

/** The item of each frame. One map for all prompts, of which thousands wait. */
const itemOf = new WeakMap<Frame, Item>();

/** The frames of one prompt that a socket may still have to receive, in order. */
export class UndeliveredFrames {
  readonly #onDrop: () => void;
  readonly #maxBytes: number;
  #items: Item[] = [];
  #bytes = 0;
  #unthinnedBytes = 0;

  /** `onDrop` is called when the details of the prompt are dropped because they are too many. */
  constructor(onDrop: () => void = () => {}, maxBytes = MAX_REPLAY_BYTES) {
    this.#onDrop = onDrop;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#items.length;
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
    const item: Item = { position, bytes: 0, isSent: state === 'sent' };
    this.#items.push(item);
    itemOf.set(frame, item);
    this.#fill(item, content);
  }

  /**
   * True when a frame that was added is still here; `unsent`: and no socket got it. Also true for
   * a preview, which is never added: sent before the frames that are here, it would be out of order.
   */
  covers(frame: Frame, among: 'all' | 'unsent'): boolean {
    if (withoutPreview(frame) === undefined) return true;
    const item = itemOf.get(frame);
    return item !== undefined && this.#items.includes(item) && (among === 'all' || !item.isSent);
  }

  /** Adds a frame that is loaded only when a socket is about to connect. */
  addLazy(loader: FrameLoader, position: number): void {
    this.#items.push({ position, loader, bytes: 0, isSent: false });
  }

  /** True when frames that were added with a loader are not loaded. */
  hasUnloaded(): boolean {
    return this.#items.some(({ loader }) => loader);
  }

  /** Loads the frames that were added with a loader, including those that are added meanwhile. */
  async loadAll(): Promise<void> {
    for (;;) {
      const item = this.#items.find(({ loader }) => loader);
      if (item === undefined) return;
      await this.#load(item);
    }
  }

  /**
   * Removes frames up to this position: a socket of another process has them. Returns the last
   * frame that named the running node.
   */
  discardUpTo(upTo: number): Frame | undefined {
    const discarded = this.#items.filter(({ position }) => position <= upTo);
    this.#keep(({ position }) => position > upTo);
    return discarded.findLast(({ frame }) => frame && activeNodeIn(frame) !== undefined)?.frame;
  }

  /** Removes and returns all frames, with the position of the last frame. */
  takeAll(): FrameBatch {
    const batch = toBatch(this.#items);
    this.#keep(() => false);
    return batch;
  }

  /** Returns the frames no socket got. They stay for the sockets of the prompt's client id. */
  takeUnsent(): FrameBatch {
    const unsent = this.#items.filter(({ isSent }) => !isSent);
    for (const item of unsent) item.isSent = true;
    return toBatch(unsent);
  }

  /** Marks frames up to this position as sent to some socket. */
  markSentUpTo(upTo: number): void {
    for (const item of this.#items) if (item.position <= upTo) item.isSent = true;
  }

  /** Drops all frames but starts, running nodes and ends. */
  dropDetails(): void {
    this.#keep(({ frame }) => frame !== undefined && !isDetail(frame));
  }

  async #load(item: Item): Promise<void> {
    const frame = await item.loader?.();
    item.loader = undefined;
    if (!this.#items.includes(item)) return;
    const content = frame && withoutPreview(frame);
    if (content) this.#fill(item, content);
    else this.#keep((each) => each !== item);
  }

  #fill(item: Item, frame: Frame): void {
    item.frame = frame;
    item.bytes = frameBytes(frame);
    this.#bytes += item.bytes;
    this.#unthinnedBytes += item.bytes;
    if (this.#unthinnedBytes > THIN_AFTER_BYTES) this.#thin();
    if (this.#bytes <= this.#maxBytes) return;
    this.dropDetails();
    this.#onDrop();
  }

  /** Drops the states but the latest one, and the steps but the latest when there are many. */
  #thin(): void {
    const lastState = this.#items.findLast(({ frame }) => frame && hasState(frame));
    const lastStep = this.#items.findLast(({ frame }) => frame?.kind === 'step');
    for (const item of this.#items) {
      if (item === lastState || !item.frame || !hasState(item.frame)) continue;
      item.frame = withoutState(item.frame);
      item.bytes = item.frame ? frameBytes(item.frame) : 0;
    }
    const hasMany = this.#items.length > MANY_FRAMES;
    this.#keep((item) => {
      const { frame, loader } = item;
      if (item === lastStep || item === lastState || loader) return true;
      return frame !== undefined && !(hasMany && frame.kind === 'step' && !frame.picture);
    });
  }

  #keep(isKept: (item: Item) => boolean): void {
    this.#items = this.#items.filter(isKept);
    this.#bytes = this.#items.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#unthinnedBytes = 0;
  }
}

/** Removes a preview, which is worthless when late. `undefined`: nothing else is in the frame. */
function withoutPreview(frame: Frame): Frame | undefined {
  if (!('picture' in frame) || !frame.picture || frame.picture.kind === 'result') return frame;
  if (frame.kind === 'picture') return undefined;
  const { picture: _, ...step } = frame;
  return step;
}

function hasState(frame: Frame): boolean {
  if (frame.kind === 'step') return frame.state !== undefined;
  return frame.kind === 'json' && frame.message.type === 'progress_state';
}

/** Removes the state. `undefined`: nothing else is in the frame. */
function withoutState(frame: Frame): Frame | undefined {
  if (frame.kind !== 'step') return undefined;
  const { state: _, ...step } = frame;
  return step;
}

function isDetail(frame: Frame): boolean {
  return frame.kind !== 'json' || ['progress_state', 'executed'].includes(frame.message.type);
}

/** Bytes that a kept frame counts for. */
function frameBytes(frame: Frame): number {
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

function toBatch(items: readonly Item[]): FrameBatch {
  return {
    frames: items.flatMap(({ frame }) => frame ?? []),
    position: items.at(-1)?.position ?? 0,
  };
}
