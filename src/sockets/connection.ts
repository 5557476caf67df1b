import type { Duplex } from 'node:stream';
import { type RawData, WebSocket } from 'ws';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
  stringifyJson,
} from '../protocol/json.ts';
import type { V1Message } from '../protocol/v1.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { createFirstFrames } from './first-frames.ts';
import type { WireFrame } from './wire-frame.ts';

/** While more bytes than this are pending for a socket, only the latest preview is kept. */
const PREVIEW_PENDING_BYTES = 256 * 1024;
/** Up to this many pending bytes no preview is delayed, so writes need no callback. */
const UNTRACKED_BYTES = PREVIEW_PENDING_BYTES / 2;
/**
 * JSON and results are never dropped. A socket that accepts nothing for this long while this much
 * is pending is closed, and so is one with more pending bytes than `maxBytes`: a late socket gets a
 * whole run at once.
 */
const STALLED = { bytes: 1024 * 1024, forMs: 30_000, maxBytes: 64 * 1024 * 1024 } as const;
/** A client that sends more than 100 messages a second over five seconds is closed. */
const FLOOD = { messages: 500, windowMs: 5000 } as const;

const UNTRACKED_CHARS = 16 * 1024;

/** A connected socket: what it negotiated, and what it has not accepted yet. */
export type SocketConnection = {
  readonly user: string;
  readonly sid: string;
  /** Frames follow the socket's own dialect, whatever the dialect of the prompt. */
  readonly dialect: Dialect;
  /** The user agent of the program that opened it. */
  readonly agent: string;
  /** It watches all prompts of its user, and no frame counts as received by it. */
  readonly watches: boolean;
  /** A browser opened it. Browsers do not take every picture for a result, as some programs do. */
  readonly isBrowser: boolean;
  isOpen(): boolean;
  /** Negotiated `supports_preview_metadata`: previews go out as type 4. */
  wantsMetadata(): boolean;
  lastTextAtMs(): number;
  /** A text, or a frame encoded for several sockets. */
  sendText(text: string | WireFrame): void;
  /** Sends a picture that must not be dropped: a result. */
  sendBinary(frame: WireFrame): void;
  /** Sends a preview when few bytes are pending; else the next one replaces it. */
  sendPreview(promptId: string, frame: WireFrame): void;
  /** The same for the `progress_state` of a prompt, which is encoded only when it is sent. */
  sendState(promptId: string, frame: () => WireFrame): void;
  /** Sends a delayed `progress_state` in any case, because the prompt has ended. */
  flushState(promptId: string): void;
  /** Drops a delayed preview: its node has ended. */
  discardPreview(promptId: string): void;
  /** Bytes the socket has not accepted yet, with a delayed preview. */
  pendingBytes(): number;
  ping(): void;
  close(code: number): void;
};

type SocketConnectionOptions = {
  readonly user: string;
  readonly sid: string;
  readonly dialect: Dialect;
  readonly agent?: string;
  readonly watches?: boolean;
  readonly isBrowser?: boolean;
  readonly serverFlags: JsonObject;
  readonly now: () => number;
  readonly onClose: () => void;
  /** A preview was dropped: a newer one or the end of its node came first. */
  readonly onDrop?: () => void;
};

/** A WebSocket and its connection. Frames are also written to the connection directly. */
export type UpgradedSocket = {
  readonly ws: WebSocket;
  readonly socket: Duplex;
  /** How long after the 101 the first frame is sent. Absent: at once. */
  readonly firstFrameDelayMs?: number;
};

