import { steadyNow } from '../lib/steady-clock.ts';
import { randomBytes } from 'node:crypto';
import type { Logger } from '../telemetry.ts';
import type { JsonObject } from '../wire/json.ts';
import type { V1Message } from '../wire/v1.ts';
import type { TellClients } from './announce.ts';
import { shareOf } from './audience.ts';
import { type Address, type Channel, createChannel } from './channel.ts';
import { type Dialect, rulesOf } from './dialect.ts';
import type { PreviewMethod } from './preview-method.ts';
import type { Audience } from './prompt-journal.ts';
import { readyFrame } from './ready.ts';
import { type Connection, type Session, createSession, encodeMessage } from './session.ts';

/** How long frames wait for a socket that should have received them. */
const REPLAY_MS = 120_000;
/** One client gives up after ten seconds without a text frame, so a waiting one hears us sooner. */
const KEEPALIVE_MS = 7000;
/** Most bytes kept of all prompts together for sockets that may still come. */
const REPLAY_BYTES_IN_ALL = 256 * 1024 * 1024;
/** They are counted anew each time so many came. */
const COUNT_EVERY_BYTES = 4 * 1024 * 1024;
const PING_MS = 30_000;

const UNDELIVERED_DROPPED =
  'no socket received what this prompt shows, and there is too much to keep; it is in the history';

/** Who opened a socket; one that watches (`/ws?watch=1`) sees every prompt of its user. */
type Newcomer = {
  readonly user: string;
  readonly clientId: string | null;
  readonly watches?: boolean;
  readonly isBrowser?: boolean;
  readonly dialect: Dialect;
  readonly agent?: string;
  /** What is to be told to people who connect now. */
  readonly notice?: string | undefined;
};

/** Every WebSocket of every user, and the channels of their prompts. */
export type Hub = {
  /** Takes over an upgraded socket; `clientId` absent or empty: it gets a fresh one. */
  attach(connection: Connection, who: Newcomer): void;
  /** Opens the line of a new prompt. */
  channel(address: Address, onCaughtUp?: (audience: Audience, at: number) => void): Channel;
  /** A socket of this user is about to come. */
  prepare(user: string): Promise<void>;
  /** Its `POST` was answered: its user's other prompts are not the last one any more. */
  submitted(channel: Channel): void;
  /** The prompt is over; frames that should have been received are kept for a while. */
  retire(channel: Channel): void;
  /**
   * A client has the results of these prompts: no socket that comes needs to be told of them.
   * Returns those of which something may be kept at other processes.
   */
  fetched(user: string, promptIds: readonly string[]): readonly string[];
  /** Tells all sockets of this user how many of their prompts are left. */
  status(user: string): void;
  /** Says something to the sockets of this id, if there are any. */
  tell(user: string, clientId: string, message: V1Message): void;
  /** Tells the people at the sockets of this user something, where their dialect has a word for it. */
  notify(user: string, text: string): void;
  /** The same to every socket, by the client that opened it. */
  notifyClients: TellClients;
  count(user?: string): number;
  /** Bytes kept of all prompts for sockets that may still come. */
  unreceivedBytes(): number;
  /** Bytes that wait for sockets to swallow them. */
  backlogBytes(): number;
  /** Previews no socket got, since the start. */
  droppedFrames(): number;
  /** Whether a socket is there that is sent more than texts of a prompt of this client. */
  listens(user: string, clientId: string | null): boolean;
  close(): void;
};

