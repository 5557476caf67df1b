import { rulesOf } from '../dialects/dialect.ts';
import type { V1Message } from '../protocol/v1.ts';
import type { SocketConnection } from './connection.ts';
import type { FrameScope } from './frame-scope.ts';
import type { EncodedFrame, EncodedPicture } from './frame.ts';
import { type PreviewMethod, acceptsPicture } from './preview-method.ts';

/** The prompt whose frames are written, and the preview methods of server and prompt. */
export type FrameContext = {
  readonly promptId: string;
  readonly previewMethods: {
    readonly server: PreviewMethod;
    readonly prompt: PreviewMethod | undefined;
  };
};

const END_MESSAGES: ReadonlySet<V1Message['type']> = new Set([
  'execution_success',
  'execution_error',
  'execution_interrupted',
]);

/** Writes a frame to a connection, in the form the connection negotiated. */
export function writeFrame(
  connection: SocketConnection,
  frame: EncodedFrame,
  scope: FrameScope,
  context: FrameContext,
): void {
  switch (frame.kind) {
    case 'json':
      return writeMessage(connection, frame, context);
    case 'text':
      return connection.sendBinary(frame.bytes());
    case 'picture':
      return writePicture(connection, frame.picture, scope, context);
    case 'step':
      return writeStep(connection, frame, scope, context);
  }
}

/** Writes a message. A delayed `progress_state` is sent before the end of its prompt. */
function writeMessage(
  connection: SocketConnection,
  frame: EncodedFrame & { kind: 'json' },
  { promptId }: FrameContext,
): void {
  const { results, nodeStates } = rulesOf(connection.dialect);
  if (frame.type === 'progress_state') return connection.sendState(promptId, frame[nodeStates]);
  const text = frame[results];
  if (END_MESSAGES.has(frame.type)) connection.flushState(promptId);
  connection.sendText(text());
}

/**
 * Writes a step. v1 sends a type 4 picture before its `progress`, and a type 1 picture after it.
 */
function writeStep(
  connection: SocketConnection,
  { state, progress, picture }: EncodedFrame & { kind: 'step' },
  scope: FrameScope,
  context: FrameContext,
): void {
  const isFirst = sendsMetadata(connection, scope);
  const form = rulesOf(connection.dialect).nodeStates;
  if (state) connection.sendState(context.promptId, state[form]);
  else connection.discardState(context.promptId);
  if (picture && isFirst) writePicture(connection, picture, scope, context);
  connection.sendText(progress());
  if (picture && !isFirst) writePicture(connection, picture, scope, context);
}

function writePicture(
  connection: SocketConnection,
  picture: EncodedPicture,
  scope: FrameScope,
  { promptId, previewMethods }: FrameContext,
): void {
  if (!acceptsPicture(picture.kind, connection, previewMethods)) return;
  const frame = sendsMetadata(connection, scope) ? picture.withMetadata() : picture.plain();
  if (picture.kind === 'result' && !connection.watches) connection.sendBinary(frame);
  else connection.sendPreview(promptId, frame);
}

/**
 * The original server sends type 1 pictures of a prompt without `client_id`, whatever the socket
 * negotiated.
 */
function sendsMetadata(connection: SocketConnection, scope: FrameScope): boolean {
  return scope === 'everything' && connection.wantsMetadata();
}
