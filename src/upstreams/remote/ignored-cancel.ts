import type { RemoteClient } from '../remote-calls/calls.ts';

/**
 * Warns once that a cancel was answered with success and the job still waits. The self-hosted
 * server asks its engine and ignores the answer: an engine without that route cancels nothing. A
 * queued job is removed when the cancel is answered; a running job may continue for a while.
 */
export function warnIgnoredCancel({ capabilities, log }: RemoteClient): void {
  if (capabilities.ignoresCancel) return;
  capabilities.ignoresCancel = true;
  log.warn({ event: 'upstream.cancel_ignored' }, CANCEL_IGNORED);
}

const CANCEL_IGNORED =
  'the job service answered a cancel with success, but the job still waits: it stays in the queue ' +
  'and will run. Behind comfy-api-proxy the engine must have POST /api/jobs/{id}/cancel';
