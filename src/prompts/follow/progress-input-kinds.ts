import type { ProgressInput, ProgressState } from '../../translate/progress/progress-state.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type JobStatus } from '../../protocol/v2.ts';

/**
 * True when the event only names a node that is known to have begun: an entry would say nothing
 * new.
 */
export function isKnown(event: JobEvent, { runs }: ProgressState): boolean {
  if (event.event !== 'progress') return false;
  const { current_node: nodeId, step } = event.data;
  return typeof nodeId === 'string' && typeof step !== 'number' && runs.has(nodeId);
}

/** True when the input says that a job runs. */
export function startsJob(input: ProgressInput): boolean {
  return statusOf(input) === 'running';
}

/** True when the input shows that a node of the job is running, or has run. */
export function showsActivity(input: ProgressInput): boolean {
  if (input.kind === 'event' && input.event.event !== 'status') return true;
  return input.kind === 'output' || statusOf(input) === 'running';
}

/** True when the input is the end of a job, or announces it. */
export function endsJob(input: ProgressInput): boolean {
  if (input.kind === 'event' && input.event.event === 'status' && input.event.data.x_ends) {
    return true;
  }
  const status = statusOf(input);
  return status !== undefined && IS_TERMINAL[status];
}

function statusOf(input: ProgressInput): JobStatus | undefined {
  if (input.kind === 'event') {
    return input.event.event === 'status' ? input.event.data.status : undefined;
  }
  return input.kind === 'snapshot' || input.kind === 'settled' ? input.job.status : undefined;
}
