import { reached } from '../crash-point.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { type JobApi, isGone } from '../wire/jobs.ts';
import { type Job, IS_TERMINAL } from '../wire/v2.ts';
import type { Board, LivePrompt } from './board.ts';
import type { Outbox } from './outbox.ts';
import type { Pace } from './pace.ts';
import { intentOf, isOurs, planOfRow, resendsOf, sentAgain } from './plan.ts';

/** The present state of a job that never began: nothing (its service does not have it), or its end. */
type Vanished = {
  readonly job: Job | undefined;
  /** When this job was last seen to wait; `undefined`: not since it is followed here. */
  readonly waitedAtMs: number | undefined;
};

/** `final`: its end stands; `not yet`: the service could not say, or has it after all. */
type Resent = 'sent' | 'final' | 'not yet';

/**
 * Sends a prompt again whose job is gone and never began: the engine behind the service died and
 * lost what waited there. The prompt waits in the outbox as if it had not been sent before, under
 * another key, since the one before may be used up.
 */
export type Resend = (prompt: LivePrompt, vanished: Vanished) => Promise<Resent>;

type Deps = {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly jobs: Pick<JobApi, 'cancel'>;
  readonly board: Board;
  readonly outbox: Pick<Outbox, 'put'>;
  readonly pace: Pace;
  readonly log: Logger;
  readonly now: () => number;
  /** True when the service may lose jobs it took; the embedded engine has them in the same ledger. */
  readonly mayLoseJobs: boolean;
};

/** A service that drops a prompt on arrival, and again, has decided; no engine dies that often. */
const DROPPED_AT_MOST = 3;
/** Services keep what is over for a day or more: a job gone sooner never was over. */
const SURELY_KEPT_MS = 20 * 60 * 60_000;

export function createResend(deps: Deps): Resend {
  const { ledger, jobs, board, outbox, pace, log, now } = deps;

  const dropped = new WeakMap<LivePrompt, number>();

  /** How often in a row its jobs were gone before they were seen to wait. */
  function countDropped(prompt: LivePrompt, { waitedAtMs }: Vanished): number {
    const count = waitedAtMs === undefined ? (dropped.get(prompt) ?? 0) + 1 : 0;
    dropped.set(prompt, count);
    return count;
  }

  function mayHaveBegun(prompt: LivePrompt, { job, waitedAtMs }: Vanished): boolean {
    const { status, hasEvidence, startedAtMs } = prompt;
    if (status !== 'queued' || hasEvidence || startedAtMs !== null) return true;
    if (job && (job.started_at !== null || job.outputs.length > 0)) return true;
    return now() - (waitedAtMs ?? prompt.createdAtMs) > SURELY_KEPT_MS;
  }

  /** Should it turn up after all, it must not run beside the one that takes its place. */
  async function isCertain(prompt: LivePrompt, jobId: string): Promise<boolean> {
    const asked = await jobs.cancel(prompt.caller, jobId);
    if (!asked.ok) return isGone(asked.error);
    const { status } = asked.value;
    return IS_TERMINAL[status] && status !== 'succeeded';
  }

  return async (prompt, vanished) => {
    if (!deps.mayLoseJobs || prompt.cancelAsked || mayHaveBegun(prompt, vanished)) return 'final';
    const row = await ledger.prompts.get(prompt.key);
    if (!row || row.jobId === null || row.startedAtMs !== null || !isOurs(row)) return 'final';
    const before = planOfRow(row, prompt.caller);
    if (before.lacksSecrets) return 'final';
    if (!(await isCertain(prompt, row.jobId))) return 'not yet';
    if (countDropped(prompt, vanished) > DROPPED_AT_MOST) return 'final';
    const plan = sentAgain(before);
    await ledger.prompts.detach(prompt.key, intentOf(plan, 'here'));
    reached('after-detach');
    const { promptId } = prompt;
    log.warn(
      { event: 'prompt.resent', user: row.user, promptId, jobId: row.jobId },
      'the job service lost a prompt that was waiting there: it is sent again',
    );
    board.dismiss(prompt);
    const waitMs = Math.min(pace.retryMs.last, pace.retryMs.first * 2 ** (resendsOf(plan) - 1));
    await outbox.put({ prompt, plan, told: 'accepted', isInDoubt: false }, waitMs);
    return 'sent';
  };
}
