import { isoTime } from '../../lib/clock.ts';
import type { Job } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompt.ts';

/** A job that was lost, or ended before it started. Without `job`, the service does not have it. */
export type LostJob = {
  readonly job: Job | undefined;
  /** When this job was last reported as queued. `undefined`: not since this process follows it. */
  readonly lastQueuedAtMs: number | undefined;
};

/** `final`: the job has ended. `not yet`: the service could not say, or has the job after all. */
type ResendResult = 'sent' | 'final' | 'not yet';

/**
 * Sends a prompt again whose job was lost before it started, because the engine behind the service
 * died. The prompt goes to the outbox with a new key, since the old key may be used up.
 */
export type ResendLost = (prompt: LivePrompt, lost: LostJob) => Promise<ResendResult>;

/** True when the service says that its engine lost a job which was queued there. */
export function wasLostWhileQueued({ status, error, started_at: startedAt }: Job): boolean {
  return status === 'failed' && error?.code === 'worker_lost' && startedAt === null;
}

/** Returns a job that stands for one that was never made, or is gone. */
export function placeholderJob({ key, createdAtMs }: LivePrompt): Job {
  const createdAt = isoTime(createdAtMs);
  return {
    id: key,
    status: 'canceled',
    created_at: createdAt,
    started_at: null,
    completed_at: null,
    expires_at: createdAt,
    queue_position: null,
    progress: null,
    outputs: [],
    error: null,
    urls: { self: '', events: '', cancel: '' },
  };
}
