import { randomBytes } from 'node:crypto';
import { rulesOf } from '../dialects/dialect.ts';
import { monotonicNow } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { FrameObserver } from '../observability/traffic-log.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { V1Message } from '../protocol/v1.ts';
import { ByUser } from './by-user.ts';
import {
  SocketConnection,
  type SocketOpener,
  type UpgradedSocket,
  encodeMessage,
} from './connection.ts';
import { frameScopeFor } from './frame-scope.ts';
import { OpenChannels } from './open-channels.ts';
import type { PreviewMethod } from './preview-method.ts';

/**
 * One client gives up after ten seconds without a text frame. A socket of a user with live prompts
 * that got no text frame for this long gets a status message at the next check: at most 8 s after
 * the last frame on a busy machine, as row `keepalive` of `differences.md` says.
 */
const STATUS_KEEP_ALIVE_MS = 7000;
/**
 * The interval of pings, and the time to answer one. Simple clients take a ping for a message, so a
 * short session must get none. Row `keepalive` names this time, too.
 */
const PING_INTERVAL_MS = 30_000;
/** How often keep-alives and pings are checked. */
const CHECK_MS = 500;
const NORMAL_CLOSURE = 1000;

export type NewConnection = SocketOpener & {
  readonly clientId: string | null;
  /** A text for clients that connect now. */
  readonly notice?: string | undefined;
};

/** A new socket that needs room, and the limit that is reached. */
type RoomNeeded = {
  readonly user: string;
  readonly clientId: string | null;
  readonly where: 'user' | 'server';
};

/**
 * Sends each client the text that `textFor` returns for it; `undefined`: no text for this client.
 */
export type NotifyClients = (
  textFor: (client: { readonly user: string; readonly agent: string }) => string | undefined,
) => void;

export type HubOptions = {
  /** Returns `queue_remaining` of this user. */
  readonly remaining: (user: string) => number;
  readonly serverFlags: JsonObject;
  readonly previewMethod: PreviewMethod;
  readonly now?: () => number;
  /** Called when the first socket of a user has connected, or the last one has disconnected. */
  readonly onPresenceChange?: (user: string, isThere: boolean) => void;
  readonly log?: Logger;
  readonly maxReplayBytes?: number;
  /** Called with each frame of each socket, while it is on. */
  readonly frameObserver?: FrameObserver | undefined;
};

/** All WebSockets of all users, and the channels of their prompts. */
export class Hub {
  readonly channels: OpenChannels;
  readonly #options: HubOptions;
  readonly #now: () => number;
  readonly #connections = new ByUser<SocketConnection>();
  /** The sockets that receive no frames yet. */
  readonly #newConnections = new ByUser<SocketConnection>();
  readonly #timer: NodeJS.Timeout;
  #droppedFrames = 0;
  #isClosed = false;

