import { V1Error, promptFault, retryAfterHeader } from '../../dialects/errors.ts';
import { reached } from '../../lib/crash-point.ts';
import type { PromptRow } from '../../ledger/columns.ts';
import { v2Error } from '../../protocol/job-api.ts';
import type { NodeErrors } from '../../protocol/v1.ts';
import { partialNodeErrors } from '../../translate/definition-errors.ts';
import {
  type V1Refusal,
  outputsWithoutErrors,
  serverStalled,
  submitUnknown,
  unreachableUpstream,
} from '../../translate/prompt-refusal.ts';
import type { Follower } from '../follow/follower.ts';
import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { LeadershipLost, ifLeadershipLost } from '../prompt-event-log.ts';
import { isPathSafeId } from './ids.ts';
import { type SubmissionDraft, initialPromptId, recordPrompt, toPromptRow } from './draft.ts';
import type { LinkJob } from './link-job.ts';
import type { Reservation } from './outbox-queue.ts';
import type { Outbox } from './outbox.ts';
import { type SubmissionPlan, toStoredPlan } from './plan.ts';
import type { SubmissionRecovery } from './recover.ts';
import { retryAfterMs } from './retry-policy.ts';
import { type SendResult, type SendResultOf, type SubmissionSender, toRefusal } from './send.ts';

/** The answer to `POST /prompt`. `releaseFrames` lets the frames of the prompt reach sockets. */
export type Accepted = {
  readonly promptId: string;
  readonly number: number;
  readonly nodeErrors: NodeErrors;
  readonly releaseFrames: () => void;
};

export type DraftSubmitterOptions = PromptContext & {
  readonly follower: Follower;
  readonly sender: SubmissionSender;
  readonly linkJob: LinkJob;
  readonly outbox: Outbox;
  readonly submissionRecovery: SubmissionRecovery;
};

/**
 * Submits a checked prompt: makes a v2 job for it, or puts it into the outbox. Records the plan
 * before the first byte goes upstream, and the answer before the client gets it.
 */
export class DraftSubmitter {
  readonly #options: DraftSubmitterOptions;

  constructor(options: DraftSubmitterOptions) {
    this.#options = options;
  }

  async submit(draft: SubmissionDraft): Promise<Accepted> {
    if (this.#options.outbox.hasWaiting(draft.caller.user)) return this.#queueBehindOthers(draft);
    await this.#record(toPromptRow(draft, 'submitting'));
    reached('after-intent');
    const result = await this.#send(draft);
    reached('after-submit');
    try {
      return await this.#apply(draft, result);
    } catch (error) {
      if (error instanceof LeadershipLost) return await this.#answerForOtherProcess(draft, result);
      if (!(error instanceof V1Error))
        this.#options.promptEventLog.stopLeading(draft.plan.promptKey);
      throw error;
    }
  }

  /** Queues the prompt behind those of its user that wait already. */
  async #queueBehindOthers(draft: SubmissionDraft): Promise<Accepted> {
    const reservation = this.#options.outbox.reserve(draft.caller.user);
    if (!reservation) throw toV1Error(toRefusal(OUTBOX_FULL, draft.plan));
    try {
      await this.#record(toPromptRow(draft, 'outbox'));
      return await this.#putInOutbox(draft, reservation, 0);
    } finally {
      reservation.release();
    }
  }

  /** Rejects with a 503 when another process has taken the prompt over before it was recorded. */
  async #record(row: PromptRow): Promise<void> {
    try {
      await recordPrompt(row, this.#options);
    } catch (error) {
      throw error instanceof LeadershipLost ? toV1Error(serverStalled()) : error;
    }
  }

