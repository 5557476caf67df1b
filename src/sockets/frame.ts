import type { FrameOf, MessageOf, Picture } from '../translate/progress/progress-state.ts';
import { documentedErrorData } from '../translate/exception-types.ts';
import { withVideoList } from '../translate/outputs.ts';
import { previewFrame, previewWithMetadataFrame, textFrame } from '../protocol/binary-frames.ts';
import type { V1Message } from '../protocol/v1.ts';
import { encodeMessage } from './connection.ts';

/** A frame of a prompt for its sockets. A `step` may hold a picture. */
export type Frame = FrameOf<Picture>;

/** A frame encoded for any number of sockets; each form is encoded once, when first used. */
export type EncodedFrame =
  | ({ readonly kind: 'json'; readonly type: V1Message['type'] } & EncodedMessage)
  | { readonly kind: 'text'; readonly bytes: () => Buffer }
  | { readonly kind: 'picture'; readonly picture: EncodedPicture }
  | {
      readonly kind: 'step';
      readonly state: EncodedMessage | undefined;
      readonly progress: () => string;
      readonly picture: EncodedPicture | undefined;
    };

/** A message, encoded for local sockets and for hosted ones. */
type EncodedMessage = { readonly own: () => string; readonly documented: () => string };

export type EncodedPicture = {
  readonly kind: Picture['kind'];
  readonly plain: () => Buffer;
  readonly withMetadata: () => Buffer;
};

/** Encodes a frame of this prompt. */
export function encodeFrame(frame: Frame, promptId: string): EncodedFrame {
  switch (frame.kind) {
    case 'json':
      return encodeJson(frame);
    case 'text':
      return { kind: 'text', bytes: once(() => textFrame(frame.nodeId, frame.text)) };
    case 'picture':
      return { kind: 'picture', picture: encodePicture(frame.picture, promptId) };
    case 'step': {
      const { state, progress, picture } = frame;
      return {
        kind: 'step',
        state: state && encodeState(state),
        progress: once(() => encodeMessage(progress)),
        picture: picture && encodePicture(picture, promptId),
      };
    }
  }
}

function encodeState(message: MessageOf<'progress_state'>): EncodedMessage {
  return {
    own: once(() => encodeMessage(withoutClasses(message))),
    documented: once(() => encodeMessage(message)),
  };
}

/** The message as the local server sends it: only the hosted service names the class of a node. */
function withoutClasses({ type, data }: MessageOf<'progress_state'>): V1Message {
  const nodes = Object.entries(data.nodes).map(([id, named]) => {
    const { class_type: _, ...node } = named;
    return [id, node];
  });
  return { type, data: { ...data, nodes: Object.fromEntries(nodes) } };
}

function encodeJson(frame: Frame & { kind: 'json' }): EncodedFrame {
  const { message } = frame;
  const { type } = message;
  if (type === 'progress_state') return { kind: 'json', type, ...encodeState(message) };
  const own = once(() => encodeMessage(message));
  const documented = once(() => {
    const shown = documentedForm(frame);
    return shown === message ? own() : encodeMessage(shown);
  });
  return { kind: 'json', type, own, documented };
}

/** The message as the hosted service documents it; the same one where that has no other form. */
function documentedForm({ message, documented }: Frame & { kind: 'json' }): V1Message {
  if (message.type === 'execution_error' && documented !== undefined)
    return { ...message, data: documentedErrorData(message.data, documented) };
  if (message.type !== 'executed' || message.data.output === null) return message;
  const output = withVideoList(message.data.output);
  return output === message.data.output
    ? message
    : { ...message, data: { ...message.data, output } };
}

function encodePicture(picture: Picture, promptId: string): EncodedPicture {
  const { bytes, mime, kind } = picture;
  return {
    kind,
    plain: once(() => previewFrame(bytes, mime)),
    withMetadata: once(() => metadataFrame(picture, promptId)),
  };
}

/** Encodes a picture with its metadata. Keys are in v1's order. */
function metadataFrame({ nodeId, displayNodeId, mime, bytes }: Picture, promptId: string): Buffer {
  return previewWithMetadataFrame(bytes, {
    node_id: nodeId,
    prompt_id: promptId,
    display_node_id: displayNodeId,
    parent_node_id: null,
    real_node_id: nodeId,
    image_type: mime,
  });
}

/** Returns the node that runs from this frame on. `undefined`: the frame does not say. */
export function activeNodeIn(frame: Frame): string | null | undefined {
  const isExecuting = frame.kind === 'json' && frame.message.type === 'executing';
  return isExecuting ? frame.message.data.node : undefined;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
