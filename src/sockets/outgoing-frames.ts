import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';

/** While more bytes than this are pending for a socket, only the latest preview is kept. */
const PREVIEW_PENDING_BYTES = 256 * 1024;
/**
 * JSON and results are never dropped. A socket is closed when it accepts nothing for this long
 * while this much is pending, or when more than `maxBytes` are pending. The second limit is higher,
 * since a late socket gets a whole run at once.
 */
const STALLED = { bytes: 1024 * 1024, forMs: 30_000, maxBytes: 64 * 1024 * 1024 } as const;

/** More bytes than this are not kept until the tick ends: they would count as pending. */
const MAX_CORKED_BYTES = 16 * 1024;

/** A WebSocket after its 101 response. */
export type UpgradedSocket = {
  readonly ws: WebSocket;
  /** The connection below `ws`. */
  readonly socket: Duplex;
  /** How long after the 101 response the first frame is sent. Absent: at once. */
  readonly firstFrameDelayMs?: number;
};

type OutgoingFramesOptions = {
  readonly now: () => number;
  /** Called when a preview was dropped: a newer one or the end of its node came first. */
  readonly onDrop?: (() => void) | undefined;
  /** Called when frames are not delayed any more. */
  readonly onFirstSent?: (() => void) | undefined;
  /** Called with each frame that is written, while it is on. */
  readonly observer?:
    | { readonly isOn: () => boolean; readonly record: (payload: string | Buffer) => void }
    | undefined;
};

/**
 * The frames that are being sent to one socket: writes them, and delays those that a slow socket
 * can miss.
 */
export class OutgoingFrames {
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #options: OutgoingFramesOptions;
  readonly #firstFrames: FirstFrames | undefined;
  readonly #pendingStates = new Map<string, () => string>();
  #pendingPreview: { readonly promptId: string; readonly frame: Buffer } | undefined;
  #flushedAtMs: number;
  #lastTextAtMs: number;

