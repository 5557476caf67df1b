import {
  type PreviewMime,
  previewFrame,
  previewWithMetadataFrame,
  textFrame,
} from '../wire/frames.ts';
import type { V1Message } from '../wire/v1.ts';
import { type Load, createBacklog } from './backlog.ts';
import { type Ready, readyFrame } from './ready.ts';
import { type Session, encodeMessage } from './session.ts';

export type Picture = {
  readonly nodeId: string;
  readonly displayNodeId: string;
  readonly mime: PreviewMime;
  readonly bytes: Uint8Array;
  /** A result delivered over the socket, not a preview of one: nobody may miss it. */
  readonly essential: boolean;
};

/** What a prompt has to say to its sockets. A `step` carries the picture that belongs to it. */
export type Frame =
  | { readonly kind: 'json'; readonly message: V1Message }
  | {
      readonly kind: 'step';
      /** Absent while that of a large graph is held back. */
      readonly state?: V1Message;
      readonly progress: V1Message;
      readonly picture?: Picture;
    }
  | { readonly kind: 'picture'; readonly picture: Picture }
  | { readonly kind: 'text'; readonly nodeId: string; readonly text: string };

/** A frame as it goes to any number of sockets. */
type Encoded =
  | { readonly kind: 'json'; readonly type: V1Message['type']; readonly text: () => Ready }
  | { readonly kind: 'text'; readonly bytes: () => Ready }
  | { readonly kind: 'picture'; readonly picture: EncodedPicture }
  | {
      readonly kind: 'step';
      readonly state: (() => Ready) | undefined;
      readonly progress: () => Ready;
      readonly picture: EncodedPicture | undefined;
    };

type EncodedPicture = Pick<Picture, 'essential'> & {
  readonly plain: () => Ready;
  readonly withMetadata: () => Ready;
};

/** Where a prompt's frames go: its own client id, or every socket of its user when it named none. */
export type Address = {
  readonly user: string;
  readonly clientId: string | null;
  readonly promptId: string;
  /** What the prompt itself asked for (`extra_data.preview_method`); else the server's setting counts. */
  readonly previewMethod?: 'none';
};

const ENDS: ReadonlySet<V1Message['type']> = new Set([
  'execution_success',
  'execution_error',
  'execution_interrupted',
]);

export type PreviewMethod = 'auto' | 'negotiated' | 'none';

/** The line from one prompt to its sockets; what nobody received waits for one that fits. */
export type Channel = {
  readonly address: Address;
  /** `at`: its place in the prompt's journal. */
  send(frame: Frame, at: number): void;
  /** The same for one no socket here waits for: it is fetched when one is about to come. */
  sendLater(load: Load, at: number): void;
  hasListener(): boolean;
  /** A socket arrives soon: what it will be handed is fetched. */
  prepare(): Promise<void>;
  /** A socket arrived: hand it what no socket has received, or where the run is. */
  greet(session: Session): void;
  hasUnreceived(): boolean;
  /** Bytes kept for a socket that may come. */
  unreceivedBytes(): number;
  /** There is no room for more of it: only starts, nodes and ends stay. */
  shed(): void;
  /** Whether the last frame came from there and a socket has it. */
  isReceived(at: number): boolean;
  /** Sockets elsewhere have what was said up to there; nobody here needs to hear it any more. */
  skip(upTo: number): void;
  /** Sockets elsewhere have it; those here hear it all the same. */
  forget(upTo: number): void;
};

