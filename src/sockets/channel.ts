import { type SocketConnection, encodeMessage } from './connection.ts';
import {
  type ReceivedUpTo,
  type ReceiverGroup,
  type SubscribedSince,
  Delivery,
  NO_GROUPS,
} from './delivery.ts';
import { type FrameScope, frameScopeFor, isInScope } from './frame-scope.ts';
import { type Frame, activeNodeIn, encodeFrame } from './frame.ts';
import type { PreviewMethod } from './preview-method.ts';
import { type FrameLoader, UndeliveredFrames } from './undelivered-frames.ts';
import { type FrameContext, writeFrame } from './write-frame.ts';

/** The prompt that the frames belong to, and the `client_id` that it named. */
export type Address = {
  readonly user: string;
  readonly clientId: string | null;
  readonly promptId: string;
  /** The prompt's `extra_data.preview_method`. Without it, the server's setting applies. */
  readonly previewMethod?: PreviewMethod | undefined;
  /**
   * True for a job submitted through v2, which has events of its own: no frame of it is kept for a
   * late socket.
   */
  readonly isV2Job?: boolean;
};

export type ChannelOptions = {
  /** The connections of the prompt's user. */
  readonly connections: () => Iterable<SocketConnection>;
  readonly previewMethod: PreviewMethod;
  /** Called when a late socket has received everything up to this position. */
  readonly onCaughtUp?: ((group: ReceiverGroup, position: number) => void) | undefined;
  /** Called when bytes were added for a socket that may connect. */
  readonly onAdd?: (bytes: number) => void;
  /** Called when texts, pictures or outputs were dropped because the limit was reached. */
  readonly onDrop?: () => void;
};

/** Sends the frames of one prompt to its sockets, and keeps those that a socket may still need. */
export class Channel {
  readonly address: Address;
  readonly #options: ChannelOptions;
  readonly #context: FrameContext;
  /** The frames that are kept for sockets that may connect. */
  readonly undelivered: UndeliveredFrames;
  readonly #delivery: Delivery;
  /** The running node with its latest step and preview, for sockets that start to watch. */
  readonly #currentFrames = new Map<Frame['kind'], Frame>();
  #hasStarted = false;
  #isSuperseded = false;
  /**
   * The sockets that connected after the result was fetched: they get no more frames of the prompt.
   * `undefined`: the result was not fetched.
   */
  #afterFetch: WeakSet<SocketConnection> | undefined;
  #activeNode: string | null = null;
  #nodeBeforeUndelivered: string | null = null;

