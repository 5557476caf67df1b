import type { V1Message } from '../protocol/v1.ts';
import { type FrameScope, isInScope, frameScopeFor } from './frame-scope.ts';
import {
  type FrameBatch,
  type FrameLoader,
  createUndeliveredFrames,
} from './undelivered-frames.ts';
import { rulesOf } from '../dialects/dialect.ts';
import {
  type EncodedFrame,
  type EncodedPicture,
  type Frame,
  encodeFrame,
  activeNodeIn,
} from './frame.ts';
import { type PreviewMethod, acceptsPicture } from './preview-method.ts';
import type { ReceiverGroup, SubscribedSince, ReceivedUpTo } from './receivers.ts';
import { type SocketConnection, encodeMessage } from './connection.ts';

/** The prompt these frames belong to, and the `client_id` it named. */
export type Address = {
  readonly user: string;
  readonly clientId: string | null;
  readonly promptId: string;
  /** The prompt's own `extra_data.preview_method`; without it the server's setting counts. */
  readonly previewMethod?: PreviewMethod | undefined;
  /** A job submitted through v2 has its own events: no frame of it is kept for a late socket. */
  readonly isV2Job?: boolean;
};

const END_MESSAGES: ReadonlySet<V1Message['type']> = new Set([
  'execution_success',
  'execution_error',
  'execution_interrupted',
]);

/** Sends the frames of one prompt to its sockets, and keeps those a socket still has to receive. */
export type Channel = {
  readonly address: Address;
  /** `position`: where the frame is in the prompt's event log. */
  send(frame: Frame, position: number): void;
  /** The same for a frame no socket here waits for: loaded when a socket is about to connect. */
  sendLater(loader: FrameLoader, position: number): void;
  /** True when a socket of this process gets more than text frames. */
  hasListener(): boolean;
  /** The groups that have a socket in this process. */
  receiverGroups(): readonly ReceiverGroup[];
  /** A socket is about to connect: loads the frames it will get. */
  preload(): Promise<void>;
  /** A socket connected: sends it the frames it missed, or the running node. */
  replayTo(connection: SocketConnection): void;
  hasUnreceived(): boolean;
  /** Bytes kept for a socket that may connect. */
  unreceivedBytes(): number;
  /** The memory limit is reached: keeps only starts, running nodes and ends. */
  dropDetails(): void;
  /** The user has submitted another prompt. */
  supersede(): void;
  /** A client has fetched the result: a late socket gets nothing of it. */
  markFetched(): void;
  /** The groups that got the last frame, if it came from this position. */
  receivedBy(position: number): readonly ReceiverGroup[];
  /**
   * Sockets of other processes got the frames up to these positions before this process followed
   * the prompt.
   */
  skipReceived(upTo: ReceivedUpTo, subscribedSince: SubscribedSince): void;
  /**
   * Sockets of other processes got the frames up to this position; sockets here get them all the
   * same.
   */
  discardReceived(group: ReceiverGroup, upTo: number): void;
};