export function createChannel(
  address: Address,
  deps: {
    readonly sessions: () => Iterable<Session>;
    readonly previewMethod: PreviewMethod;
    /** A socket that came late has all up to there. */
    readonly onCaughtUp?: ((at: number) => void) | undefined;
    /** Something was kept for a socket that may come. */
    readonly onKeep?: (bytes: number) => void;
    /** Texts, pictures or outputs were dropped: there was too much for a socket that may come. */
    readonly onDrop?: () => void;
  },
): Channel {
  const { promptId, clientId, previewMethod = deps.previewMethod } = address;
  const unreceived = createBacklog(deps.onDrop);
  const elsewhere = { received: 0, over: 0 };
  let receivedAt = -1;
  let activeNode: string | null = null;
  let nodeBeforeUnreceived: string | null = null;
  /** The running node and its latest step and preview, for whoever starts to watch. */
  const scene = new Map<Frame['kind'], Frame>();

  function fits(session: Session): boolean {
    const isTheirs = clientId === null || session.sid === clientId;
    return session.isOpen() && !session.watches && isTheirs;
  }

  function deliver(frame: Frame, at: number): void {
    if (unreceived.size() === 0) nodeBeforeUnreceived = activeNode;
    noteActiveNode(frame);
    noteScene(frame);
    if (at > 0 && at <= elsewhere.over) return;
    const ready = encode(frame);
    let isReceived = false;
    for (const session of deps.sessions()) {
      if (!session.isOpen()) continue;
      const isTheirs = fits(session);
      isReceived ||= isTheirs;
      // The v1 server sends text frames to every socket, whoever submitted; ours stay with the user.
      if (isTheirs || session.watches || frame.kind === 'text') write(session, ready);
    }
    receivedAt = isReceived ? at : -1;
    if (isReceived || !isMissing(at)) return;
    const before = unreceived.bytes();
    unreceived.keep(frame, at);
    deps.onKeep?.(unreceived.bytes() - before);
  }

  /** Nobody anywhere has what came from this place, as far as is known; 0 is no place. */
  function isMissing(at: number): boolean {
    return at === 0 || at > elsewhere.received;
  }

  function forget(upTo: number): void {
    elsewhere.received = Math.max(elsewhere.received, upTo);
    const last = unreceived.forget(upTo);
    if (last) nodeBeforeUnreceived = nodeIn(last) ?? nodeBeforeUnreceived;
  }

  function noteActiveNode(frame: Frame): void {
    const node = nodeIn(frame);
    if (node === undefined) return;
    activeNode = node;
    for (const session of deps.sessions()) session.forgetPreview(promptId);
  }

  function noteScene(frame: Frame): void {
    if (frame.kind === 'text') return;
    if (frame.kind === 'json') {
      if (frame.message.type !== 'executing') return;
      scene.clear();
      if (frame.message.data.node !== null) scene.set('json', frame);
    } else if (frame.picture?.essential !== true) scene.set(frame.kind, frame);
  }

  /** What all sockets are sent, made once and only if one of them wants it. */
  function encode(frame: Frame): Encoded {
    switch (frame.kind) {
      case 'json': {
        const { type } = frame.message;
        return { kind: 'json', type, text: once(() => textOf(frame.message)) };
      }
      case 'text':
        return { kind: 'text', bytes: once(() => ready(textFrame(frame.nodeId, frame.text))) };
      case 'picture':
        return { kind: 'picture', picture: encodePicture(frame.picture) };
      case 'step': {
        const { state, progress, picture } = frame;
        return {
          kind: 'step',
          state: state && once(() => textOf(state)),
          progress: once(() => textOf(progress)),
          picture: picture && encodePicture(picture),
        };
      }
    }
  }

  function encodePicture(picture: Picture): EncodedPicture {
    const { bytes, mime, essential } = picture;
    return {
      essential,
      plain: once(() => ready(previewFrame(bytes, mime))),
      withMetadata: once(() => ready(metadataFrame(picture))),
    };
  }

  function write(session: Session, frame: Encoded): void {
    switch (frame.kind) {
      case 'json':
        return writeMessage(session, frame);
      case 'text':
        return session.sendBinary(frame.bytes());
      case 'picture':
        return writePicture(session, frame.picture);
      case 'step':
        return writeStep(session, frame);
    }
  }

  /** A `progress_state` that waits for room comes before the end. */
  function writeMessage(session: Session, { type, text }: Encoded & { kind: 'json' }): void {
    if (type === 'progress_state') return session.sendState(promptId, text);
    if (ENDS.has(type)) session.sendWaitingState(promptId);
    session.sendText(text());
  }

  /** v1 sends a type 4 picture before its `progress`, a type 1 picture after it. */
  function writeStep(
    session: Session,
    { state, progress, picture }: Encoded & { kind: 'step' },
  ): void {
    if (state) session.sendState(promptId, state);
    if (picture && session.wantsMetadata()) writePicture(session, picture);
    session.sendText(progress());
    if (picture && !session.wantsMetadata()) writePicture(session, picture);
  }

  function writePicture(session: Session, picture: EncodedPicture): void {
    const wanted = previewMethod === 'auto' || session.wantsMetadata();
    if (!picture.essential && (previewMethod === 'none' || !wanted)) return;
    const frame = session.wantsMetadata() ? picture.withMetadata() : picture.plain();
    if (picture.essential && !session.watches) session.sendBinary(frame);
    else session.sendPreview(promptId, frame);
  }

  function metadataFrame({ nodeId, displayNodeId, mime, bytes }: Picture): Buffer {
    return previewWithMetadataFrame(bytes, {
      node_id: nodeId,
      prompt_id: promptId,
      display_node_id: displayNodeId,
      parent_node_id: null,
      real_node_id: nodeId,
      image_type: mime,
    });
  }

  return {
    address,
    send: deliver,
    sendLater(load, at) {
      if (unreceived.size() === 0) nodeBeforeUnreceived = activeNode;
      if (isMissing(at)) unreceived.keepUnread(load, at);
    },
    hasListener: () => [...deps.sessions()].some(fits),
    prepare: () => unreceived.read(),
    greet(session) {
      if (session.watches) for (const frame of scene.values()) write(session, encode(frame));
      if (!fits(session)) return;
      const { frames, at } = unreceived.empty();
      // A socket that returns to a run it already knows gets v1's bare `executing`.
      const node = frames.length === 0 ? activeNode : nodeBeforeUnreceived;
      if (node !== null && clientId === session.sid) {
        session.sendText(encodeMessage({ type: 'executing', data: { node } }));
      }
      for (const frame of frames) write(session, encode(frame));
      if (at > 0) deps.onCaughtUp?.(at);
    },
    hasUnreceived: () => unreceived.size() > 0,
    unreceivedBytes: () => unreceived.bytes(),
    shed: () => unreceived.shed(),
    isReceived: (at) => at > 0 && receivedAt === at,
    skip(upTo) {
      elsewhere.over = upTo;
      forget(upTo);
    },
    forget,
  };
}

/** The node at work from this frame on; `undefined`: it does not say. */
function nodeIn(frame: Frame): string | null | undefined {
  const isIt = frame.kind === 'json' && frame.message.type === 'executing';
  return isIt ? frame.message.data.node : undefined;
}

function textOf(message: V1Message): Ready {
  return readyFrame(Buffer.from(encodeMessage(message)), 'text');
}

function ready(bytes: Buffer): Ready {
  return readyFrame(bytes, 'binary');
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