  constructor(address: Address, options: ChannelOptions) {
    const { promptId, clientId, previewMethod } = address;
    this.address = address;
    this.#options = options;
    this.#context = {
      promptId,
      previewMethods: { server: options.previewMethod, prompt: previewMethod },
    };
    this.undelivered = new UndeliveredFrames(options.onDrop);
    this.#delivery = new Delivery(clientId);
  }

  /** Sends a frame. `position`: where the frame is in the prompt's event log. */
  send(frame: Frame, position: number): void {
    this.#rememberNodeBefore();
    this.#rememberCurrent(frame);
    this.#hasStarted ||= frame.kind === 'json' && frame.message.type === 'execution_start';
    const groups = this.#broadcast(frame, position);
    this.#delivery.noteSent(position, groups);
    if (!this.#isNeeded(position, groups)) return;
    const before = this.undelivered.bytes;
    const isUndelivered = this.#delivery.isUndelivered(position, groups);
    this.undelivered.add(frame, position, isUndelivered ? 'unsent' : 'sent');
    this.#options.onAdd?.(this.undelivered.bytes - before);
  }

  /**
   * Keeps a frame that no socket here waits for. The frame is loaded when a socket is about to
   * connect.
   */
  sendLater(loader: FrameLoader, position: number): void {
    this.#rememberNodeBefore();
    if (this.#isNeeded(position, NO_GROUPS)) this.undelivered.addLazy(loader, position);
  }

  /** True when a socket of this process gets more than text frames. */
  hasListener(): boolean {
    return [...this.#options.connections()].some(
      (connection) => connection.isOpen() && this.#scopeOf(connection) !== 'texts',
    );
  }

  /** The groups that have a socket in this process. */
  receiverGroups(): readonly ReceiverGroup[] {
    const groups = [...this.#options.connections()].flatMap((connection) =>
      connection.isReceiving() ? (this.#groupOf(connection) ?? []) : [],
    );
    return [...new Set(groups)];
  }

  /** Sends a socket that has connected the frames it missed, or the running node. */
  replayTo(connection: SocketConnection): void {
    if (connection.watches) return this.#writeAll(connection, this.#currentFrames.values());
    const group = this.#groupOf(connection);
    if (group === undefined) return;
    if (this.#afterFetch) this.#afterFetch.add(connection);
    else if (this.#mayReplay(connection, group)) this.#replayUndelivered(connection, group);
  }

  #replayUndelivered(connection: SocketConnection, group: ReceiverGroup): void {
    const { frames, position } = this.#isLastReceiver(group)
      ? this.undelivered.takeAll()
      : this.undelivered.takeUnsent();
    // A socket that returns to a run it already knows gets a bare `executing`, as in v1.
    const node = frames.length === 0 ? this.#activeNode : this.#nodeBeforeUndelivered;
    if (node !== null && group === 'client') {
      connection.sendText(encodeMessage({ type: 'executing', data: { node } }));
    }
    this.#writeAll(connection, frames);
    if (frames.length > 0) this.#delivery.noteReached(connection.sid);
    if (position > 0) this.#options.onCaughtUp?.(group, position);
  }

  /** Marks that the user has submitted another prompt after this one. */
  supersede(): void {
    this.#isSuperseded = true;
    const isBroadcast = this.address.clientId === null;
    if (isBroadcast && this.#delivery.isUnreached()) this.undelivered.takeAll();
  }

  /** Marks that a client has fetched the result: late sockets get no frames of the prompt. */
  markFetched(): void {
    // A new socket is connected already: it gets them before they are dropped.
    for (const connection of this.#options.connections())
      if (this.#groupOf(connection)) connection.startNow();
    this.#afterFetch ??= new WeakSet();
    this.undelivered.takeAll();
  }

  /** Returns the groups that got the last frame, if that frame is at this position of the log. */
  receivedBy(position: number): readonly ReceiverGroup[] {
    return this.#delivery.groupsAt(position);
  }

  /** Skips frames that sockets of other processes got before this process followed the prompt. */
  skipReceived(upTo: ReceivedUpTo, subscribedSince: SubscribedSince): void {
    if (subscribedSince === 'later') this.#delivery.noteHadBefore(upTo);
    this.discardReceived('client', upTo.client);
    this.discardReceived('hosted', upTo.hosted);
  }

  /**
   * Drops frames that sockets of other processes got. Sockets that are connected here get them all
   * the same.
   */
  discardReceived(group: ReceiverGroup, upTo: number): void {
    this.#delivery.noteReceived(group, upTo);
    const isStillNeeded = group === 'hosted' && this.address.clientId !== null;
    if (isStillNeeded) return this.undelivered.markSentUpTo(upTo);
    const discarded = this.undelivered.discardUpTo(upTo);
    if (!discarded) return;
    this.#nodeBeforeUndelivered = activeNodeIn(discarded) ?? this.#nodeBeforeUndelivered;
  }

  /** Sends the frame to the sockets here. Returns the groups that got it. */
  #broadcast(frame: Frame, position: number): ReadonlySet<ReceiverGroup> {
    const encoded = encodeFrame(frame, this.#context.promptId);
    const groups = new Set<ReceiverGroup>();
    const phase = this.#hasStarted ? 'started' : 'before start';
    for (const connection of this.#options.connections()) {
      if (!connection.isOpen() || this.#afterFetch?.has(connection)) continue;
      const scope = this.#scopeOf(connection);
      const group = this.#groupOf(connection, scope);
      if (this.#delivery.hadBefore(group, position)) continue;
      if (!isInScope(scope, frame, phase)) continue;
      const isNew = !connection.isReceiving();
      connection.whenReceiving(() => {
        // The frames that are kept follow.
        if (isNew && this.#isKeptFor(group, frame)) return;
        writeFrame(connection, encoded, scope, this.#context);
        if (group) this.#delivery.noteReached(connection.sid);
      });
      if (group && !isNew) groups.add(group);
    }
    return groups;
  }

  /** True when a socket may connect that needs the frame at this position. */
  #isNeeded(position: number, groups: ReadonlySet<ReceiverGroup>): boolean {
    const { clientId, isV2Job } = this.address;
    if (this.#afterFetch || isV2Job) return false;
    const isObsolete = clientId === null && this.#isSuperseded && this.#delivery.isUnreached();
    return !isObsolete && this.#delivery.mayBeLacking(position, groups);
  }

  /** True when the frame is among those that a socket of this group missed. */
  #isKeptFor(group: ReceiverGroup | undefined, frame: Frame): boolean {
    return (
      group !== undefined &&
      this.undelivered.covers(frame, this.#isLastReceiver(group) ? 'all' : 'unsent')
    );
  }

  #isLastReceiver(group: ReceiverGroup): boolean {
    return group === 'client' || this.address.clientId === null;
  }

  /** True when a socket that connects gets the frames it missed, by the rule of its dialect. */
  #mayReplay({ sid }: SocketConnection, group: ReceiverGroup): boolean {
    const isLastPrompt = this.#delivery.isUnreached() && !this.#isSuperseded;
    // A returning socket gets the frames that it missed, also of a prompt that is not the newest.
    return group === 'client' || isLastPrompt || this.#delivery.hasReached(sid);
  }

  #writeAll(connection: SocketConnection, frames: Iterable<Frame>): void {
    const scope = this.#scopeOf(connection);
    for (const frame of frames)
      writeFrame(connection, encodeFrame(frame, this.#context.promptId), scope, this.#context);
  }

  #scopeOf(connection: SocketConnection): FrameScope {
    return frameScopeFor(connection, this.address.clientId);
  }

  #groupOf(
    connection: SocketConnection,
    scope = this.#scopeOf(connection),
  ): ReceiverGroup | undefined {
    if (scope !== 'everything' || connection.watches || !connection.isOpen()) return undefined;
    // The client may have gone. It gets the frames that it missed when it returns.
    if (connection.isSilent()) return undefined;
    return connection.sid === this.address.clientId ? 'client' : 'hosted';
  }

  #rememberNodeBefore(): void {
    if (this.undelivered.size === 0) this.#nodeBeforeUndelivered = this.#activeNode;
  }

  #rememberCurrent(frame: Frame): void {
    const node = activeNodeIn(frame);
    if (node !== undefined) {
      this.#activeNode = node;
      for (const connection of this.#options.connections()) {
        connection.discardPreview(this.#context.promptId);
      }
    }
    if (frame.kind === 'text') return;
    if (frame.kind !== 'json') {
      if (frame.picture?.kind !== 'result') this.#currentFrames.set(frame.kind, frame);
    } else if (node !== undefined) {
      this.#currentFrames.clear();
      if (node !== null) this.#currentFrames.set(frame.kind, frame);
    }
  }
}