export function createSocketConnection(
  { ws, socket, firstFrameDelayMs }: UpgradedSocket,
  options: SocketConnectionOptions,
): SocketConnection {
  const { user, sid, dialect, agent = '', watches = false, isBrowser = false, now } = options;
  const negotiation = { open: true, metadata: false };
  const flood = { since: now(), count: 0 };
  let lastTextAtMs = now();
  let flushedAtMs = now();
  let pendingPreview: { promptId: string; frame: WireFrame } | undefined;
  const pendingStates = new Map<string, () => WireFrame>();
  const firstFrames =
    firstFrameDelayMs === undefined ? undefined : createFirstFrames(writeNow, firstFrameDelayMs);
  let isAlive = true;

  const connection: SocketConnection = {
    user,
    sid,
    dialect,
    agent,
    watches,
    isBrowser,
    isOpen: () => ws.readyState === WebSocket.OPEN,
    wantsMetadata: () => negotiation.metadata,
    lastTextAtMs: () => lastTextAtMs,
    sendText,
    sendBinary: send,
    sendPreview(promptId, frame) {
      const unsent = unsentBytes();
      if (unsent + frame.length <= UNTRACKED_BYTES) return write(frame);
      if (unsent <= PREVIEW_PENDING_BYTES) return write(frame, sendPending);
      dropPendingPreview();
      pendingPreview = { promptId, frame };
    },
    sendState(promptId, frame) {
      if (unsentBytes() > PREVIEW_PENDING_BYTES) pendingStates.set(promptId, frame);
      else sendText(frame());
    },
    flushState(promptId) {
      const frame = pendingStates.get(promptId);
      pendingStates.delete(promptId);
      if (frame) sendText(frame());
    },
    discardPreview(promptId) {
      if (pendingPreview?.promptId === promptId) dropPendingPreview();
    },
    pendingBytes: () => unsentBytes() + (pendingPreview?.frame.length ?? 0),
    ping() {
      if (firstFrames?.isHolding()) return;
      if (!isAlive) return ws.terminate();
      isAlive = false;
      ws.ping();
    },
    close,
  };

  function write(frame: string | WireFrame, done?: () => void): void {
    if (!firstFrames?.hold(frame, done)) writeNow(frame, done);
  }

  /** `ws` frames a message anew for each socket: a fifth of the cost of a broadcast. */
  function writeNow(frame: string | WireFrame, done?: () => void): void {
    if (typeof frame === 'string') return ws.send(frame, done);
    if (ws.readyState !== WebSocket.OPEN) return;
    const [first, second] = frame.pieces;
    if (second === undefined) return void socket.write(first, done);
    socket.cork();
    socket.write(first);
    socket.write(second, done);
    socket.uncork();
  }

  function unsentBytes(): number {
    return ws.bufferedAmount + (firstFrames?.bytes() ?? 0);
  }

  function sendText(text: string | WireFrame): void {
    lastTextAtMs = now();
    send(text);
  }

  function send(frame: string | WireFrame): void {
    const unsent = unsentBytes();
    if (unsent === 0) {
      flushedAtMs = now();
      // Too small to delay anything; a larger frame after it is tracked.
      if (frame.length < UNTRACKED_CHARS) return write(frame);
    }
    const isStalled = unsent > STALLED.bytes && now() - flushedAtMs > STALLED.forMs;
    if (isStalled || unsent > STALLED.maxBytes) return ws.terminate();
    write(frame, markFlushed);
  }

  function markFlushed(): void {
    flushedAtMs = now();
    sendPending();
  }

  function dropPendingPreview(): void {
    if (pendingPreview) options.onDrop?.();
    pendingPreview = undefined;
  }

  function sendPending(): void {
    for (const [promptId, frame] of pendingStates) {
      if (unsentBytes() > PREVIEW_PENDING_BYTES) return;
      pendingStates.delete(promptId);
      sendText(frame());
    }
    if (pendingPreview === undefined || unsentBytes() > PREVIEW_PENDING_BYTES) return;
    const { frame } = pendingPreview;
    pendingPreview = undefined;
    write(frame, sendPending);
  }

  function close(code: number): void {
    firstFrames?.flush();
    ws.close(code);
    setTimeout(() => ws.terminate(), 2000).unref();
  }

  /** In v1 the first decodable object decides; a frame that cannot be parsed does not count. */
  function negotiate(data: RawData): void {
    const message = decode(data);
    if (message === undefined || !negotiation.open) return;
    negotiation.open = false;
    if (message.type !== 'feature_flags') return;
    const flags = isJsonObject(message.data) ? message.data : {};
    // Only strict `true` counts on the v1 server.
    negotiation.metadata = flags.supports_preview_metadata === true;
    sendText(encodeMessage({ type: 'feature_flags', data: options.serverFlags }));
  }

  ws.on('message', (data, isBinary) => {
    isAlive = true;
    if (isFlooding(flood, now())) return close(1008);
    if (!isBinary) negotiate(data);
  });
  ws.on('pong', () => (isAlive = true));
  ws.on('error', ignoreError);
  ws.on('close', () => {
    firstFrames?.discard();
    options.onClose();
  });
  return connection;
}

/** `type` goes first on the wire: one client recognises frames by their first bytes. */
export function encodeMessage(message: V1Message): string {
  return stringifyJson({ type: message.type, data: message.data } as Json);
}

function decode(data: RawData): JsonObject | undefined {
  try {
    const value = parseJson(String(data as Buffer));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isFlooding(flood: { since: number; count: number }, nowMs: number): boolean {
  if (nowMs - flood.since > FLOOD.windowMs) {
    flood.since = nowMs;
    flood.count = 0;
  }
  return ++flood.count > FLOOD.messages;
}

function ignoreError(): void {}