  constructor({ ws, socket, firstFrameDelayMs }: UpgradedSocket, options: OutgoingFramesOptions) {
    this.#ws = ws;
    this.#socket = socket;
    this.#options = options;
    this.#flushedAtMs = options.now();
    this.#lastTextAtMs = options.now();
    this.#firstFrames =
      firstFrameDelayMs === undefined
        ? undefined
        : new FirstFrames((frame) => this.#writeNow(frame), {
            delayMs: firstFrameDelayMs,
            onEnd: options.onFirstSent,
          });
  }

  get lastTextAtMs(): number {
    return this.#lastTextAtMs;
  }

  /** True while the first frames are delayed. */
  isHolding(): boolean {
    return this.#firstFrames?.isHolding() ?? false;
  }

  /** The bytes that the socket has not accepted yet, including a delayed preview. */
  pendingBytes(): number {
    return this.#unsentBytes() + (this.#pendingPreview?.frame.length ?? 0);
  }

  sendText(text: string): void {
    this.#lastTextAtMs = this.#options.now();
    this.#send(text, this.#lastTextAtMs);
  }

  /** Sends a text that is made when it leaves, after the delay of a new socket. */
  sendCurrent(makeText: () => string): void {
    if (!this.#firstFrames?.hold(makeText)) this.sendText(makeText());
  }

  /** Sends a frame that must not be dropped: JSON, or a result. */
  sendBinary(frame: Buffer): void {
    this.#send(frame, this.#options.now());
  }

  #send(frame: OutgoingFrame, nowMs: number): void {
    const unsentBytes = this.#unsentBytes();
    if (unsentBytes === 0) this.#flushedAtMs = nowMs;
    const isStalled = unsentBytes > STALLED.bytes && nowMs - this.#flushedAtMs > STALLED.forMs;
    if (isStalled || unsentBytes > STALLED.maxBytes) return this.#ws.terminate();
    this.#write(frame);
  }

  /** Sends a preview when few bytes are pending; else the next one replaces it. */
  sendPreview(promptId: string, frame: Buffer): void {
    if (this.#unsentBytes() <= PREVIEW_PENDING_BYTES) return this.#write(frame);
    this.#dropPendingPreview();
    this.#pendingPreview = { promptId, frame };
  }

  /** Sends the `progress_state` of a prompt when few bytes are pending. It is encoded only then. */
  sendState(promptId: string, frame: () => string): void {
    if (this.#unsentBytes() > PREVIEW_PENDING_BYTES) this.#pendingStates.set(promptId, frame);
    else this.sendText(frame());
  }

  /** Sends a delayed `progress_state` in any case, because the prompt has ended. */
  flushState(promptId: string): void {
    const frame = this.#pendingStates.get(promptId);
    this.#pendingStates.delete(promptId);
    if (frame) this.sendText(frame());
  }

  /** Drops a delayed `progress_state` that is older than a step. A later one follows. */
  discardState(promptId: string): void {
    this.#pendingStates.delete(promptId);
  }

  /** Drops a delayed preview: its node has ended. */
  discardPreview(promptId: string): void {
    if (this.#pendingPreview?.promptId === promptId) this.#dropPendingPreview();
  }

  /** Writes delayed first frames, and all frames of this tick, now. */
  flush(): void {
    this.#firstFrames?.flush();
    this.#socket.uncork();
  }

  /** Drops all frames: the socket is gone. */
  discard(): void {
    this.#firstFrames?.discard();
  }

  #sendPending(): void {
    for (const [promptId, frame] of this.#pendingStates) {
      if (this.#unsentBytes() > PREVIEW_PENDING_BYTES) return;
      this.#pendingStates.delete(promptId);
      this.sendText(frame());
    }
    if (!this.#pendingPreview || this.#unsentBytes() > PREVIEW_PENDING_BYTES) return;
    const { frame } = this.#pendingPreview;
    this.#pendingPreview = undefined;
    this.#write(frame);
  }

  #dropPendingPreview(): void {
    if (this.#pendingPreview) this.#options.onDrop?.();
    this.#pendingPreview = undefined;
  }

  #unsentBytes(): number {
    return this.#ws.bufferedAmount + (this.#firstFrames?.bytes() ?? 0);
  }

  #write(frame: OutgoingFrame): void {
    if (!this.#firstFrames?.hold(frame)) this.#writeNow(frame);
  }

  #writeNow(frame: OutgoingFrame): void {
    const { observer } = this.#options;
    if (observer?.isOn()) observer.record(frame);
    this.#corkUntilTickEnds();
    this.#ws.send(frame, this.#onWritten);
    if (this.#ws.bufferedAmount > MAX_CORKED_BYTES) this.#socket.uncork();
  }

  /** A progress step is several small frames: one call of the system sends them all. */
  #corkUntilTickEnds(): void {
    if (this.#socket.writableCorked > 0) return;
    this.#socket.cork();
    process.nextTick(() => this.#socket.uncork());
  }

  readonly #onWritten = (): void => {
    this.#flushedAtMs = this.#options.now();
    this.#sendPending();
  };
}

/** A text frame or the bytes of a binary one. */
type OutgoingFrame = string | Buffer;

type WriteFrame = (frame: OutgoingFrame) => void;

/** A frame, or the function that makes it when it leaves. */
type Held = OutgoingFrame | (() => string);

type FirstFramesOptions = { readonly delayMs: number; readonly onEnd?: (() => void) | undefined };

/**
 * Delays the frames of a new socket until its 101 response has been read: some clients drop bytes
 * that arrive together with the 101. The first frame is sent alone, the rest in another turn of the
 * event loop.
 */
class FirstFrames {
  readonly #write: WriteFrame;
  readonly #onEnd: (() => void) | undefined;
  readonly #timer: NodeJS.Timeout;
  #held: Held[] | undefined = [];
  #bytes = 0;
  #rest: NodeJS.Immediate | undefined;

  constructor(write: WriteFrame, { delayMs, onEnd }: FirstFramesOptions) {
    this.#write = write;
    this.#onEnd = onEnd;
    this.#timer = setTimeout(() => this.#sendFirst(), delayMs).unref();
  }

  /**
   * Keeps the frame for later. `false`: frames are not delayed any more, so the caller writes it.
   */
  hold(frame: Held): boolean {
    if (this.#held === undefined) return false;
    this.#held.push(frame);
    this.#bytes += sizeOf(frame);
    return true;
  }

  isHolding(): boolean {
    return this.#held !== undefined;
  }

  /** The bytes of the delayed frames, which count as unsent bytes of the socket. */
  bytes(): number {
    return this.#bytes;
  }

  /** Writes all frames now. */
  flush(): void {
    const frames = this.#held ?? [];
    this.discard();
    for (const frame of frames) this.#writeHeld(frame);
  }

  /** Drops all frames: the socket is gone. */
  discard(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#rest);
    this.#held = undefined;
    this.#bytes = 0;
    this.#onEnd?.();
  }

  #sendFirst(): void {
    const first = this.#held?.shift();
    if (first) {
      this.#bytes -= sizeOf(first);
      this.#writeHeld(first);
    }
    this.#rest = setImmediate(() => this.flush());
  }

  #writeHeld(frame: Held): void {
    this.#write(typeof frame === 'function' ? frame() : frame);
  }
}

function sizeOf(frame: Held): number {
  return typeof frame === 'function' ? 0 : frame.length;
}
