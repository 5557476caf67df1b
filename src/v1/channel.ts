import type { V1Message } from '../wire/v1.ts';
import { type Share, isWithin, shareOf } from './audience.ts';
import { type Kept, type Load, createBacklog } from './backlog.ts';
import { rulesOf } from './dialect.ts';
import {
  type EncodedFrame,
  type EncodedPicture,
  type Frame,
  encodeFrame,
  nodeIn,
} from './frame.ts';
import { type PreviewMethod, isWanted } from './preview-method.ts';
import type { Audience, HeardSince, ReceivedUpTo } from './prompt-journal.ts';
import { type Session, encodeMessage } from './session.ts';

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

const ENDS: ReadonlySet<V1Message['type']> = new Set([
  'execution_success',
  'execution_error',
  'execution_interrupted',
]);

/** The line from one prompt to its sockets; frames that should have been received wait for a socket. */
export type Channel = {
  readonly address: Address;
  /** `at`: its place in the prompt's journal. */
  send(frame: Frame, at: number): void;
  /** The same for one no socket here waits for: it is fetched when one is about to come. */
  sendLater(load: Load, at: number): void;
  /** True when a socket is here that is sent more of it than texts. */
  hasListener(): boolean;
  /** Those with a socket here. */
  audiences(): readonly Audience[];
  /** A socket arrives soon: what it will be handed is fetched. */
  prepare(): Promise<void>;
  /** A socket arrived: hand it what it should have received, or where the run is. */
  greet(session: Session): void;
  hasUnreceived(): boolean;
  /** Bytes kept for a socket that may come. */
  unreceivedBytes(): number;
  /** There is no room for more of it: only starts, nodes and ends stay. */
  shed(): void;
  /** The user has submitted another prompt. */
  supersede(): void;
  /** Its result was fetched: nothing of it needs to be told to a socket that comes. */
  settle(): void;
  /** Those who have the last frame, if that came from there. */
  receivedBy(at: number): readonly Audience[];
  /** Sockets elsewhere have what was said up to there, before this process heard of it. */
  skip(upTo: ReceivedUpTo, since: HeardSince): void;
  /** Sockets elsewhere have it; those here hear it all the same. */
  forget(audience: Audience, upTo: number): void;
};

