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

/** Previews are dropped, latest wins, while more than this many bytes wait for a socket. */
const PREVIEW_PENDING_BYTES = 256 * 1024;
/** While no more than this waits, nothing waits behind it that would have to be told. */
const UNTRACKED_BYTES = PREVIEW_PENDING_BYTES / 2;
/**
 * JSON and results are never dropped. A socket that swallows nothing for so long while so much waits
 * is hopeless and is closed, and so is one with more yet: a late one is handed a whole run at once.
 */
const STALLED = { bytes: 1024 * 1024, forMs: 30_000, maxBytes: 64 * 1024 * 1024 } as const;
/** A client that floods is closed: more than 100 messages a second over five seconds. */
const FLOOD = { messages: 500, windowMs: 5000 } as const;

const UNTRACKED_CHARS = 16 * 1024;

/** One connected socket: what it negotiated, and what it has not swallowed yet. */
export type SocketConnection = {
  readonly user: string;
  readonly sid: string;
  /** What it is sent goes by its own form, whatever form the prompts had. */
  readonly dialect: Dialect;
  /** The program that opened it, as it calls itself. */
  readonly agent: string;
  /** It looks on at all prompts of its user, and nothing counts as received by it. */
  readonly watches: boolean;
  /** A browser opened it: programs that take every picture for a result are none. */
  readonly isBrowser: boolean;
  isOpen(): boolean;
  /** Negotiated `supports_preview_metadata`: previews go out as type 4. */
  wantsMetadata(): boolean;
  lastTextAtMs(): number;
  /** As it is, or ready for several sockets. */
  sendText(text: string | WireFrame): void;
  /** A picture nobody may miss: a result, not a preview. */
  sendBinary(frame: WireFrame): void;
  /** Sent when there is room, else replaced by the next one. */
  sendPreview(promptId: string, frame: WireFrame): void;
  /** The same for a prompt's `progress_state`, which is written only once it is sent. */
  sendState(promptId: string, frame: () => WireFrame): void;
  /** One that waits is sent whether there is room or not: the prompt is over. */
  flushState(promptId: string): void;
  /** A preview still waiting belongs to a node that is over. */
  discardPreview(promptId: string): void;
  /** What the socket has not swallowed yet, a preview that waits for room included. */
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
  /** A preview will never be sent: a newer one or the end of its node came first. */
  readonly onDrop?: () => void;
};

/** A WebSocket and the connection it was made of; the library writes there at once, and so may we. */
export type UpgradedSocket = {
  readonly ws: WebSocket;
  readonly socket: Duplex;
  /** The 101 has just been written: the first frame leaves so much later. Absent: at once. */
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

  /** The library frames a message anew for each socket: a fifth of what one to many costs. */
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
      // Too little for anybody to wait behind; whatever follows it unswallowed is watched.
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

  /** v1 lets the first decodable object decide; a frame that does not parse does not use up the chance. */
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