  /**
   * Sends the plan. A failure inside Holdover leaves the outcome unknown: the request may have been
   * sent.
   */
  async #send({ caller, plan, graphJson }: SubmissionDraft): Promise<SendResult> {
    try {
      return await this.#options.sender.sendRecorded(caller, plan, graphJson);
    } catch (cause) {
      if (!(cause instanceof LeadershipLost)) {
        const facts = { event: 'submission.send_failed', err: cause, user: caller.user };
        this.#options.log.error(facts, 'sending a submission failed; its outcome is unknown');
      }
      return { kind: 'unknown', plan, error: SUBMISSION_FAILED, mayResend: true };
    }
  }

  async #apply(draft: SubmissionDraft, result: SendResult): Promise<Accepted> {
    switch (result.kind) {
      case 'accepted':
        return this.#linkJob(draft, result);
      case 'no capacity':
        return this.#queueUntilCapacity(draft, result);
      case 'unsent':
        throw await this.#removeRefused(draft, unreachableUpstream());
      case 'refused':
        throw await this.#removeRefused(draft, result.refusal);
      case 'unknown':
        return this.#startRecovery(draft, result);
    }
  }

  async #linkJob(draft: SubmissionDraft, result: SendResultOf<'accepted'>): Promise<Accepted> {
    const { promptEventLog, linkJob } = this.#options;
    const { promptKey } = draft.plan;
    if (!promptEventLog.isLeader(promptKey)) throw new LeadershipLost();
    const jobId = isPathSafeId(result.job.id) ? result.job.id : promptKey;
    const prompt = this.#track(draft, draft.submission.promptId ?? jobId);
    const nodeErrors = await this.#nodeErrorsOf(draft, result);
    await linkJob(prompt, withoutFailedOutputs(result.plan, nodeErrors), result.job);
    reached('after-attach');
    return this.#toAccepted(prompt, nodeErrors);
  }

  /**
   * Finds the node errors. A service that runs the valid outputs of a prompt may not report the
   * invalid ones.
   */
  async #nodeErrorsOf(
    { caller, plan }: SubmissionDraft,
    { nodeErrors }: SendResultOf<'accepted'>,
  ): Promise<NodeErrors> {
    const { mayAcceptPartially, objectInfo } = this.#options;
    if (!mayAcceptPartially || Object.keys(nodeErrors).length > 0) return nodeErrors;
    return partialNodeErrors(plan.graph, await objectInfo(caller), plan.outputs);
  }

  /** Queues the prompt because the upstream has no capacity. No other prompt of this user waits. */
  async #queueUntilCapacity(
    draft: SubmissionDraft,
    { plan, error }: SendResultOf<'no capacity'>,
  ): Promise<Accepted> {
    const { outbox, ledger, retryPolicy } = this.#options;
    const reservation = outbox.reserve(draft.caller.user);
    if (!reservation) throw await this.#removeRefused(draft, toRefusal(error, plan));
    try {
      const { promptKey } = plan;
      const isStored = ledger.prompts.setPlan(promptKey, toStoredPlan(plan, 'not_sent'));
      await Promise.all([ledger.prompts.setState(promptKey, 'outbox'), isStored]);
      const waitMs = retryAfterMs(retryPolicy, error);
      return await this.#putInOutbox({ ...draft, plan }, reservation, waitMs);
    } finally {
      reservation.release();
    }
  }

  async #putInOutbox(
    draft: SubmissionDraft,
    reservation: Reservation,
    waitMs: number,
  ): Promise<Accepted> {
    const prompt = this.#track(draft, initialPromptId(draft));
    reservation.release();
    const submission = { prompt, plan: draft.plan, clientKnows: 'accepted' } as const;
    await this.#options.outbox.add({ ...submission, mayHaveBeenSent: false }, waitMs);
    reached('after-outbox');
    return this.#toAccepted(prompt, {});
  }

  /** The refusal is final: removes the prompt. */
  async #removeRefused(draft: SubmissionDraft, refusal: V1Refusal): Promise<V1Error> {
    const { ledger, promptEventLog } = this.#options;
    const { promptKey } = draft.plan;
    const isRemoved = ledger.prompts.remove(promptKey).then(() => true);
    if (await isRemoved.catch(ifLeadershipLost(false))) await promptEventLog.discard(promptKey);
    else await this.#trackOtherProcessPrompt(draft);
    return toV1Error(refusal);
  }

  async #startRecovery(draft: SubmissionDraft, result: SendResultOf<'unknown'>): Promise<never> {
    const { ledger, follower, submissionRecovery } = this.#options;
    const { plan, mayResend, error } = result;
    await ledger.prompts
      .setState(draft.plan.promptKey, 'unknown')
      .catch(ifLeadershipLost(undefined));
    const prompt = this.#track(draft, initialPromptId(draft));
    follower.releaseFrames(prompt);
    const isEngineDown = error.engineDown === true;
    submissionRecovery.recover({ prompt, plan, clientKnows: 'unknown', mayResend, isEngineDown });
    throw toV1Error(submitUnknown(error, prompt.promptId));
  }

  /** Answers when another process has taken the prompt over. That process may have found a job. */
  async #answerForOtherProcess(draft: SubmissionDraft, result: SendResult): Promise<Accepted> {
    const prompt = await this.#trackOtherProcessPrompt(draft);
    const error = 'error' in result ? result.error : SUBMISSION_FAILED;
    if (!prompt) throw toV1Error(submitUnknown(error, initialPromptId(draft)));
    return this.#toAccepted(prompt, 'nodeErrors' in result ? result.nodeErrors : {});
  }

  /**
   * Returns the prompt as the other process that leads it has recorded it: sockets get it under
   * that id.
   */
  async #trackOtherProcessPrompt(draft: SubmissionDraft): Promise<LivePrompt | undefined> {
    const { ledger, follower } = this.#options;
    const { promptKey } = draft.plan;
    const row = await ledger.prompts.get(promptKey);
    follower.untrack(promptKey, row?.promptId);
    return row && this.#track(draft, row.promptId);
  }

  #track(draft: SubmissionDraft, promptId: string): LivePrompt {
    const { plan, createdAtMs, caller, graphJson, extraDataJson } = draft;
    const { number, clientId } = draft.submission;
    const { promptKey: key, graph, extraData, outputs: targets } = plan;
    const identity = { key, promptId, number, clientId, createdAtMs };
    const content = { graph, graphJson, extraData, extraDataJson, targets };
    return this.#options.follower.trackPrompt(Object.assign(identity, content), caller);
  }

  #toAccepted(prompt: LivePrompt, nodeErrors: NodeErrors): Accepted {
    const { promptId, number } = prompt;
    const releaseFrames = (): void => this.#options.follower.releaseFrames(prompt);
    return { promptId, number, nodeErrors, releaseFrames };
  }
}

/** Returns the plan with the outputs that run: v1 stores no others with a prompt. */
function withoutFailedOutputs(plan: SubmissionPlan, nodeErrors: NodeErrors): SubmissionPlan {
  if (Object.keys(nodeErrors).length === 0) return plan;
  return { ...plan, outputs: outputsWithoutErrors(nodeErrors, plan.outputs) };
}

const SUBMISSION_FAILED = v2Error(500, 'internal_error', 'The submission broke off.');
const OUTBOX_FULL = v2Error(
  429,
  'queue_full',
  'Too many prompts are waiting for the job service to have room.',
  { retryAfterSeconds: 10 },
);

export function toV1Error({ status, body, retryAfterSeconds }: V1Refusal): V1Error {
  const headers = retryAfterHeader(retryAfterSeconds);
  return new V1Error(status, promptFault(body), { headers, blames: 'job service' });
}
