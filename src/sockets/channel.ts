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
import type { ReceiverGroup, SubscribedSince, ReceivedUpTo } from '../prompts/prompt-event-log.ts';
import { type SocketConnection, encodeMessage } from './connection.ts';

/** The prompt whose frames these are, and the `client_id` it named. */
export type Address = {
  readonly user: string;
  readonly clientId: string | null;
  readonly promptId: string;
  /** What the prompt itself asked for (`extra_data.preview_method`); else the server's setting counts. */
  readonly previewMethod?: PreviewMethod | undefined;
  /** A job submitted through v2 has events of its own: nothing of it waits for a socket. */
  readonly isV2Job?: boolean;
};

const END_MESSAGES: ReadonlySet<V1Message['type']> = new Set([
  'execution_success',
  'execution_error',
  'execution_interrupted',
]);

/** The line from one prompt to its sockets; frames that should have been received wait for a socket. */
export type Channel = {
  readonly address: Address;
  /** `at`: its place in the prompt's journal. */
  send(frame: Frame, position: number): void;
  /** The same for one no socket here waits for: it is fetched when one is about to come. */
  sendLater(loader: FrameLoader, position: number): void;
  /** True when a socket is here that is sent more of it than texts. */
  hasListener(): boolean;
  /** Those with a socket here. */
  receiverGroups(): readonly ReceiverGroup[];
  /** A socket arrives soon: what it will be handed is fetched. */
  preload(): Promise<void>;
  /** A socket arrived: hand it what it should have received, or where the run is. */
  replayTo(connection: SocketConnection): void;
  hasUnreceived(): boolean;
  /** Bytes kept for a socket that may come. */
  unreceivedBytes(): number;
  /** There is no room for more of it: only starts, nodes and ends stay. */
  dropDetails(): void;
  /** The user has submitted another prompt. */
  supersede(): void;
  /** Its result was fetched: nothing of it needs to be told to a socket that comes. */
  markFetched(): void;
  /** Those who have the last frame, if that came from there. */
  receivedBy(position: number): readonly ReceiverGroup[];
  /** Sockets elsewhere have what was said up to there, before this process heard of it. */
  skipReceived(upTo: ReceivedUpTo, subscribedSince: SubscribedSince): void;
  /** Sockets elsewhere have it; those here hear it all the same. */
  discardReceived(group: ReceiverGroup, upTo: number): void;
};

export function createChannel(
  address: Address,
  deps: {
    readonly connections: () => Iterable<SocketConnection>;
    readonly previewMethod: PreviewMethod;
    /** A socket that came late has all up to there. */
    readonly onCaughtUp?: ((group: ReceiverGroup, position: number) => void) | undefined;
    /** Something was kept for a socket that may come. */
    readonly onAdd?: (bytes: number) => void;
    /** Texts, pictures or outputs were dropped: there was too much for a socket that may come. */
    readonly onDrop?: () => void;
  },
): Channel {
  const { promptId, clientId } = address;
  const undelivered = createUndeliveredFrames(deps.onDrop);
  const remote = { received: { client: 0, hosted: 0 }, alreadyReceived: { client: 0, hosted: 0 } };
  /** Ids of the sockets here that were sent some of it. */
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
  /** The running node and its latest step and preview, for whoever starts to watch. */
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

  /** True when a socket may come that lacks what came from this place. */
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

  /** No socket has been sent any of it, as far as is known. */
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

  /** A `progress_state` that waits for room comes before the end. */
  function writeMessage(
    connection: SocketConnection,
    frame: EncodedFrame & { kind: 'json' },
  ): void {
    const text = frame[rulesOf(connection.dialect).exceptionType];
    if (frame.type === 'progress_state') return connection.sendState(promptId, text);
    if (END_MESSAGES.has(frame.type)) connection.flushState(promptId);
    connection.sendText(text());
  }

  /** v1 sends a type 4 picture before its `progress`, a type 1 picture after it. */
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
      // A socket that returns to a run it already knows gets v1's bare `executing`.
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
      // It came too late here to be new to a socket.
      if (subscribedSince === 'later') remote.alreadyReceived = { ...upTo };
      discardReceived('client', upTo.client);
      discardReceived('hosted', upTo.hosted);
    },
    discardReceived,
  };

  function writeNow(connection: SocketConnection, frame: Frame): void {
    writeFrame(connection, encodeFrame(frame, promptId), frameScopeFor(connection, clientId));
  }

  /** The frames handed to a socket that arrives, by the rule of its dialect; `undefined`: it is not its prompt. */
  function takeUndelivered(
    connection: SocketConnection,
    group: ReceiverGroup,
  ): FrameBatch | undefined {
    const isByClientId = rulesOf(connection.dialect).lateSocket === 'missed-by-its-id';
    // A socket that returns is handed what it has missed, whichever prompt is the last.
    const isRecipient =
      isByClientId || reachedIds.has(connection.sid) || (isUnreached() && !isSuperseded);
    if (!isRecipient) return undefined;
    return group === 'client' || clientId === null
      ? undelivered.takeAll()
      : undelivered.takeUnsent();
  }
}

/** 0 is no place in a journal. */
function isAfterPosition(position: number, upTo: number): boolean {
  return position === 0 || position > upTo;
}

/** The original server knows no socket of a prompt without `client_id`, nor what it negotiated. */
function sendsMetadata(connection: SocketConnection, scope: FrameScope): boolean {
  return scope === 'everything' && connection.wantsMetadata();
}