  constructor(options: HubOptions) {
    this.#options = options;
    this.#now = options.now ?? monotonicNow;
    this.channels = new OpenChannels({
      connectionsOf: (user) => this.#connections.of(user),
      previewMethod: options.previewMethod,
      maxReplayBytes: options.maxReplayBytes,
      log: options.log,
    });
    this.#timer = setInterval(() => {
      this.#keepAlive();
      this.#pingThoseDue();
    }, CHECK_MS).unref();
  }

  /** Takes over an upgraded socket. An absent or empty `clientId` gets a new id. */
  addConnection(
    upgraded: UpgradedSocket,
    { user, clientId, notice, ...traits }: NewConnection,
  ): void {
    // v1 makes ids of 32 hex characters without dashes.
    const sid = clientId || randomBytes(16).toString('hex');
    const connection: SocketConnection = new SocketConnection(
      upgraded,
      { user, sid, ...traits },
      {
        serverFlags: this.#options.serverFlags,
        frameObserver: this.#options.frameObserver,
        now: this.#now,
        onClose: () => this.#removeConnection(user, connection),
        onDrop: () => this.#droppedFrames++,
      },
    );
    if (!this.#connections.has(user)) this.#options.onPresenceChange?.(user, true);
    this.#connections.add(user, connection);
    this.#newConnections.add(user, connection);
    let told: string;
    connection.start(upgraded.firstFrameDelayMs, {
      first: () => {
        told = this.#statusText(user);
        connection.sendText(this.#statusText(user, sid));
      },
      rest: () => {
        this.#newConnections.delete(user, connection);
        if (notice !== undefined) sendNotification(connection, notice);
        this.channels.replayTo(connection);
        const text = this.#statusText(user);
        if (text !== told) connection.sendText(text);
      },
    });
  }

  /**
   * Closes a socket to make room for a new one: the oldest of this client id, else the oldest that
   * answers no pings. That one is of this user or, where the server is full, of any user. False
   * when there is none.
   *
   * Some clients open a socket for each prompt and never close it; the original sends all frames to
   * the newest.
   */
  makeRoom({ user, clientId, where }: RoomNeeded): boolean {
    const all = [...this.#connections.all()].filter((connection) => connection.isOpen());
    const own = all.filter((connection) => connection.user === user);
    const replaced =
      own.find(({ sid }) => sid === clientId) ??
      own.find((connection) => connection.isSilent()) ??
      (where === 'server' ? all.find((connection) => connection.isSilent()) : undefined);
    replaced?.closeAtOnce(NORMAL_CLOSURE);
    return replaced !== undefined;
  }

  /** Sends all sockets of this user the number of prompts that are left. */
  sendStatus(user: string): void {
    if (!this.#connections.has(user)) return;
    const text = this.#statusText(user);
    for (const connection of this.#connections.of(user)) {
      if (connection.isReceiving()) connection.sendText(text);
    }
  }

  /**
   * Starts the user's new sockets: an answer to a call of the user was written,
   * and clients that opened a socket before that call expect its `status` now, and no frame before
   * the answer. A busy client reads the connection first that became readable first.
   * `userOf` is called only if any socket is new.
   */
  sendFirstFrames(userOf: () => string | undefined): void {
    const user = this.#newConnections.size > 0 ? userOf() : undefined;
    if (user === undefined) return;
    for (const connection of this.#newConnections.take(user)) connection.startNow();
  }

  /** Sends a message to the sockets of this id, if there are any. */
  sendTo(user: string, clientId: string, message: V1Message): void {
    for (const connection of this.#connections.of(user)) {
      if (connection.sid !== clientId) continue;
      connection.whenReceiving(() => connection.sendText(encodeMessage(message)));
    }
  }

  /** Sends a `notification` to the sockets of this user whose dialect has that message. */
  notify(user: string, text: string): void {
    for (const connection of this.#connections.of(user)) sendNotification(connection, text);
  }

  /** Sends each socket the text for its client. */
  readonly notifyClients: NotifyClients = (textFor) => {
    for (const connection of this.#connections.all()) {
      const text = textFor(connection);
      if (text !== undefined) sendNotification(connection, text);
    }
  };

  /** True when the server is stopping. */
  isClosed(): boolean {
    return this.#isClosed;
  }

  /** The number of sockets, of one user or of all. */
  count(user?: string): number {
    return user === undefined ? this.#connections.size : this.#connections.of(user).size;
  }

  /** Bytes that sockets have not accepted yet. */
  pendingBytes(): number {
    return [...this.#connections.all()].reduce((sum, one) => sum + one.pendingBytes(), 0);
  }

  /** Previews dropped since the start, because a socket was too slow. */
  droppedFrames(): number {
    return this.#droppedFrames;
  }

  /** True when a socket gets more than text frames of a prompt with this client id. */
  hasListener(user: string, clientId: string | null): boolean {
    return [...this.#connections.of(user)].some(
      (connection) => frameScopeFor(connection, clientId) !== 'texts',
    );
  }

  /**
   * Closes all sockets. `isClosed` is true from then on, and upgrades are refused: a new socket
   * would count as having received frames that its client may never see.
   */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.channels.stopTimers();
    for (const connection of this.#connections.all()) connection.close(1001);
  }

  #keepAlive(): void {
    for (const user of this.#connections.users()) {
      if (this.#options.remaining(user) === 0) continue;
      for (const connection of this.#connections.of(user)) {
        const isQuiet = this.#now() - connection.lastTextAtMs >= STATUS_KEEP_ALIVE_MS;
        if (connection.isReceiving() && isQuiet) connection.sendText(this.#statusText(user));
      }
    }
  }

  /**
   * Pings each socket an interval after its last ping or its connection: a short session of a
   * simple client gets no ping.
   */
  #pingThoseDue(): void {
    const dueSinceMs = this.#now() - PING_INTERVAL_MS + CHECK_MS;
    for (const connection of this.#connections.all()) {
      if (connection.lastPingAtMs < dueSinceMs) connection.ping();
    }
  }

  #removeConnection(user: string, connection: SocketConnection): void {
    this.#connections.delete(user, connection);
    this.#newConnections.delete(user, connection);
    if (!this.#connections.has(user)) this.#options.onPresenceChange?.(user, false);
  }

  #statusText(user: string, sid?: string): string {
    const status = { exec_info: { queue_remaining: this.#options.remaining(user) } };
    const data = sid === undefined ? { status } : { status, sid };
    return encodeMessage({ type: 'status', data });
  }
}

function sendNotification(connection: SocketConnection, value: string): void {
  const isSent = rulesOf(connection.dialect).notifications === 'sent';
  if (!isSent || connection.watches) return;
  const text = encodeMessage({ type: 'notification', data: { value } });
  connection.whenReceiving(() => connection.sendText(text));
}