export function createHub(deps: {
  /** `queue_remaining` of this user. */
  readonly remaining: (user: string) => number;
  readonly serverFlags: JsonObject;
  readonly previewMethod: PreviewMethod;
  readonly now?: () => number;
  /** The first socket of a user came, or the last one went. */
  readonly onPresence?: (user: string, isThere: boolean) => void;
  readonly log?: Pick<Logger, 'warn'>;
  readonly replayBytesInAll?: number;
}): Hub {
  const { remaining, now = steadyNow } = deps;
  const sessions = new Map<string, Set<Session>>();
  const channels = new Map<string, Set<Channel>>();
  const retiring = new Map<Channel, NodeJS.Timeout>();
  let droppedFrames = 0;
  let uncountedBytes = 0;
  const keepalive = setInterval(keepAlive, 1000);
  const pinger = setInterval(() => each(sessions, (session) => session.ping()), PING_MS);
  keepalive.unref();
  pinger.unref();

  function statusText(user: string, sid?: string): string {
    const status = { exec_info: { queue_remaining: remaining(user) } };
    const data = sid === undefined ? { status } : { status, sid };
    return encodeMessage({ type: 'status', data });
  }

  function keepAlive(): void {
    for (const [user, theirs] of sessions) {
      if (remaining(user) === 0) continue;
      for (const session of theirs) {
        if (session.isOpen() && now() - session.lastTextAtMs() >= KEEPALIVE_MS) {
          session.sendText(statusText(user));
        }
      }
    }
  }

  function leave(user: string, session: Session): void {
    drop(sessions, user, session);
    if (!sessions.has(user)) deps.onPresence?.(user, false);
  }

  function unreceivedBytes(): number {
    let bytes = 0;
    each(channels, (channel) => (bytes += channel.unreceivedBytes()));
    return bytes;
  }

  /** Prompts that are over go first, the oldest before the others. */
  function makeRoom(addedBytes: number): void {
    const { replayBytesInAll = REPLAY_BYTES_IN_ALL } = deps;
    uncountedBytes += addedBytes;
    if (uncountedBytes < Math.min(COUNT_EVERY_BYTES, replayBytesInAll / 10)) return;
    uncountedBytes = 0;
    let tooMuch = unreceivedBytes() - replayBytesInAll;
    if (tooMuch <= 0) return;
    const live = [...channels.values()].flatMap((theirs) => [...theirs]);
    for (const channel of new Set([...retiring.keys(), ...live])) {
      if (tooMuch <= 0) return;
      const before = channel.unreceivedBytes();
      channel.shed();
      const gone = before - channel.unreceivedBytes();
      if (gone > 0) noteDropped(channel.address);
      tooMuch -= gone;
    }
  }

  function noteDropped({ user, promptId }: Address): void {
    deps.log?.warn({ event: 'socket.undelivered_dropped', user, promptId }, UNDELIVERED_DROPPED);
  }

  function forget(channel: Channel): void {
    clearTimeout(retiring.get(channel));
    retiring.delete(channel);
    drop(channels, channel.address.user, channel);
  }

  function forgetIfDone(channel: Channel): void {
    if (retiring.has(channel) && !channel.hasUnreceived()) forget(channel);
  }

  return {
    attach(connection, { user, clientId, notice, ...form }) {
      // v1 mints 32 hex characters, no dashes.
      const sid = clientId || randomBytes(16).toString('hex');
      const session = createSession(connection, {
        user,
        sid,
        ...form,
        serverFlags: deps.serverFlags,
        now,
        onClose: () => leave(user, session),
        onDrop: () => droppedFrames++,
      });
      session.sendText(statusText(user, sid));
      if (notice !== undefined) notify(session, notice);
      for (const channel of channels.get(user) ?? []) {
        channel.greet(session);
        forgetIfDone(channel);
      }
      if (!sessions.has(user)) deps.onPresence?.(user, true);
      add(sessions, user, session);
    },
    async prepare(user) {
      await Promise.all([...(channels.get(user) ?? [])].map((channel) => channel.prepare()));
    },
    channel(address, onCaughtUp) {
      const channel = createChannel(address, {
        sessions: () => sessions.get(address.user) ?? [],
        previewMethod: deps.previewMethod,
        onCaughtUp,
        onKeep: makeRoom,
        onDrop: () => noteDropped(address),
      });
      add(channels, address.user, channel);
      return channel;
    },
    submitted(channel) {
      if (channel.address.isV2Job) return;
      for (const other of channels.get(channel.address.user) ?? []) {
        if (other !== channel) other.supersede();
        forgetIfDone(other);
      }
    },
    fetched(user, promptIds) {
      const named = new Set(promptIds);
      const theirs = [...(channels.get(user) ?? [])];
      const settled = theirs.filter(({ address }) => named.has(address.promptId));
      for (const channel of settled) {
        channel.settle();
        forgetIfDone(channel);
      }
      return settled.map(({ address }) => address.promptId);
    },
    retire(channel) {
      const timer = setTimeout(() => forget(channel), REPLAY_MS);
      timer.unref();
      retiring.set(channel, timer);
      forgetIfDone(channel);
    },
    status(user) {
      const theirs = sessions.get(user);
      if (!theirs) return;
      const text = readyFrame(Buffer.from(statusText(user)), 'text');
      for (const session of theirs) if (session.isOpen()) session.sendText(text);
    },
    tell(user, clientId, message) {
      for (const session of sessions.get(user) ?? []) {
        if (session.sid === clientId && session.isOpen()) session.sendText(encodeMessage(message));
      }
    },
    notify(user, text) {
      for (const session of sessions.get(user) ?? []) notify(session, text);
    },
    notifyClients(textFor) {
      each(sessions, (session) => {
        const text = textFor(session);
        if (text !== undefined) notify(session, text);
      });
    },
    count(user) {
      if (user !== undefined) return sessions.get(user)?.size ?? 0;
      return [...sessions.values()].reduce((sum, theirs) => sum + theirs.size, 0);
    },
    unreceivedBytes,
    backlogBytes() {
      let bytes = 0;
      each(sessions, (session) => (bytes += session.backlogBytes()));
      return bytes;
    },
    droppedFrames: () => droppedFrames,
    listens(user, clientId) {
      const theirs = [...(sessions.get(user) ?? [])];
      return theirs.some((session) => shareOf(session, clientId) !== 'texts');
    },
    close() {
      clearInterval(keepalive);
      clearInterval(pinger);
      for (const timer of retiring.values()) clearTimeout(timer);
      each(sessions, (session) => session.close(1001));
    },
  };
}

function notify(session: Session, value: string): void {
  const isSent = rulesOf(session.dialect).notifications === 'sent';
  if (!isSent || session.watches || !session.isOpen()) return;
  session.sendText(encodeMessage({ type: 'notification', data: { value } }));
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

function each<T>(groups: Map<string, Set<T>>, act: (item: T) => void): void {
  for (const group of groups.values()) for (const item of group) act(item);
}
