import type { ServerResponse } from 'node:http';

/** A signal that aborts when the caller disconnects. */
export function disconnectSignal(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  if (res.destroyed) controller.abort();
  res.once('close', () => controller.abort());
  // A write to a socket that has just closed is not an error.
  res.on('error', () => {});
  return controller.signal;
}
