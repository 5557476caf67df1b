import type { IncomingMessage, ServerResponse } from 'node:http';

/** The two ends of a call. An answer that waits for earlier ones has no connection of its own yet. */
export type Ends = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly writable: boolean;
};

/** Whether nobody is left who could be answered. */
export function isGone({ req, writable }: Ends): boolean {
  return !writable || req.socket.destroyed;
}

/** Tells once when the answer is over or the connection is; the result stops the watch. */
export function watchClose({ req: { socket }, res }: Ends, tell: () => void): () => void {
  const stop = (): void => {
    res.off('close', heard);
    socket.off('close', heard);
  };
  const heard = (): void => {
    stop();
    tell();
  };
  // Each of the calls that came one after another over this connection listens.
  socket.setMaxListeners(0);
  res.once('close', heard);
  socket.once('close', heard);
  return stop;
}
