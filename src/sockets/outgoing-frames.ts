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
  readonly #pendingStates = new Map<string, () => string>();
  #pendingPreview: { readonly promptId: string; readonly frame: Buffer } | undefined;
  #flushedAtMs: number;
  #lastTextAtMs: number;

  constructor({ ws, socket }: UpgradedSocket, options: OutgoingFramesOptions) {
    this.#ws = ws;
    this.#socket = socket;
    this.#options = options;
    this.#flushedAtMs = options.now();
    this.#lastTextAtMs = options.now();
  }

  get lastTextAtMs(): number {
    return this.#lastTextAtMs;
  }

  /** The bytes that the socket has not accepted yet, including a delayed preview. */
  pendingBytes(): number {
    return this.#ws.bufferedAmount + (this.#pendingPreview?.frame.length ?? 0);
  }

  sendText(text: string): void {
    this.#lastTextAtMs = this.#options.now();
    this.#send(text, this.#lastTextAtMs);
  }

  /** Sends a frame that must not be dropped: JSON, or a result. */
  sendBinary(frame: Buffer): void {
    this.#send(frame, this.#options.now());
  }

  #send(frame: OutgoingFrame, nowMs: number): void {
    const unsentBytes = this.#ws.bufferedAmount;
    if (unsentBytes === 0) this.#flushedAtMs = nowMs;
    const isStalled = unsentBytes > STALLED.bytes && nowMs - this.#flushedAtMs > STALLED.forMs;
    if (isStalled || unsentBytes > STALLED.maxBytes) return this.#ws.terminate();
    this.#write(frame);
  }

  /** Sends a preview when few bytes are pending; else the next one replaces it. */
  sendPreview(promptId: string, frame: Buffer): void {
    if (this.#ws.bufferedAmount <= PREVIEW_PENDING_BYTES) return this.#write(frame);
    this.#dropPendingPreview();
    this.#pendingPreview = { promptId, frame };
  }

  /** Sends the `progress_state` of a prompt when few bytes are pending. It is encoded only then. */
  sendState(promptId: string, frame: () => string): void {
    if (this.#ws.bufferedAmount > PREVIEW_PENDING_BYTES) this.#pendingStates.set(promptId, frame);
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

  /** Writes all frames of this tick now. */
  flush(): void {
    this.#socket.uncork();
  }

  #sendPending(): void {
    for (const [promptId, frame] of this.#pendingStates) {
      if (this.#ws.bufferedAmount > PREVIEW_PENDING_BYTES) return;
      this.#pendingStates.delete(promptId);
      this.sendText(frame());
    }
    if (!this.#pendingPreview || this.#ws.bufferedAmount > PREVIEW_PENDING_BYTES) return;
    const { frame } = this.#pendingPreview;
    this.#pendingPreview = undefined;
    this.#write(frame);
  }

  #dropPendingPreview(): void {
    if (this.#pendingPreview) this.#options.onDrop?.();
    this.#pendingPreview = undefined;
  }

  #write(frame: OutgoingFrame): void {
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
