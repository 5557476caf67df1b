import type { Logger } from '../../observability/log.ts';
import type { UpstreamCapabilities } from './capabilities.ts';

/**
 * Says once that a cancel was answered with success and the job waits on. The self-hosted server
 * asks its engine and does not look at the answer: an engine without that route cancels nothing.
 * Taking a job out of a queue is done when it is answered; one that runs may go on for a while.
 */
export function warnIgnoredCancel({
  capabilities,
  log,
}: {
  readonly capabilities: Pick<UpstreamCapabilities, 'ignoresCancel'>;
  readonly log: Logger;
}): void {
  if (capabilities.ignoresCancel) return;
  capabilities.ignoresCancel = true;
  log.warn({ event: 'upstream.cancel_ignored' }, CANCEL_IGNORED);
}

const CANCEL_IGNORED =
  'the job service answered a cancel with success, but the job still waits: it stays in the queue ' +
  'and will run. Behind comfy-api-proxy the engine must have POST /api/jobs/{id}/cancel';
