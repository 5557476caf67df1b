import { createLazyJson } from '../../lib/lazy-json.ts';
import type { Job } from '../../protocol/v2.ts';
import { type V1Refusal, submitUnknown } from '../../translate/prompt-refusal.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { Follower } from '../follow/follower.ts';
import type { PromptRecords } from '../ports.ts';
import { ifLeadershipLost } from '../prompt-event-log.ts';
import { toV1Error } from './answer.ts';
import { type SubmissionDraft, initialPromptId } from './draft.ts';
import { isPathSafeId } from './ids.ts';
import type { PendingSubmission } from './pending-submission.ts';

/** Answers the clients that wait for the outcome of their `POST`. */
export class ClientAnswers {
  readonly #records: PromptRecords;
  readonly #follower: Follower;

  constructor(records: PromptRecords, follower: Follower) {
    this.#records = records;
    this.#follower = follower;
  }

  /** Shows the prompt of a new submission, under the id that its client gets. */
  track(submission: PendingSubmission, job?: Job): LivePrompt {
    const { draft, prompt, key } = submission;
    if (prompt) return prompt;
    if (!draft) throw new Error('a submission without prompt and draft');
    const ownId = job && isPathSafeId(job.id) ? job.id : key;
    submission.prompt = this.#track(draft, draft.submission.promptId ?? ownId);
    return submission.prompt;
  }

  /**
   * Called when the prompt could not be linked to its job. Its client gets the id that is recorded:
   * the id of the job may not be.
   */
  async notLinked(submission: PendingSubmission, error: unknown): Promise<never> {
    const { client, draft, key } = submission;
    if (client && draft) {
      const row = await this.#records.prompts.get(key).catch(() => undefined);
      submission.prompt = this.#trackAs(draft, row?.promptId ?? initialPromptId(draft));
    }
    throw error;
  }

  /** Answers that the prompt is accepted. */
  accept(submission: PendingSubmission, prompt: LivePrompt): void {
    const { client, nodeErrors } = submission;
    const { promptId, number } = prompt;
    const releaseFrames = (): void => this.#follower.releaseFrames(prompt);
    client?.resolve({ promptId, number, nodeErrors, releaseFrames });
    submission.client = undefined;
  }

  /** Removes the prompt, before its client gets the refusal. */
  async remove({ key, draft }: PendingSubmission): Promise<void> {
    const { prompts, eventLog } = this.#records;
    const isRemoved = prompts.remove(key).then(() => true);
    // A log that stays is removed when its lease ends.
    if (await isRemoved.catch(ifLeadershipLost(false))) await eventLog.discard(key).catch(() => {});
    else if (draft) this.#trackAs(draft, (await prompts.get(key))?.promptId);
  }

  refuse(submission: PendingSubmission, refusal: V1Refusal): void {
    this.#reject(submission, toV1Error(refusal));
  }

  /** Answers that the outcome is unknown. The prompt is shown, and its job is searched for. */
  answerUnknown(submission: PendingSubmission): void {
    const prompt = this.track(submission);
    this.#follower.releaseFrames(prompt);
    this.#reject(submission, toV1Error(submitUnknown(prompt.promptId)));
  }

  /** Answers when another process has taken the prompt over: that one finds the job. */
  async answerForOtherProcess(submission: PendingSubmission): Promise<void> {
    const { client, draft, key, foundJob } = submission;
    if (!client || !draft) return;
    try {
      const row = await this.#records.prompts.get(key);
      const prompt = this.#trackAs(draft, row?.promptId);
      const hasJob = foundJob !== undefined || (row !== undefined && row.jobId !== null);
      if (prompt && hasJob) return this.accept(submission, prompt);
      const promptId = prompt?.promptId ?? initialPromptId(draft);
      this.#reject(submission, toV1Error(submitUnknown(promptId)));
    } catch (error) {
      this.#reject(submission, error);
    }
  }

  /** Shows the prompt under the id that is recorded: sockets of all processes get it under that. */
  #trackAs(draft: SubmissionDraft, promptId: string | undefined): LivePrompt | undefined {
    this.#follower.untrack(draft.plan.promptKey, promptId);
    return promptId === undefined ? undefined : this.#track(draft, promptId);
  }

  #reject(submission: PendingSubmission, error: unknown): void {
    submission.client?.reject(error);
    submission.client = undefined;
  }

  #track(draft: SubmissionDraft, promptId: string): LivePrompt {
    const { plan, createdAtMs, caller } = draft;
    const { number, clientId } = draft.submission;
    const { promptKey: key, outputs: targets } = plan;
    const graph = createLazyJson(plan.graph, draft.graphJson);
    const extraData = createLazyJson(plan.extraData, draft.extraDataJson);
    const lazy = { graph, extraData };
    return this.#follower.trackPrompt(
      { key, promptId, number, clientId, createdAtMs, lazy, targets },
      caller,
    );
  }
}
