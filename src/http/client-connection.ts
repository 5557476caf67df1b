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

/** Calls `onClose` once, when the answer or the connection is over. The result stops the watch. */
export function onceClosed(
  { req: { socket }, res }: CallConnection,
  onClose: () => void,
): () => void {
  const stop = (): void => {
    res.off('close', handleClose);
    socket.off('close', handleClose);
  };
  const handleClose = (): void => {
    stop();
    onClose();
  };
  // Each pipelined call over this connection adds a listener.
  socket.setMaxListeners(0);
  res.once('close', handleClose);
  socket.once('close', handleClose);
  return stop;
}
