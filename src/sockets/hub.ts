import { randomBytes } from 'node:crypto';
import { monotonicNow } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { JsonObject } from '../protocol/json.ts';
import type { V1Message } from '../protocol/v1.ts';
import { frameScopeFor } from './frame-scope.ts';
import { type Address, type Channel, createChannel } from './channel.ts';
import { type Dialect, rulesOf } from '../dialects/dialect.ts';
import type { PreviewMethod } from './preview-method.ts';
import type { ReceiverGroup } from './receivers.ts';
import { toWireFrame } from './wire-frame.ts';
import {
  type UpgradedSocket,
  type SocketConnection,
  createSocketConnection,
  encodeMessage,
} from './connection.ts';

/** How long frames are kept for a socket that should have received them. */
const REPLAY_MS = 120_000;
/**
 * One client gives up after ten seconds without a text frame; sockets with pending prompts get one
 * earlier.
 */
const KEEPALIVE_MS = 7000;
/** Maximum bytes of undelivered frames of all prompts together. */
const MAX_REPLAY_BYTES = 256 * 1024 * 1024;
/** The total is recounted after this many added bytes. */
const RECOUNT_EVERY_BYTES = 4 * 1024 * 1024;
const PING_MS = 30_000;

const UNDELIVERED_DROPPED =
  'dropped frames that no socket received, because they are too many; the results are in the history';

/** The opener of a socket. `/ws?watch=1` watches: it gets every prompt of its user. */
type NewConnection = {
  readonly user: string;
  readonly clientId: string | null;
  readonly watches?: boolean;
  readonly isBrowser?: boolean;
  readonly dialect: Dialect;
  readonly agent?: string;
  /** Text for the people who connect now. */
  readonly notice?: string | undefined;
};

/** Sends each client its text; `undefined`: nothing for this client. */
export type NotifyClients = (
  textFor: (client: { readonly user: string; readonly agent: string }) => string | undefined,
) => void;

/** All WebSockets of all users, and the channels of their prompts. */
export type Hub = {
  /** Takes over an upgraded socket. An absent or empty `clientId` gets a new id. */
  addConnection(upgraded: UpgradedSocket, newConnection: NewConnection): void;
  /** Opens the channel of a new prompt. */
  channel(address: Address, onCaughtUp?: (audience: ReceiverGroup, at: number) => void): Channel;
  /** A socket of this user is about to connect. */
  preload(user: string): Promise<void>;
  /** Its `POST` was answered: other prompts of the user are not the last one any more. */
  submitted(channel: Channel): void;
  /** The prompt has ended. Frames that a socket still has to receive are kept for a while. */
  closeChannel(channel: Channel): void;
  /**
   * A client has the results of these prompts: a late socket gets nothing of them. Returns the ids
   * of which other processes may keep frames.
   */
  discardFetched(user: string, promptIds: readonly string[]): readonly string[];
  /** Sends all sockets of this user the number of prompts that are left. */
  status(user: string): void;
  /** Sends a message to the sockets of this id, if there are any. */
  sendTo(user: string, clientId: string, message: V1Message): void;
  /** Sends a `notification` to the sockets of this user whose dialect has that message. */
  notify(user: string, text: string): void;
  /** Sends each socket the text for its client. */
  notifyClients: NotifyClients;
  count(user?: string): number;
  /** Bytes of undelivered frames of all prompts. */
  unreceivedBytes(): number;
  /** Bytes that sockets have not accepted yet. */
  pendingBytes(): number;
  /** Previews dropped since the start, because a socket was too slow. */
  droppedFrames(): number;
  /** True when a socket gets more than text frames of a prompt with this client id. */
  hasListener(user: string, clientId: string | null): boolean;
  close(): void;
};

