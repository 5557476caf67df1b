import { WebSocket } from 'ws';
import type { Dialect } from '../dialects/dialect.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseObject,
  stringifyJson,
} from '../protocol/json.ts';
import { toPythonText } from '../protocol/python-json-text.ts';
import type { FrameObserver } from '../observability/traffic-log.ts';
import type { V1Message } from '../protocol/v1.ts';
import { DelayedStart, type FirstSteps } from './delayed-start.ts';
import { OutgoingFrames, type UpgradedSocket } from './outgoing-frames.ts';

export type { UpgradedSocket } from './outgoing-frames.ts';

/** A client that sends more than 100 messages a second over five seconds is closed. */
const FLOOD = { messages: 500, windowMs: 5000 } as const;
/**
 * The longest message that is read, and the part of a longer one that is logged or recorded.
 * Negotiations are short, and reading a JSON text of 4 MiB may take a second.
 */
const MAX_READ_BYTES = 16 * 1024;
/** Time for the closing handshake. */
const CLOSE_TIMEOUT_MS = 2000;

/**
 * The user and program that opened a socket. `/ws?watch=1` watches: it gets every prompt of its
 * user.
 */
export type SocketOpener = {
  readonly user: string;
  readonly dialect: Dialect;
  readonly agent?: string;
  readonly watches?: boolean;
  readonly isBrowser?: boolean;
  /** True when the client need not answer pings. */
  readonly mayBeSilent?: boolean;
};

type SocketConnectionOptions = {
  readonly serverFlags: JsonObject;
  readonly now: () => number;
  readonly onClose: () => void;
  /** Called when a preview was dropped: a newer one or the end of its node came first. */
  readonly onDrop?: () => void;
  /** Called with each text frame that comes in and each frame that goes out, while it is on. */
  readonly frameObserver?: FrameObserver | undefined;
};

/** A connected socket: what it has negotiated, and the frames that are being sent to it. */
export class SocketConnection extends OutgoingFrames {
  readonly user: string;
  readonly sid: string;
  /**
   * The dialect of the socket. It decides the form of frames, whatever the dialect of the prompt.
   */
  readonly dialect: Dialect;
  /** The user agent of the program that opened it. */
  readonly agent: string;
  /** True when it watches all prompts of its user. No frame counts as received by such a socket. */
  readonly watches: boolean;
  /**
   * True when a browser opened it. Some programs take every picture for a result; browsers do not.
   */
  readonly isBrowser: boolean;
  readonly #ws: WebSocket;
  readonly #options: SocketConnectionOptions;
  readonly #mayBeSilent: boolean;
  #start: DelayedStart | undefined;
  /** The writes of frames that were due while this socket was new, in order. */
  readonly #missed: (() => void)[] = [];
  readonly #flood: { sinceMs: number; count: number };
  #negotiation: 'open' | 'without metadata' | 'with metadata' = 'open';
  #pingsWithoutAnswer = 0;
  #lastPingAtMs: number;

  constructor(
    upgraded: UpgradedSocket,
    opener: SocketOpener & { readonly sid: string },
    options: SocketConnectionOptions,
  ) {
    const { user, sid, dialect, agent = '', watches = false, isBrowser = false } = opener;
    const { now, onDrop, frameObserver } = options;
    super(upgraded, {
      now,
      onDrop,
      observer: frameObserver && {
        isOn: frameObserver.isOn,
        record: (payload) =>
          frameObserver.record({ direction: 'out', user, sid, payload, watches }),
      },
    });
    this.user = user;
    this.sid = sid;
    this.dialect = dialect;
    this.agent = agent;
    this.watches = watches;
    this.isBrowser = isBrowser;
    this.#ws = upgraded.ws;
    this.#options = options;
    this.#mayBeSilent = opener.mayBeSilent ?? false;
    this.#flood = { sinceMs: now(), count: 0 };
    this.#lastPingAtMs = now();
    this.#listen();
  }

  isOpen(): boolean {
    return this.#ws.readyState === WebSocket.OPEN;
  }

  /**
   * True when frames can be written. A new socket receives none at first: if its client closes it
   * then, the next one gets them.
   */
  isReceiving(): boolean {
    return this.isOpen() && this.#start === undefined;
  }

