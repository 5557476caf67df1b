import type { IncomingMessage, ServerResponse } from 'node:http';

/** The two ends of a call. An answer that waits for earlier ones has no connection of its own yet. */
export type CallConnection = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly writable: boolean;
};

/** True when the client has left. */
export function isClientGone({ req, writable }: CallConnection): boolean {
  return !writable || req.socket.destroyed;
}

/**
 * Closes an answer that waits for earlier ones of its connection when the connection is gone. Node tells only the
 * answer that has its turn; reservations and prompts wait for `close`.
 */
export function closeQueuedAnswer({ socket }: IncomingMessage, response: ServerResponse): void {
  if (response.socket !== null) return;
  const handleClose = (): void => {
    if (response.destroyed || response.socket !== null) return;
    response.destroy();
    response.emit('close');
  };
  // Each queued call of this connection adds a listener.
  socket.setMaxListeners(0);
  socket.once('close', handleClose);
  response.once('close', () => socket.off('close', handleClose));
}
