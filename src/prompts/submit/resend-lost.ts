import type { PromptRow } from '../../ledger/ledger.ts';
import { reached } from '../../lib/crash-point.ts';
import { isGone } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { LostJob, ResendLost } from '../follow/lost-job.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';
import { backoffMs } from '../submission-pace.ts';
import type { Submissions } from './submissions.ts';
import {
  type SubmissionPlan,
  toStoredPlan,
  isSubmittedThroughV1,
  restorePlan,
  newKeyCount,
  withNewKey,
} from './plan.ts';

/**
 * A service that drops a prompt on arrival this often does so on purpose: no engine dies that
 * often.
 */
const MAX_DROPS = 3;
/** Services keep ended jobs for a day or more, so a job that is gone sooner never ended. */
const MIN_RETENTION_MS = 20 * 60 * 60_000;

/** Sends the prompts again whose jobs were lost before they started. */
export class LostJobResender {
  readonly #ports: PromptPorts;
  readonly #submissions: Submissions;
  readonly #dropCounts = new WeakMap<LivePrompt, number>();

  constructor(ports: PromptPorts, submissions: Submissions) {
    this.#ports = ports;
    this.#submissions = submissions;
  }

  readonly resend: ResendLost = async (prompt, lost) => {
    const { traits } = this.#ports.policy;
    if (!traits.isService || prompt.cancelRequested || this.#mayHaveBegun(prompt, lost))
      return 'final';
    const row = await this.#ports.records.prompts.get(prompt.key);
    if (!row || row.jobId === null || row.startedAtMs !== null || !isSubmittedThroughV1(row))
      return 'final';
    const lastPlan = restorePlan(row, prompt.caller);
    if (lastPlan.lacksSecrets) return 'final';
    if (!(await this.#isJobGone(prompt, row.jobId))) return 'not yet';
    if (this.#countDropped(prompt, lost) > MAX_DROPS) return 'final';
    await this.#sendAgain(prompt, row, withNewKey(lastPlan));
    return 'sent';
  };

  #mayHaveBegun(prompt: LivePrompt, { job, lastQueuedAtMs }: LostJob): boolean {
    const { status, hasEvidence, startedAtMs, createdAtMs } = prompt;
    if (status !== 'queued' || hasEvidence || startedAtMs !== null) return true;
    if (job && (job.started_at !== null || job.outputs.length > 0)) return true;
    return this.#ports.policy.clock.now() - (lastQueuedAtMs ?? createdAtMs) > MIN_RETENTION_MS;
  }

  /** Cancels the old job, so that it cannot run beside the new one. True when it is gone. */
  async #isJobGone(prompt: LivePrompt, jobId: string): Promise<boolean> {
    const cancelled = await this.#ports.jobs.api.cancel(prompt.caller, jobId);
    if (!cancelled.ok) return isGone(cancelled.error);
    const { status } = cancelled.value;
    return IS_TERMINAL[status] && status !== 'succeeded';
  }

  /**
   * Counts how often in a row the jobs of a prompt were lost before they were reported as queued.
   */
  #countDropped(prompt: LivePrompt, { lastQueuedAtMs }: LostJob): number {
    const count = lastQueuedAtMs === undefined ? (this.#dropCounts.get(prompt) ?? 0) + 1 : 0;
    this.#dropCounts.set(prompt, count);
    return count;
  }

  async #sendAgain(prompt: LivePrompt, row: PromptRow, plan: SubmissionPlan): Promise<void> {
    const { records, frames, policy } = this.#ports;
    const waiting = { state: 'outbox', jobId: null, ...toStoredPlan(plan) } as const;
    await records.prompts.update(prompt.key, 'live', waiting);
    reached('after-detach');
    const { user, jobId } = row;
    const facts = { event: 'prompt.resent', user, promptId: prompt.promptId, jobId };
    frames.log.warn(facts, 'the job service lost a queued prompt; sending it again');
    frames.livePrompts.clearJob(prompt);
    const waitMs = backoffMs(policy.pace, newKeyCount(plan) - 1);
    await this.#submissions.continue({ prompt, plan, state: 'outbox', waitMs });
  }
}
