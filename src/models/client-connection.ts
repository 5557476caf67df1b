import type { IncomingMessage, ServerResponse } from 'node:http';

/** The two ends of a call. An answer that waits for earlier ones has no connection of its own yet. */
export type CallConnection = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly writable: boolean;
};

/** Whether nobody is left who could be answered. */
export function isClientGone({ req, writable }: CallConnection): boolean {
  return !writable || req.socket.destroyed;
}

/** Tells once when the answer is over or the connection is; the result stops the watch. */
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
  // Each of the calls that came one after another over this connection listens.
  socket.setMaxListeners(0);
  res.once('close', handleClose);
  socket.once('close', handleClose);
  return stop;
}
