import type { Job } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompts.ts';

/** A job that was lost or ended before it started. `job` absent: its service does not have it. */
export type MissingJob = {
  readonly job: Job | undefined;
  /** When this job was last reported as queued; `undefined`: not since this process follows it. */
  readonly lastQueuedAtMs: number | undefined;
};

/** `final`: the job has ended; `not yet`: the service could not say, or has the job after all. */
export type ResendResult = 'sent' | 'final' | 'not yet';

/**
 * Sends a prompt again whose job was lost before it started, because the engine behind the service
 * died. The prompt goes to the outbox with another key, since the old one may be used up.
 */
export type Resend = (prompt: LivePrompt, missing: MissingJob) => Promise<ResendResult>;