export function createChannel(
  address: Address,
  deps: {
    readonly sessions: () => Iterable<Session>;
    readonly previewMethod: PreviewMethod;
    /** A socket that came late has all up to there. */
    readonly onCaughtUp?: ((audience: Audience, at: number) => void) | undefined;
    /** Something was kept for a socket that may come. */
    readonly onKeep?: (bytes: number) => void;
    /** Texts, pictures or outputs were dropped: there was too much for a socket that may come. */
    readonly onDrop?: () => void;
  },
): Channel {
  const { promptId, clientId } = address;
  const backlog = createBacklog(deps.onDrop);
  const elsewhere = { received: { client: 0, hosted: 0 }, over: { client: 0, hosted: 0 } };
  /** Ids of the sockets here that were sent some of it. */
  const heardBy = new Set<string>();
  let last: { readonly at: number; readonly by: ReadonlySet<Audience> } = { at: 0, by: new Set() };
  let hasStarted = false;
  let isSuperseded = false;
  let isSettled = false;
  let activeNode: string | null = null;
  let nodeBeforeBacklog: string | null = null;
  /** The running node and its latest step and preview, for whoever starts to watch. */
  const scene = new Map<Frame['kind'], Frame>();

  function audienceOf(session: Session): Audience | undefined {
    if (!session.isOpen() || session.watches) return undefined;
    if (shareOf(session, clientId) !== 'everything') return undefined;
    return session.sid === clientId ? 'client' : 'hosted';
  }

  function audiences(): readonly Audience[] {
    return [...new Set([...deps.sessions()].flatMap((session) => audienceOf(session) ?? []))];
  }

  function deliver(frame: Frame, at: number): void {
    if (backlog.size() === 0) nodeBeforeBacklog = activeNode;
    noteActiveNode(frame);
    noteScene(frame);
    hasStarted ||= frame.kind === 'json' && frame.message.type === 'execution_start';
    const encoded = encodeFrame(frame, promptId);
    const by = new Set<Audience>();
    for (const session of deps.sessions()) {
      if (!session.isOpen()) continue;
      const share = shareOf(session, clientId);
      const audience = audienceOf(session);
      const isOver = at > 0 && at <= elsewhere.over[audience ?? 'hosted'];
      if (isOver || !isWithin(share, frame, hasStarted)) continue;
      write(session, encoded, share);
      if (audience) heardBy.add(session.sid);
      if (audience) by.add(audience);
    }
    last = { at, by };
    keep(frame, at);
  }

  function keep(frame: Frame, at: number): void {
    if (!mayComeFor(at, last.by)) return;
    const before = backlog.bytes();
    backlog.keep(frame, at, isUnheard(at, last.by) ? 'unheard' : 'heard');
    deps.onKeep?.(backlog.bytes() - before);
  }

  /** True when a socket may come that lacks what came from this place. */
  function mayComeFor(at: number, by: ReadonlySet<Audience>): boolean {
    if (isSettled || address.isV2Job) return false;
    if (clientId !== null) return !by.has('client') && isAfter(at, elsewhere.received.client);
    return isUnheard(at, by) && !(isSuperseded && isNew());
  }

  function isUnheard(at: number, by: ReadonlySet<Audience>): boolean {
    const { client, hosted } = elsewhere.received;
    return by.size === 0 && isAfter(at, Math.max(client, hosted));
  }

  /** No socket has been sent any of it, as far as is known. */
  function isNew(): boolean {
    const { client, hosted } = elsewhere.received;
    return heardBy.size === 0 && client === 0 && hosted === 0;
  }

  function forget(audience: Audience, upTo: number): void {
    const { received } = elsewhere;
    received[audience] = Math.max(received[audience], upTo);
    if (audience === 'hosted' && clientId !== null) return backlog.hearUpTo(upTo);
    const gone = backlog.forget(upTo);
    if (gone) nodeBeforeBacklog = nodeIn(gone) ?? nodeBeforeBacklog;
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
    } else if (frame.picture?.kind !== 'result') scene.set(frame.kind, frame);
  }

  function write(session: Session, frame: EncodedFrame, share: Share): void {
    switch (frame.kind) {
      case 'json':
        return writeMessage(session, frame);
      case 'text':
        return session.sendBinary(frame.bytes());
      case 'picture':
        return writePicture(session, frame.picture, share);
      case 'step':
        return writeStep(session, frame, share);
    }
  }

  /** A `progress_state` that waits for room comes before the end. */
  function writeMessage(session: Session, frame: EncodedFrame & { kind: 'json' }): void {
    const text = frame[rulesOf(session.dialect).exceptionType];
    if (frame.type === 'progress_state') return session.sendState(promptId, text);
    if (ENDS.has(frame.type)) session.sendWaitingState(promptId);
    session.sendText(text());
  }

  /** v1 sends a type 4 picture before its `progress`, a type 1 picture after it. */
  function writeStep(
    session: Session,
    { state, progress, picture }: EncodedFrame & { kind: 'step' },
    share: Share,
  ): void {
    const isFirst = wantsMetadata(session, share);
    if (state) session.sendState(promptId, state);
    if (picture && isFirst) writePicture(session, picture, share);
    session.sendText(progress());
    if (picture && !isFirst) writePicture(session, picture, share);
  }

  function writePicture(session: Session, picture: EncodedPicture, share: Share): void {
    const methods = { server: deps.previewMethod, prompt: address.previewMethod };
    if (!isWanted(picture.kind, session, methods)) return;
    const frame = wantsMetadata(session, share) ? picture.withMetadata() : picture.plain();
    if (picture.kind === 'result' && !session.watches) session.sendBinary(frame);
    else session.sendPreview(promptId, frame);
  }

  return {
    address,
    send: deliver,
    sendLater(load, at) {
      if (backlog.size() === 0) nodeBeforeBacklog = activeNode;
      if (mayComeFor(at, new Set())) backlog.keepUnread(load, at);
    },
    hasListener: () =>
      [...deps.sessions()].some(
        (session) => session.isOpen() && shareOf(session, clientId) !== 'texts',
      ),
    audiences,
    prepare: () => backlog.read(),
    greet(session) {
      if (session.watches) {
        for (const frame of scene.values()) writeNow(session, frame);
      }
      const audience = audienceOf(session);
      const handed = audience && takeFor(session, audience);
      if (audience === undefined || handed === undefined) return;
      const { frames, at } = handed;
      // A socket that returns to a run it already knows gets v1's bare `executing`.
      const node = frames.length === 0 ? activeNode : nodeBeforeBacklog;
      if (node !== null && audience === 'client') {
        session.sendText(encodeMessage({ type: 'executing', data: { node } }));
      }
      for (const frame of frames) writeNow(session, frame);
      if (frames.length > 0) heardBy.add(session.sid);
      if (at > 0) deps.onCaughtUp?.(audience, at);
    },
    hasUnreceived: () => backlog.size() > 0,
    unreceivedBytes: () => backlog.bytes(),
    shed: () => backlog.shed(),
    supersede() {
      isSuperseded = true;
      if (clientId === null && isNew()) backlog.empty();
    },
    settle() {
      isSettled = true;
      backlog.empty();
    },
    receivedBy: (at) => (at > 0 && last.at === at ? [...last.by] : []),
    skip(upTo, since) {
      // It came too late here to be new to a socket.
      if (since === 'later') elsewhere.over = { ...upTo };
      forget('client', upTo.client);
      forget('hosted', upTo.hosted);
    },
    forget,
  };

  function writeNow(session: Session, frame: Frame): void {
    write(session, encodeFrame(frame, promptId), shareOf(session, clientId));
  }

  /** The frames handed to a socket that arrives, by the rule of its dialect; `undefined`: it is not its prompt. */
  function takeFor(session: Session, audience: Audience): Kept | undefined {
    const isById = rulesOf(session.dialect).lateSocket === 'missed-by-its-id';
    // A socket that returns is handed what it has missed, whichever prompt is the last.
    const isMeant = isById || heardBy.has(session.sid) || (isNew() && !isSuperseded);
    if (!isMeant) return undefined;
    return audience === 'client' || clientId === null ? backlog.empty() : backlog.hear();
  }
}

/** 0 is no place in a journal. */
function isAfter(at: number, upTo: number): boolean {
  return at === 0 || at > upTo;
}

/** The original server knows no socket of a prompt without `client_id`, nor what it negotiated. */
function wantsMetadata(session: Session, share: Share): boolean {
  return share === 'everything' && session.wantsMetadata();
}