  /** Writes now, or as soon as a new socket receives frames. */
  whenReceiving(write: () => void): void {
    if (this.isReceiving()) write();
    else if (this.isOpen()) this.#missed.push(write);
  }

  /** Takes the first steps of a new socket: at once, or after the delay. */
  start(delayMs: number | undefined, { first, rest }: FirstSteps): void {
    const receive = (): void => {
      this.#start = undefined;
      for (const write of this.#missed.splice(0)) write();
      rest();
    };
    this.#start = new DelayedStart(delayMs ?? 0, { first, rest: receive });
    if (delayMs === undefined) this.startNow();
  }

  /** Ends the delay: the client has read its 101 response. */
  startNow(): void {
    this.#start?.endNow();
  }

  /**
   * True when the client has negotiated `supports_preview_metadata`: it gets previews as type 4.
   */
  wantsMetadata(): boolean {
    return this.#negotiation === 'with metadata';
  }

  /** The time of the last ping, or of the connection. */
  get lastPingAtMs(): number {
    return this.#lastPingAtMs;
  }

  /**
   * Pings the client, which keeps proxies from closing the connection. Closes a socket that left
   * the last ping unanswered, unless its client may be silent.
   */
  ping(): void {
    if (this.#start) return;
    this.#lastPingAtMs = this.#options.now();
    if (this.#pingsWithoutAnswer > 0 && !this.#mayBeSilent) return this.#ws.terminate();
    this.#pingsWithoutAnswer += 1;
    this.#ws.ping();
  }

  /**
   * True when a client that need not answer left a whole interval of pings unanswered. Such a
   * client may be gone, or may not wait for a prompt.
   */
  isSilent(): boolean {
    return this.#pingsWithoutAnswer > 1;
  }

  close(code: number): void {
    this.startNow();
    this.flush();
    this.#ws.close(code);
    setTimeout(() => this.#ws.terminate(), CLOSE_TIMEOUT_MS).unref();
  }

  /** Sends the close frame and does not wait for an answer. */
  closeAtOnce(code: number): void {
    this.close(code);
    this.#ws.terminate();
  }

  #listen(): void {
    this.#ws.on('message', (data, isBinary) => {
      this.#pingsWithoutAnswer = 0;
      this.startNow();
      if (isFlooding(this.#flood, this.#options.now())) return this.close(1008);
      if (isBinary) return;
      this.#observe(data as Buffer);
      this.#negotiate(data as Buffer);
    });
    this.#ws.on('pong', () => (this.#pingsWithoutAnswer = 0));
    this.#ws.on('error', () => {});
    this.#ws.on('close', () => {
      this.#start?.cancel();
      this.#options.onClose();
    });
  }

  #observe(data: Buffer): void {
    const { user, sid, watches } = this;
    const { frameObserver } = this.#options;
    if (!frameObserver?.isOn()) return;
    const isLong = data.length > MAX_READ_BYTES;
    frameObserver.record({
      direction: 'in',
      user,
      sid,
      payload: String(isLong ? data.subarray(0, MAX_READ_BYTES) : data),
      ...(isLong && { totalBytes: data.length }),
      watches,
    });
  }

  /**
   * Reads a negotiation. In v1 the first object that can be decoded decides; other frames do not
   * count.
   */
  #negotiate(data: Buffer): void {
    const isRead = this.#negotiation === 'open' && data.length <= MAX_READ_BYTES;
    const message = isRead ? parseObject(String(data)) : undefined;
    if (message === undefined) return;
    this.#negotiation = 'without metadata';
    if (message.type !== 'feature_flags') return;
    const flags = isJsonObject(message.data) ? message.data : {};
    // Only strict `true` counts on the v1 server.
    if (flags.supports_preview_metadata === true) this.#negotiation = 'with metadata';
    this.sendText(encodeMessage({ type: 'feature_flags', data: this.#options.serverFlags }));
  }
}

/** `type` goes first on the wire: one client recognises frames by their first bytes. */
export function encodeMessage(message: V1Message): string {
  return toPythonText(stringifyJson({ type: message.type, data: message.data } as Json));
}

function isFlooding(flood: { sinceMs: number; count: number }, nowMs: number): boolean {
  if (nowMs - flood.sinceMs > FLOOD.windowMs) {
    flood.sinceMs = nowMs;
    flood.count = 0;
  }
  return ++flood.count > FLOOD.messages;
}
