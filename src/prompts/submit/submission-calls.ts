import { reached } from '../../lib/crash-point.ts';
import { isGone } from '../../protocol/job-api.ts';
import type { Job } from '../../protocol/v2.ts';
import { errorsInOrder } from '../../translate/node-errors.ts';
import type { PromptPorts } from '../ports.ts';
import { LeadershipLost } from '../prompt-event-log.ts';
import { type Attempt, brokenOff, sendPlan } from './attempt.ts';
import { untilAborted } from '../../lib/concurrency.ts';
import type { PendingSubmission } from './pending-submission.ts';
import { KEY_LABEL, type SubmissionPlan, toStoredPlan, workflowOf } from './plan.ts';
import type { Input, SearchInput, SubmissionState } from './submission-table.ts';

/** The result of one search for the job of a prompt. */
type Search = {
  readonly result: SearchInput;
  readonly job?: Job | undefined;
  /** True when the service does not know the list of jobs, so it may not remember keys either. */
  readonly mayForgetKeys: boolean;
};

/** Calls the upstream for submissions: sends plans, searches for jobs, cancels late jobs. */
export class SubmissionCalls {
  readonly #ports: PromptPorts;

  constructor(ports: PromptPorts) {
    this.#ports = ports;
  }

  /** Records state and plan: a process that takes over continues from there. */
  async record(
    submission: PendingSubmission,
    state: SubmissionState,
    plan: SubmissionPlan,
  ): Promise<void> {
    const { prompts } = this.#ports.records;
    await prompts.update(plan.promptKey, 'unlinked', { state, ...toStoredPlan(plan) });
    Object.assign(submission, { state, plan });
  }

  /** Sends the plan. A plan that may have made a job is sent unchanged. */
  async send(submission: PendingSubmission): Promise<Input> {
    const { facts, plan } = submission;
    const state = submission.state === 'outbox' ? 'sent' : submission.state;
    const { isFirstSend } = submission;
    submission.isFirstSend = false;
    if (!isFirstSend) await this.record(submission, state, plan);
    if (submission.isCancelRequested) return 'cancelled';
    const sending = this.#send(submission, (changed) => this.record(submission, state, changed));
    submission.isBusy = !facts.mayHaveJob;
    const sent = facts.mayHaveJob
      ? await leftOnCancel(submission, sending)
      : await sending.finally(() => (submission.isBusy = false));
    this.#noteAttempt(submission, sent);
    if (isFirstSend) reached('after-submit');
    return sent.input;
  }

  /** A failure inside Holdover leaves the outcome unknown: the request may have been sent. */
  async #send(
    { caller, plan, facts, draft }: PendingSubmission,
    record: (plan: SubmissionPlan) => Promise<void>,
  ): Promise<Attempt> {
    try {
      return await sendPlan(this.#ports, caller, plan, {
        record: facts.mayHaveJob ? undefined : record,
        graphJson: draft?.graphJson,
      });
    } catch (error) {
      if (error instanceof LeadershipLost) throw error;
      const logged = { event: 'submission.send_failed', err: error, user: caller.user };
      this.#ports.frames.log.error(logged, 'sending a submission failed; its outcome is unknown');
      return brokenOff(plan);
    }
  }

  #noteAttempt(submission: PendingSubmission, sent: Attempt): void {
    submission.facts.noteAttempt(sent, this.#ports.policy.deadlineClock.now());
    submission.plan = sent.plan;
    const added = Object.entries(sent.nodeErrors);
    if (added.length > 0) {
      const known = [...Object.entries(submission.nodeErrors), ...added];
      submission.nodeErrors = errorsInOrder(known, sent.plan.graph);
    }
    submission.failedAttempt = sent.input === 'accepted' ? undefined : sent;
    if (sent.job) submission.foundJob = sent.job;
  }

  /** Searches for the job of the prompt. */
  async search(submission: PendingSubmission): Promise<Input> {
    const { facts, plan, state } = submission;
    const { frames, policy } = this.#ports;
    const searched = await leftOnCancel(submission, this.#search(submission));
    const isOurs = state !== 'done' || searched.job?.metadata?.[KEY_LABEL] === plan.promptKey;
    // A job without the label may belong to another client with the same workflow.
    const shown = searched.job && !isOurs ? NOT_OURS : searched;
    submission.foundJob = shown.job;
    if (!shown.job) {
      const logged = { event: 'submission.job_not_found', promptId: submission.prompt?.promptId };
      frames.log.debug(logged, 'the search found no job of this prompt');
    }
    return facts.noteSearch(shown, policy.deadlineClock.now());
  }

  /** Searches, unless a call that was left when the prompt was cancelled brings the job. */
  async #search(submission: PendingSubmission): Promise<Search> {
    const left = submission.leftCall;
    submission.leftCall = undefined;
    const job = await left?.catch(() => undefined);
    if (job) return { result: 'found', job, mayForgetKeys: false };
    const { jobs, records } = this.#ports;
    const { caller, plan, createdAtMs } = submission;
    const searched = await jobs.api.search(caller, {
      workflow: workflowOf(plan),
      metadata: { [KEY_LABEL]: plan.promptKey },
      extraData: plan.secrets,
      sentAtMs: createdAtMs,
      isClaimed: (jobId) => records.prompts.hasJob(jobId),
    });
    if (searched.ok) {
      const { kind, job: found, mayForgetKeys = false } = searched.value;
      return { result: kind, job: found, mayForgetKeys };
    }
    const { engineDown, code } = searched.error;
    const failure = code === 'upstream_unreachable' ? 'unreachable' : 'no answer';
    return { result: engineDown ? 'engine down' : failure, mayForgetKeys: false };
  }

  /** Cancels a job that was found after the end of its prompt. True when it is gone. */
  async cancelLateJob({ caller, key, prompt, foundJob }: PendingSubmission): Promise<boolean> {
    if (!foundJob) return true;
    // Another process may have taken the prompt over before it ended here: then the job is wanted.
    const row = await this.#ports.records.prompts.get(key);
    if (row && row.state !== 'done') return true;
    const cancelled = await this.#ports.jobs.api.cancel(caller, foundJob.id);
    if (!cancelled.ok && !isGone(cancelled.error)) return false;
    const { user } = caller;
    const facts = { event: 'submission.late_job_cancelled', user, promptId: prompt?.promptId };
    const text = 'cancelled a job that was found after its prompt had ended';
    this.#ports.frames.log.info({ ...facts, jobId: foundJob.id }, text);
    return true;
  }
}

const NOT_OURS = { result: 'not seen', job: undefined, mayForgetKeys: false } as const;

/** Leaves a call when the prompt is cancelled, so that the prompt ends at once. */
async function leftOnCancel<T extends { readonly job?: Job | undefined }>(
  submission: PendingSubmission,
  call: Promise<T>,
): Promise<T> {
  try {
    return await untilAborted(call, submission.wake.signal);
  } catch (error) {
    if (submission.wake.signal.aborted) submission.leftCall = call.then(({ job }) => job);
    submission.leftCall?.catch(() => {});
    throw error;
  }
}