export function createChannel(
  address: Address,
  deps: {
    readonly connections: () => Iterable<SocketConnection>;
    readonly previewMethod: PreviewMethod;
    /** A late socket has received everything up to this position. */
    readonly onCaughtUp?: ((group: ReceiverGroup, position: number) => void) | undefined;
    /** Bytes were added for a socket that may connect. */
    readonly onAdd?: (bytes: number) => void;
    /** Texts, pictures or outputs were dropped because the limit was reached. */
    readonly onDrop?: () => void;
  },
): Channel {
  const { promptId, clientId } = address;
  const undelivered = createUndeliveredFrames(deps.onDrop);
  const remote = { received: { client: 0, hosted: 0 }, alreadyReceived: { client: 0, hosted: 0 } };
  /** Ids of the sockets here that got some frame of the prompt. */
  const reachedIds = new Set<string>();
  let last: { readonly position: number; readonly groups: ReadonlySet<ReceiverGroup> } = {
    position: 0,
    groups: new Set(),
  };
  let hasStarted = false;
  let isSuperseded = false;
  let isFetched = false;
  let activeNode: string | null = null;
  let nodeBeforeUndelivered: string | null = null;
  /** The running node with its latest step and preview, for sockets that start to watch. */
  const currentFrames = new Map<Frame['kind'], Frame>();

  function receiverGroupOf(connection: SocketConnection): ReceiverGroup | undefined {
    if (!connection.isOpen() || connection.watches) return undefined;
    if (frameScopeFor(connection, clientId) !== 'everything') return undefined;
    return connection.sid === clientId ? 'client' : 'hosted';
  }

  function receiverGroups(): readonly ReceiverGroup[] {
    return [
      ...new Set(
        [...deps.connections()].flatMap((connection) => receiverGroupOf(connection) ?? []),
      ),
    ];
  }

  function sendNow(frame: Frame, position: number): void {
    if (undelivered.size() === 0) nodeBeforeUndelivered = activeNode;
    rememberActiveNode(frame);
    rememberCurrentFrame(frame);
    hasStarted ||= frame.kind === 'json' && frame.message.type === 'execution_start';
    const encoded = encodeFrame(frame, promptId);
    const groups = new Set<ReceiverGroup>();
    for (const connection of deps.connections()) {
      if (!connection.isOpen()) continue;
      const scope = frameScopeFor(connection, clientId);
      const group = receiverGroupOf(connection);
      const isAlreadyReceived =
        position > 0 && position <= remote.alreadyReceived[group ?? 'hosted'];
      if (isAlreadyReceived || !isInScope(scope, frame, hasStarted)) continue;
      writeFrame(connection, encoded, scope);
      if (group) reachedIds.add(connection.sid);
      if (group) groups.add(group);
    }
    last = { position, groups };
    addUndelivered(frame, position);
  }

  function addUndelivered(frame: Frame, position: number): void {
    if (!mayBeNeeded(position, last.groups)) return;
    const before = undelivered.bytes();
    undelivered.add(frame, position, isUndelivered(position, last.groups) ? 'unheard' : 'heard');
    deps.onAdd?.(undelivered.bytes() - before);
  }

  /** True when a socket may connect that lacks the frames from this position. */
  function mayBeNeeded(position: number, groups: ReadonlySet<ReceiverGroup>): boolean {
    if (isFetched || address.isV2Job) return false;
    if (clientId !== null)
      return !groups.has('client') && isAfterPosition(position, remote.received.client);
    return isUndelivered(position, groups) && !(isSuperseded && isUnreached());
  }

  function isUndelivered(position: number, groups: ReadonlySet<ReceiverGroup>): boolean {
    const { client, hosted } = remote.received;
    return groups.size === 0 && isAfterPosition(position, Math.max(client, hosted));
  }

  /** As far as is known, no socket got any frame of the prompt. */
  function isUnreached(): boolean {
    const { client, hosted } = remote.received;
    return reachedIds.size === 0 && client === 0 && hosted === 0;
  }

  function discardReceived(group: ReceiverGroup, upTo: number): void {
    const { received } = remote;
    received[group] = Math.max(received[group], upTo);
    if (group === 'hosted' && clientId !== null) return undelivered.markSentUpTo(upTo);
    const lastDiscarded = undelivered.discardUpTo(upTo);
    if (lastDiscarded) nodeBeforeUndelivered = activeNodeIn(lastDiscarded) ?? nodeBeforeUndelivered;
  }

  function rememberActiveNode(frame: Frame): void {
    const node = activeNodeIn(frame);
    if (node === undefined) return;
    activeNode = node;
    for (const connection of deps.connections()) connection.discardPreview(promptId);
  }

  function rememberCurrentFrame(frame: Frame): void {
    if (frame.kind === 'text') return;
    if (frame.kind === 'json') {
      if (frame.message.type !== 'executing') return;
      currentFrames.clear();
      if (frame.message.data.node !== null) currentFrames.set('json', frame);
    } else if (frame.picture?.kind !== 'result') currentFrames.set(frame.kind, frame);
  }

  function writeFrame(connection: SocketConnection, frame: EncodedFrame, scope: FrameScope): void {
    switch (frame.kind) {
      case 'json':
        return writeMessage(connection, frame);
      case 'text':
        return connection.sendBinary(frame.bytes());
      case 'picture':
        return writePicture(connection, frame.picture, scope);
      case 'step':
        return writeStep(connection, frame, scope);
    }
  }

  /** A delayed `progress_state` goes out before the end of the prompt. */
  function writeMessage(
    connection: SocketConnection,
    frame: EncodedFrame & { kind: 'json' },
  ): void {
    const text = frame[rulesOf(connection.dialect).exceptionType];
    if (frame.type === 'progress_state') return connection.sendState(promptId, text);
    if (END_MESSAGES.has(frame.type)) connection.flushState(promptId);
    connection.sendText(text());
  }

  /** v1 sends a type 4 picture before its `progress`, and a type 1 picture after it. */
  function writeStep(
    connection: SocketConnection,
    { state, progress, picture }: EncodedFrame & { kind: 'step' },
    scope: FrameScope,
  ): void {
    const isFirst = sendsMetadata(connection, scope);
    if (state) connection.sendState(promptId, state);
    if (picture && isFirst) writePicture(connection, picture, scope);
    connection.sendText(progress());
    if (picture && !isFirst) writePicture(connection, picture, scope);
  }

  function writePicture(
    connection: SocketConnection,
    picture: EncodedPicture,
    scope: FrameScope,
  ): void {
    const methods = { server: deps.previewMethod, prompt: address.previewMethod };
    if (!acceptsPicture(picture.kind, connection, methods)) return;
    const frame = sendsMetadata(connection, scope) ? picture.withMetadata() : picture.plain();
    if (picture.kind === 'result' && !connection.watches) connection.sendBinary(frame);
    else connection.sendPreview(promptId, frame);
  }

  return {
    address,
    send: sendNow,
    sendLater(loader, position) {
      if (undelivered.size() === 0) nodeBeforeUndelivered = activeNode;
      if (mayBeNeeded(position, new Set())) undelivered.addLazy(loader, position);
    },
    hasListener: () =>
      [...deps.connections()].some(
        (connection) => connection.isOpen() && frameScopeFor(connection, clientId) !== 'texts',
      ),
    receiverGroups,
    preload: () => undelivered.loadAll(),
    replayTo(connection) {
      if (connection.watches) {
        for (const frame of currentFrames.values()) writeNow(connection, frame);
      }
      const group = receiverGroupOf(connection);
      const batch = group && takeUndelivered(connection, group);
      if (group === undefined || batch === undefined) return;
      const { frames, at: position } = batch;
      // A socket that returns to a run it already knows gets a bare `executing`, as in v1.
      const node = frames.length === 0 ? activeNode : nodeBeforeUndelivered;
      if (node !== null && group === 'client') {
        connection.sendText(encodeMessage({ type: 'executing', data: { node } }));
      }
      for (const frame of frames) writeNow(connection, frame);
      if (frames.length > 0) reachedIds.add(connection.sid);
      if (position > 0) deps.onCaughtUp?.(group, position);
    },
    hasUnreceived: () => undelivered.size() > 0,
    unreceivedBytes: () => undelivered.bytes(),
    dropDetails: () => undelivered.dropDetails(),
    supersede() {
      isSuperseded = true;
      if (clientId === null && isUnreached()) undelivered.takeAll();
    },
    markFetched() {
      isFetched = true;
      undelivered.takeAll();
    },
    receivedBy: (position) => (position > 0 && last.position === position ? [...last.groups] : []),
    skipReceived(upTo, subscribedSince) {
      // Sockets already have it: do not send it again.
      if (subscribedSince === 'later') remote.alreadyReceived = { ...upTo };
      discardReceived('client', upTo.client);
      discardReceived('hosted', upTo.hosted);
    },
    discardReceived,
  };

  function writeNow(connection: SocketConnection, frame: Frame): void {
    writeFrame(connection, encodeFrame(frame, promptId), frameScopeFor(connection, clientId));
  }

  /**
   * The frames for a socket that connects, by the rule of its dialect. `undefined`: the prompt is
   * not for it.
   */
  function takeUndelivered(
    connection: SocketConnection,
    group: ReceiverGroup,
  ): FrameBatch | undefined {
    const isByClientId = rulesOf(connection.dialect).lateSocket === 'missed-by-its-id';
    // A returning socket gets what it missed, whichever prompt is the last one.
    const isRecipient =
      isByClientId || reachedIds.has(connection.sid) || (isUnreached() && !isSuperseded);
    if (!isRecipient) return undefined;
    return group === 'client' || clientId === null
      ? undelivered.takeAll()
      : undelivered.takeUnsent();
  }
}

/** Position 0 means that positions do not matter: no other process has the prompt. */
function isAfterPosition(position: number, upTo: number): boolean {
  return position === 0 || position > upTo;
}

/**
 * The original server sends type 1 pictures of a prompt without `client_id`, whatever the socket
 * negotiated.
 */
function sendsMetadata(connection: SocketConnection, scope: FrameScope): boolean {
  return scope === 'everything' && connection.wantsMetadata();
}
