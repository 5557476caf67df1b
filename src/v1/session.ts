import type { Duplex } from 'node:stream';
import { type RawData, WebSocket } from 'ws';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
  stringifyJson,
} from '../wire/json.ts';
import type { V1Message } from '../wire/v1.ts';
import type { Dialect } from './dialect.ts';
import { createFirstFrames } from './first-frames.ts';
import type { Ready } from './ready.ts';

/** Previews are dropped, latest wins, while more than this many bytes wait for a socket. */
const PREVIEW_BACKLOG_BYTES = 256 * 1024;
/** While no more than this waits, nothing waits behind it that would have to be told. */
const UNWATCHED_BYTES = PREVIEW_BACKLOG_BYTES / 2;
/**
 * JSON and results are never dropped. A socket that swallows nothing for so long while so much waits
 * is hopeless and is closed, and so is one with more yet: a late one is handed a whole run at once.
 */
const HOPELESS = { bytes: 1024 * 1024, forMs: 30_000, most: 64 * 1024 * 1024 } as const;
/** A client that floods is closed: more than 100 messages a second over five seconds. */
const FLOOD = { messages: 500, windowMs: 5000 } as const;

const UNWATCHED_CHARS = 16 * 1024;

/** One connected socket: what it negotiated, and what it has not swallowed yet. */
export type Session = {
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
  sendText(text: string | Ready): void;
  /** A picture nobody may miss: a result, not a preview. */
  sendBinary(frame: Ready): void;
  /** Sent when there is room, else replaced by the next one. */
  sendPreview(promptId: string, frame: Ready): void;
  /** The same for a prompt's `progress_state`, which is written only once it is sent. */
  sendState(promptId: string, frame: () => Ready): void;
  /** One that waits is sent whether there is room or not: the prompt is over. */
  sendWaitingState(promptId: string): void;
  /** A preview still waiting belongs to a node that is over. */
  forgetPreview(promptId: string): void;
  /** What the socket has not swallowed yet, a preview that waits for room included. */
  backlogBytes(): number;
  ping(): void;
  close(code: number): void;
};

type Options = {
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
export type Connection = {
  readonly ws: WebSocket;
  readonly socket: Duplex;
  /** The 101 has just been written: the first frame leaves so much later. Absent: at once. */
  readonly holdMs?: number;
};

export function createSession({ ws, socket, holdMs }: Connection, options: Options): Session {
  const { user, sid, dialect, agent = '', watches = false, isBrowser = false, now } = options;
  const negotiation = { open: true, metadata: false };
  const flood = { since: now(), count: 0 };
  let lastTextAtMs = now();
  let swallowedAtMs = now();
  let waiting: { promptId: string; frame: Ready } | undefined;
  const states = new Map<string, () => Ready>();
  const firstFrames = holdMs === undefined ? undefined : createFirstFrames(writeNow, holdMs);
  let alive = true;

  const session: Session = {
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
      const waitingBytes = unsentBytes();
      if (waitingBytes + frame.length <= UNWATCHED_BYTES) return write(frame);
      if (waitingBytes <= PREVIEW_BACKLOG_BYTES) return write(frame, sendWaiting);
      dropWaiting();
      waiting = { promptId, frame };
    },
    sendState(promptId, frame) {
      if (unsentBytes() > PREVIEW_BACKLOG_BYTES) states.set(promptId, frame);
      else sendText(frame());
    },
    sendWaitingState(promptId) {
      const frame = states.get(promptId);
      states.delete(promptId);
      if (frame) sendText(frame());
    },
    forgetPreview(promptId) {
      if (waiting?.promptId === promptId) dropWaiting();
    },
    backlogBytes: () => unsentBytes() + (waiting?.frame.length ?? 0),
    ping() {
      if (firstFrames?.isHolding()) return;
      if (!alive) return ws.terminate();
      alive = false;
      ws.ping();
    },
    close,
  };

  function write(frame: string | Ready, done?: () => void): void {
    if (!firstFrames?.hold(frame, done)) writeNow(frame, done);
  }

  /** The library frames a message anew for each socket: a fifth of what one to many costs. */
  function writeNow(frame: string | Ready, done?: () => void): void {
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

  function sendText(text: string | Ready): void {
    lastTextAtMs = now();
    send(text);
  }

  function send(frame: string | Ready): void {
    const waitingBytes = unsentBytes();
    if (waitingBytes === 0) {
      swallowedAtMs = now();
      // Too little for anybody to wait behind; whatever follows it unswallowed is watched.
      if (frame.length < UNWATCHED_CHARS) return write(frame);
    }
    const isStuck = waitingBytes > HOPELESS.bytes && now() - swallowedAtMs > HOPELESS.forMs;
    if (isStuck || waitingBytes > HOPELESS.most) return ws.terminate();
    write(frame, noteSwallowed);
  }

  function noteSwallowed(): void {
    swallowedAtMs = now();
    sendWaiting();
  }

  function dropWaiting(): void {
    if (waiting) options.onDrop?.();
    waiting = undefined;
  }

  function sendWaiting(): void {
    for (const [promptId, frame] of states) {
      if (unsentBytes() > PREVIEW_BACKLOG_BYTES) return;
      states.delete(promptId);
      sendText(frame());
    }
    if (waiting === undefined || unsentBytes() > PREVIEW_BACKLOG_BYTES) return;
    const { frame } = waiting;
    waiting = undefined;
    write(frame, sendWaiting);
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
    alive = true;
    if (isFlooding(flood, now())) return close(1008);
    if (!isBinary) negotiate(data);
  });
  ws.on('pong', () => (alive = true));
  ws.on('error', ignore);
  ws.on('close', () => {
    firstFrames?.drop();
    options.onClose();
  });
  return session;
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

function ignore(): void {}
