import type { Logger } from '../observability/log.ts';
import { ByUser } from './by-user.ts';
import { type Address, Channel } from './channel.ts';
import type { SocketConnection } from './connection.ts';
import type { PreviewMethod } from './preview-method.ts';
import type { ReceiverGroup } from './delivery.ts';

/** How long frames are kept for a socket that should have received them. */
const REPLAY_MS = 120_000;
/** Maximum bytes of undelivered frames of all prompts together. */
const MAX_REPLAY_BYTES = 256 * 1024 * 1024;
/** The total is recounted after this many added bytes. */
const RECOUNT_EVERY_BYTES = 4 * 1024 * 1024;

type OpenChannelsOptions = {
  readonly connectionsOf: (user: string) => Iterable<SocketConnection>;
  readonly previewMethod: PreviewMethod;
  readonly maxReplayBytes?: number | undefined;
  readonly log?: Logger | undefined;
};

/**
 * The channels of all live prompts, and of ended prompts with frames that a socket may still need.
 */
export class OpenChannels {
  readonly #options: OpenChannelsOptions;
  readonly #channels = new ByUser<Channel>();
  readonly #closing = new Map<Channel, NodeJS.Timeout>();
  #uncountedBytes = 0;

  constructor(options: OpenChannelsOptions) {
    this.#options = options;
  }

  /** Opens the channel of a new prompt. */
  open(address: Address, onCaughtUp?: (group: ReceiverGroup, position: number) => void): Channel {
    const channel = new Channel(address, {
      connections: () => this.#options.connectionsOf(address.user),
      previewMethod: this.#options.previewMethod,
      onCaughtUp,
      onAdd: (bytes) => this.#enforceLimit(bytes),
      onDrop: () => this.#logDropped(address),
    });
    this.#channels.add(address.user, channel);
    return channel;
  }

  /**
   * Closes the channel of an ended prompt. Frames that a socket may still need are kept for a
   * while.
   */
  close(channel: Channel): void {
    if (channel.undelivered.size === 0) return this.#remove(channel);
    const timer = setTimeout(() => this.#remove(channel), REPLAY_MS);
    timer.unref();
    this.#closing.set(channel, timer);
  }

  /**
   * Removes the prompts of a user that are no longer shown here. No socket of the user is
   * connected.
   */
  removeOf(user: string): void {
    for (const channel of this.#channels.of(user)) this.#remove(channel);
  }

  /**
   * Loads the frames that a socket of this user will get, including those that arrive meanwhile.
   */
  async preload(user: string): Promise<void> {
    const unloaded = () =>
      [...this.#channels.of(user)].filter(({ undelivered }) => undelivered.hasUnloaded());
    for (let some = unloaded(); some.length > 0; some = unloaded())
      await Promise.all(some.map(({ undelivered }) => undelivered.loadAll()));
  }

  /** Sends a new connection the frames that it missed of each prompt of its user. */
  replayTo(connection: SocketConnection): void {
    for (const channel of this.#channels.of(connection.user)) {
      channel.replayTo(connection);
      this.#removeIfDone(channel);
    }
  }

  /**
   * Marks that the user's other prompts are no longer the newest: the `POST` of this prompt was
   * answered.
   */
  supersedeOthers(channel: Channel): void {
    if (channel.address.isV2Job) return;
    for (const other of this.#channels.of(channel.address.user)) {
      // Later entries were opened later. When prompts are read again, the order of their release is
      // lost.
      if (other === channel) return;
      other.supersede();
      this.#removeIfDone(other);
    }
  }

  /**
   * Drops the frames of prompts whose results a client has: late sockets get none of them. Returns
   * the ids of the prompts of which other processes may keep frames.
   */
  discardFetched(user: string, promptIds: readonly string[]): readonly string[] {
    const fetched = new Set(promptIds);
    const channels = [...this.#channels.of(user)].filter(({ address }) =>
      fetched.has(address.promptId),
    );
    for (const channel of channels) {
      channel.markFetched();
      this.#removeIfDone(channel);
    }
    return channels.map(({ address }) => address.promptId);
  }

  /** Bytes of undelivered frames of all prompts. */
  unreceivedBytes(): number {
    return [...this.#channels.all()].reduce((sum, one) => sum + one.undelivered.bytes, 0);
  }

  stopTimers(): void {
    for (const timer of this.#closing.values()) clearTimeout(timer);
  }

  /** Drops frames until the limit holds: those of ended prompts first, the oldest prompt first. */
  #enforceLimit(addedBytes: number): void {
    const { maxReplayBytes = MAX_REPLAY_BYTES } = this.#options;
    this.#uncountedBytes += addedBytes;
    if (this.#uncountedBytes < Math.min(RECOUNT_EVERY_BYTES, maxReplayBytes / 10)) return;
    this.#uncountedBytes = 0;
    let excessBytes = this.unreceivedBytes() - maxReplayBytes;
    if (excessBytes <= 0) return;
    for (const channel of new Set([...this.#closing.keys(), ...this.#channels.all()])) {
      if (excessBytes <= 0) return;
      const before = channel.undelivered.bytes;
      channel.undelivered.dropDetails();
      const freedBytes = before - channel.undelivered.bytes;
      if (freedBytes > 0) this.#logDropped(channel.address);
      excessBytes -= freedBytes;
    }
  }

  #logDropped({ user, promptId }: Address): void {
    const facts = { event: 'socket.undelivered_dropped', user, promptId };
    this.#options.log?.warn(facts, UNDELIVERED_DROPPED);
  }

  #removeIfDone(channel: Channel): void {
    if (this.#closing.has(channel) && channel.undelivered.size === 0) this.#remove(channel);
  }

  #remove(channel: Channel): void {
    clearTimeout(this.#closing.get(channel));
    this.#closing.delete(channel);
    this.#channels.delete(channel.address.user, channel);
  }
}

const UNDELIVERED_DROPPED =
  'dropped frames that no socket received, because they are too many; the results are in the history';
