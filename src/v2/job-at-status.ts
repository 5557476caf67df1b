import { type Job, type JobStatus, IS_TERMINAL } from '../protocol/v2.ts';

type JobMetrics = NonNullable<Job['metrics']>;

/** How far a job with each status has come. */
const STAGE = {
  queued: 0,
  running: 1,
  canceling: 2,
  succeeded: 3,
  canceled: 3,
  failed: 3,
  expired: 3,
} as const satisfies Record<JobStatus, number>;

/**
 * Returns the job as a `status` event shows it: a job with a later status is shown as it was at
 * this one. `undefined` if the job ended in another way than the event says.
 */
export function jobAtStatus(job: Job, status: JobStatus): Job | undefined {
  if (IS_TERMINAL[status]) return job.status === status ? job : undefined;
  // These members may be long, and the events of the nodes carry them.
  const { x_cached_nodes: _nodes, x_ui: _ui, ...shown } = job;
  if (STAGE[job.status] <= STAGE[status]) return { ...shown, status };
  const hasBegun = status !== 'queued';
  return {
    ...shown,
    status,
    started_at: hasBegun ? job.started_at : null,
    completed_at: null,
    queue_position: null,
    progress: null,
    outputs: [],
    error: null,
    ...(job.metrics && { metrics: metricsAt(job.metrics, status) }),
  };
}

function metricsAt(metrics: JobMetrics, status: JobStatus): JobMetrics {
  return { ...metrics, execution_ms: null, ...(status === 'queued' && { queue_ms: null }) };
}
