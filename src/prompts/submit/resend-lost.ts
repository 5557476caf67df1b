import { reached } from '../../lib/crash-point.ts';
import { isGone } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { LostJob, ResendLost } from '../follow/lost-job.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';
import { backoffMs } from '../submission-pace.ts';
import type { Submissions } from './submissions.ts';
import {
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

export function createResendLost(ports: PromptPorts, submissions: Submissions): ResendLost {
  const { jobs, frames, policy } = ports;
  const { prompts } = ports.records;
  const dropCounts = new WeakMap<LivePrompt, number>();

  /**
   * Counts how often in a row the jobs of a prompt were lost before they were reported as queued.
   */
  function countDropped(prompt: LivePrompt, { lastQueuedAtMs }: LostJob): number {
    const count = lastQueuedAtMs === undefined ? (dropCounts.get(prompt) ?? 0) + 1 : 0;
    dropCounts.set(prompt, count);
    return count;
  }

  function mayHaveBegun(prompt: LivePrompt, { job, lastQueuedAtMs }: LostJob): boolean {
    const { status, hasEvidence, startedAtMs } = prompt;
    if (status !== 'queued' || hasEvidence || startedAtMs !== null) return true;
    if (job && (job.started_at !== null || job.outputs.length > 0)) return true;
    return policy.clock.now() - (lastQueuedAtMs ?? prompt.createdAtMs) > MIN_RETENTION_MS;
  }

  /** Cancels the old job, so that it cannot run beside the new one. True when it is gone. */
  async function isJobGone(prompt: LivePrompt, jobId: string): Promise<boolean> {
    const cancelled = await jobs.api.cancel(prompt.caller, jobId);
    if (!cancelled.ok) return isGone(cancelled.error);
    const { status } = cancelled.value;
    return IS_TERMINAL[status] && status !== 'succeeded';
  }

  return async (prompt, lost) => {
    if (!policy.traits.isService || prompt.cancelRequested || mayHaveBegun(prompt, lost))
      return 'final';
    const row = await prompts.get(prompt.key);
    if (!row || row.jobId === null || row.startedAtMs !== null || !isSubmittedThroughV1(row))
      return 'final';
    const lastPlan = restorePlan(row, prompt.caller);
    if (lastPlan.lacksSecrets) return 'final';
    if (!(await isJobGone(prompt, row.jobId))) return 'not yet';
    if (countDropped(prompt, lost) > MAX_DROPS) return 'final';
    const plan = withNewKey(lastPlan);
    const waiting = { state: 'outbox', jobId: null, ...toStoredPlan(plan) } as const;
    await prompts.update(prompt.key, 'live', waiting);
    reached('after-detach');
    const { promptId } = prompt;
    const facts = { event: 'prompt.resent', user: row.user, promptId, jobId: row.jobId };
    frames.log.warn(facts, 'the job service lost a queued prompt; sending it again');
    frames.livePrompts.clearJob(prompt);
    const waitMs = backoffMs(policy.pace, newKeyCount(plan) - 1);
    await submissions.continue({ prompt, plan, state: 'outbox', waitMs });
    return 'sent';
  };
}
