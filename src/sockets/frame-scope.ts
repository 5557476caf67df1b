import { rulesOf } from '../dialects/dialect.ts';
import type { Frame } from './frame.ts';
import type { SocketConnection } from './connection.ts';

/** The frames of a prompt that a socket is sent. */
export type FrameScope =
  | 'everything'
  /** The frames the original server sends to all sockets when a prompt has no `client_id`. */
  | 'broadcasts'
  /** The original server sends the TEXT frames of every prompt to all sockets. */
  | 'texts';

/** The scope of a socket for a prompt of its user. `clientId: null`: the prompt named none. */
export function frameScopeFor(
  { sid, dialect, watches }: SocketConnection,
  clientId: string | null,
): FrameScope {
  if (watches) return 'everything';
  const { promptWithClientId, promptWithoutClientId } = rulesOf(dialect);
  if (clientId === null) return promptWithoutClientId;
  return promptWithClientId === 'all-sockets' || sid === clientId ? 'everything' : 'texts';
}

/** `started`: its `execution_start` was sent. */
type PromptPhase = 'before start' | 'started';

/**
 * True when the frame is in the scope. The original sends no frame of a prompt that was deleted
 * from the queue before its `execution_start`, so its interruption goes to no other socket.
 */
export function isInScope(scope: FrameScope, frame: Frame, phase: PromptPhase): boolean {
  if (scope === 'everything' || frame.kind === 'text') return true;
  return scope === 'broadcasts' && isBroadcast(frame, phase);
}

function isBroadcast(frame: Frame, phase: PromptPhase): boolean {
  if (frame.kind !== 'json') return true;
  const { type } = frame.message;
  return type === 'progress_state' || (type === 'execution_interrupted' && phase === 'started');
}