export function createHub(deps: {
  /** `queue_remaining` of this user. */
  readonly remaining: (user: string) => number;
  readonly serverFlags: JsonObject;
  readonly previewMethod: PreviewMethod;
  readonly now?: () => number;
  /** The first socket of a user connected, or the last one disconnected. */
  readonly onPresenceChange?: (user: string, isThere: boolean) => void;
  readonly log?: Pick<Logger, 'warn'>;
  readonly maxReplayBytes?: number;
}): Hub {
  const { remaining, now = monotonicNow } = deps;
  const connections = new Map<string, Set<SocketConnection>>();
  const channels = new Map<string, Set<Channel>>();
  const closing = new Map<Channel, NodeJS.Timeout>();
  let droppedFrames = 0;
  let uncountedBytes = 0;
  const keepalive = setInterval(keepAlive, 1000);
  const pinger = setInterval(
    () => forEachItem(connections, (connection) => connection.ping()),
    PING_MS,
  );
  keepalive.unref();
  pinger.unref();

  function statusText(user: string, sid?: string): string {
    const status = { exec_info: { queue_remaining: remaining(user) } };
    const data = sid === undefined ? { status } : { status, sid };
    return encodeMessage({ type: 'status', data });
  }

  function keepAlive(): void {
    for (const [user, ofUser] of connections) {
      if (remaining(user) === 0) continue;
      for (const connection of ofUser) {
        if (connection.isOpen() && now() - connection.lastTextAtMs() >= KEEPALIVE_MS) {
          connection.sendText(statusText(user));
        }
      }
    }
  }

  function removeConnection(user: string, connection: SocketConnection): void {
    drop(connections, user, connection);
    if (!connections.has(user)) deps.onPresenceChange?.(user, false);
  }

  function unreceivedBytes(): number {
    let bytes = 0;
    forEachItem(channels, (channel) => (bytes += channel.unreceivedBytes()));
    return bytes;
  }

  /** Ended prompts lose their frames first, the oldest of them first. */
  function enforceReplayLimit(addedBytes: number): void {
    const { maxReplayBytes = MAX_REPLAY_BYTES } = deps;
    uncountedBytes += addedBytes;
    if (uncountedBytes < Math.min(RECOUNT_EVERY_BYTES, maxReplayBytes / 10)) return;
    uncountedBytes = 0;
    let excessBytes = unreceivedBytes() - maxReplayBytes;
    if (excessBytes <= 0) return;
    const open = [...channels.values()].flatMap((ofUser) => [...ofUser]);
    for (const channel of new Set([...closing.keys(), ...open])) {
      if (excessBytes <= 0) return;
      const before = channel.unreceivedBytes();
      channel.dropDetails();
      const freedBytes = before - channel.unreceivedBytes();
      if (freedBytes > 0) logDropped(channel.address);
      excessBytes -= freedBytes;
    }
  }

  function logDropped({ user, promptId }: Address): void {
    deps.log?.warn({ event: 'socket.undelivered_dropped', user, promptId }, UNDELIVERED_DROPPED);
  }

  function removeChannel(channel: Channel): void {
    clearTimeout(closing.get(channel));
    closing.delete(channel);
    drop(channels, channel.address.user, channel);
  }

  function removeChannelIfDone(channel: Channel): void {
    if (closing.has(channel) && !channel.hasUnreceived()) removeChannel(channel);
  }

  return {
    addConnection(upgraded, { user, clientId, notice, ...traits }) {
      // v1 makes ids of 32 hex characters without dashes.
      const sid = clientId || randomBytes(16).toString('hex');
      const connection = createSocketConnection(upgraded, {
        user,
        sid,
        ...traits,
        serverFlags: deps.serverFlags,
        now,
        onClose: () => removeConnection(user, connection),
        onDrop: () => droppedFrames++,
      });
      connection.sendText(statusText(user, sid));
      if (notice !== undefined) notify(connection, notice);
      for (const channel of channels.get(user) ?? []) {
        channel.replayTo(connection);
        removeChannelIfDone(channel);
      }
      if (!connections.has(user)) deps.onPresenceChange?.(user, true);
      add(connections, user, connection);
    },
    async preload(user) {
      await Promise.all([...(channels.get(user) ?? [])].map((channel) => channel.preload()));
    },
    channel(address, onCaughtUp) {
      const channel = createChannel(address, {
        connections: () => connections.get(address.user) ?? [],
        previewMethod: deps.previewMethod,
        onCaughtUp,
        onAdd: enforceReplayLimit,
        onDrop: () => logDropped(address),
      });
      add(channels, address.user, channel);
      return channel;
    },
    submitted(channel) {
      if (channel.address.isV2Job) return;
      for (const other of channels.get(channel.address.user) ?? []) {
        if (other !== channel) other.supersede();
        removeChannelIfDone(other);
      }
    },
    discardFetched(user, promptIds) {
      const named = new Set(promptIds);
      const ofUser = [...(channels.get(user) ?? [])];
      const fetchedChannels = ofUser.filter(({ address }) => named.has(address.promptId));
      for (const channel of fetchedChannels) {
        channel.markFetched();
        removeChannelIfDone(channel);
      }
      return fetchedChannels.map(({ address }) => address.promptId);
    },
    closeChannel(channel) {
      const timer = setTimeout(() => removeChannel(channel), REPLAY_MS);
      timer.unref();
      closing.set(channel, timer);
      removeChannelIfDone(channel);
    },
    status(user) {
      const ofUser = connections.get(user);
      if (!ofUser) return;
      const text = toWireFrame(Buffer.from(statusText(user)), 'text');
      for (const connection of ofUser) if (connection.isOpen()) connection.sendText(text);
    },
    sendTo(user, clientId, message) {
      for (const connection of connections.get(user) ?? []) {
        if (connection.sid === clientId && connection.isOpen())
          connection.sendText(encodeMessage(message));
      }
    },
    notify(user, text) {
      for (const connection of connections.get(user) ?? []) notify(connection, text);
    },
    notifyClients(textFor) {
      forEachItem(connections, (connection) => {
        const text = textFor(connection);
        if (text !== undefined) notify(connection, text);
      });
    },
    count(user) {
      if (user !== undefined) return connections.get(user)?.size ?? 0;
      return [...connections.values()].reduce((sum, ofUser) => sum + ofUser.size, 0);
    },
    unreceivedBytes,
    pendingBytes() {
      let bytes = 0;
      forEachItem(connections, (connection) => (bytes += connection.pendingBytes()));
      return bytes;
    },
    droppedFrames: () => droppedFrames,
    hasListener(user, clientId) {
      const ofUser = [...(connections.get(user) ?? [])];
      return ofUser.some((connection) => frameScopeFor(connection, clientId) !== 'texts');
    },
    close() {
      clearInterval(keepalive);
      clearInterval(pinger);
      for (const timer of closing.values()) clearTimeout(timer);
      forEachItem(connections, (connection) => connection.close(1001));
    },
  };
}

function notify(connection: SocketConnection, value: string): void {
  const isSent = rulesOf(connection.dialect).notifications === 'sent';
  if (!isSent || connection.watches || !connection.isOpen()) return;
  connection.sendText(encodeMessage({ type: 'notification', data: { value } }));
}

function add<T>(groups: Map<string, Set<T>>, user: string, item: T): void {
  const group = groups.get(user);
  if (group) group.add(item);
  else groups.set(user, new Set([item]));
}

function drop<T>(groups: Map<string, Set<T>>, user: string, item: T): void {
  const group = groups.get(user);
  group?.delete(item);
  if (group?.size === 0) groups.delete(user);
}

function forEachItem<T>(groups: Map<string, Set<T>>, act: (item: T) => void): void {
  for (const group of groups.values()) for (const item of group) act(item);
}
