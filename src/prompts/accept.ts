import { reached } from '../lib/crash-point.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { runInSteps } from '../lib/event-loop.ts';
import {
  type V1Refusal,
  refuseShape,
  serverStalled,
  submitUnknown,
  unreachableUpstream,
} from '../translate/prompt-refusal.ts';
import { partialNodeErrors } from '../translate/definition-errors.ts';
import { chosenOutputs, outputNodes } from '../translate/file-mentions.ts';
import type { Logger } from '../observability/log.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import { stringifySteps } from '../protocol/json-steps.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { NodeErrors, ObjectInfo } from '../protocol/v1.ts';
import type { LinkJob } from './submit/link-job.ts';
import type { LivePrompt } from './live-prompts.ts';
import { V1Error, plainError, promptFault } from '../dialects/errors.ts';
import type { Follower } from './follow/follower.ts';
import type { createFolderCheck } from '../files/foreign-folders.ts';
import {
  type SubmissionDraft,
  recordPrompt,
  initialPromptId,
  toPromptRow,
} from './submit/draft.ts';
import type { Outbox, Reservation } from './submit/outbox.ts';
import { type RetryPolicy, retryAfterMs } from './submit/retry-policy.ts';
import { toStoredPlan, createPlan } from './submit/plan.ts';
import type { SubmissionRecovery } from './submit/recover.ts';
import { LeadershipLost, type PromptEventLog, ifLeadershipLost } from './prompt-event-log.ts';
import { createPromptKeys } from './state/prompt-key.ts';
import type { FileResolver } from '../files/resolve-files.ts';
import { type SubmissionSender, type SendResult, toRefusal } from './submit/send.ts';
import type { Submission } from './submission.ts';
import type { DuplicateIds } from './submit/duplicate-ids.ts';

/** The answer to `POST /prompt`. `release` lets the frames of the prompt reach sockets. */
export type Accepted = {
  readonly promptId: string;
  readonly number: number;
  readonly nodeErrors: NodeErrors;
  readonly release: () => void;
};

export type Acceptor = { accept(caller: Caller, submission: Submission): Promise<Accepted> };

type AcceptorOptions = {
  readonly ledger: Ledger;
  readonly promptEventLog: Pick<PromptEventLog, 'claim' | 'discard' | 'isLeader'>;
  readonly duplicateIds: DuplicateIds;
  readonly follower: Follower;
  readonly fileResolver: FileResolver;
  readonly refuseForeignFolders: ReturnType<typeof createFolderCheck>;
  readonly sender: SubmissionSender;
  readonly linkJob: LinkJob;
  readonly outbox: Outbox;
  readonly submissionRecovery: SubmissionRecovery;
  readonly retryPolicy: RetryPolicy;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
  /** The upstream is a service that may run only the valid outputs of a prompt. */
  readonly mayAcceptPartially: boolean;
  readonly log: Logger;
  readonly now: () => number;
};

/**
 * Submits a prompt: makes a v2 job of it, or puts it into the outbox. Records the plan before the
 * first byte goes upstream, and the client's answer before the client gets it.
 */
export function createAcceptor(deps: AcceptorOptions): Acceptor {
  const {
    ledger,
    promptEventLog,
    duplicateIds,
    follower,
    outbox,
    submissionRecovery,
    sender,
    now,
  } = deps;
  const newKey = createPromptKeys();

  async function accept(caller: Caller, submission: Submission): Promise<Accepted> {
    const existing = await duplicateIds.findResumed(caller, submission);
    if (existing) return { ...existing, nodeErrors: {}, release: () => {} };
    duplicateIds.refuseDuplicate(caller, submission);
    const misshapen = refuseShape(submission.graph as JsonObject);
    if (misshapen) throw toV1Error(misshapen);
    const outputs = chooseOutputs(submission, await deps.objectInfo(caller));
    const placed = await deps.fileResolver.resolve(caller, submission.graph, submission.subfolder);
    await deps.refuseForeignFolders(caller, {
      graph: submission.graph,
      resolvedFiles: placed,
      outputs,
    });
    const createdAtMs = now();
    const plan = createPlan(newKey(createdAtMs), submission, { outputs, placed, owner: caller });
    const graphJson = await runInSteps(stringifySteps(plan.graph as Json));
    const extraDataJson = await runInSteps(stringifySteps(plan.extraData));
    const draft = { caller, submission, plan, graphJson, extraDataJson, createdAtMs };
    if (outbox.hasWaiting(caller.user)) return await queueBehindOthers(draft);
    await record(draft, 'submitting');
    reached('after-intent');
    const sent = await send(draft);
    reached('after-submit');
    return await applySendResult(draft, sent);
  }

  /** Rejects with a 503 when another process has taken the prompt over before it was recorded. */
  async function record(draft: SubmissionDraft, state: 'submitting' | 'outbox'): Promise<void> {
    try {
      await recordPrompt(toPromptRow(draft, state), deps);
    } catch (error) {
      throw error instanceof LeadershipLost ? toV1Error(serverStalled()) : error;
    }
  }

  /** A failure inside Holdover leaves the outcome unknown: the request may have been sent. */
  async function send({ caller, plan, graphJson }: SubmissionDraft): Promise<SendResult> {
    try {
      return await sender.send(caller, plan, graphJson);
    } catch (cause) {
      const facts = { event: 'submission.send_failed', err: cause, user: caller.user };
      if (!(cause instanceof LeadershipLost))
        deps.log.error(facts, 'sending a submission failed; its outcome is unknown');
      return { kind: 'unknown', plan, error: SUBMISSION_FAILED, isKeyUsed: false };
    }
  }

  async function applySendResult(draft: SubmissionDraft, sent: SendResult): Promise<Accepted> {
    try {
      return await applyOutcome(draft, sent);
    } catch (error) {
      if (error instanceof LeadershipLost) return await answerForOtherProcess(draft, sent);
      throw error;
    }
  }

  async function applyOutcome(draft: SubmissionDraft, sent: SendResult): Promise<Accepted> {
    switch (sent.kind) {
      case 'accepted':
        return await linkToJob(draft, sent);
      case 'crowded': {
        const reservation = outbox.reserve(draft.caller.user);
        if (reservation)
          return await queueUntilCapacity({ ...draft, plan: sent.plan }, reservation, sent);
        throw await removeRefused(draft, toRefusal(sent.error, sent.plan));
      }
      case 'unsent':
        throw await removeRefused(draft, unreachableUpstream());
      case 'refused':
        throw await removeRefused(draft, sent.refusal);
      case 'unknown':
        return await startRecovery(draft, sent);
    }
  }

  /** The refusal is final: removes the prompt. */
  async function removeRefused(draft: SubmissionDraft, refusal: V1Refusal): Promise<V1Error> {
    const { label } = draft.plan;
    const removed = ledger.prompts.remove(label).then(() => true);
    if (await removed.catch(ifLeadershipLost(false))) await promptEventLog.discard(label);
    else await trackOtherProcessPrompt(draft);
    return toV1Error(refusal);
  }

  async function linkToJob(
    draft: SubmissionDraft,
    sent: SendResult & { kind: 'accepted' },
  ): Promise<Accepted> {
    const { submission } = draft;
    const { label } = draft.plan;
    if (!promptEventLog.isLeader(label)) throw new LeadershipLost();
    const jobId = isPathSafeId(sent.job.id) ? sent.job.id : label;
    const prompt = trackPrompt(draft, submission.promptId ?? jobId);
    await deps.linkJob(prompt, sent.plan, sent.job);
    reached('after-attach');
    return toAccepted(prompt, await nodeErrorsOf(draft, sent));
  }

  /** A service that runs the valid outputs of a prompt may not report the invalid ones. */
  async function nodeErrorsOf(
    { caller, plan }: SubmissionDraft,
    { nodeErrors }: SendResult & { kind: 'accepted' },
  ): Promise<NodeErrors> {
    if (!deps.mayAcceptPartially || Object.keys(nodeErrors).length > 0) return nodeErrors;
    return partialNodeErrors(plan.graph, await deps.objectInfo(caller), plan.outputs);
  }

  /** The upstream has no capacity, and nothing else of this user waits. */
  async function queueUntilCapacity(
    draft: SubmissionDraft,
    reservation: Reservation,
    { error }: SendResult & { kind: 'crowded' },
  ): Promise<Accepted> {
    try {
      const { prompts } = ledger;
      const { plan } = draft;
      const intentStored = prompts.setIntent(plan.label, toStoredPlan(plan, 'here'));
      await Promise.all([prompts.setState(plan.label, 'outbox'), intentStored]);
      return await putInOutbox(draft, reservation, retryAfterMs(deps.retryPolicy, error));
    } finally {
      reservation.release();
    }
  }

  /** Prompts of this user wait already: this one waits behind them. */
  async function queueBehindOthers(draft: SubmissionDraft): Promise<Accepted> {
    const reservation = outbox.reserve(draft.caller.user);
    if (!reservation) throw toV1Error(toRefusal(OUTBOX_FULL, draft.plan));
    try {
      await record(draft, 'outbox');
      return await putInOutbox(draft, reservation, 0);
    } finally {
      reservation.release();
    }
  }

  async function putInOutbox(
    draft: SubmissionDraft,
    reservation: Reservation,
    waitMs: number,
  ): Promise<Accepted> {
    const prompt = trackPrompt(draft, initialPromptId(draft));
    reservation.release();
    await outbox.add(
      { prompt, plan: draft.plan, clientKnows: 'accepted', mayHaveBeenSent: false },
      waitMs,
    );
    reached('after-outbox');
    return toAccepted(prompt, {});
  }

  async function startRecovery(
    draft: SubmissionDraft,
    sent: SendResult & { kind: 'unknown' },
  ): Promise<never> {
    const { prompts } = ledger;
    await prompts.setState(draft.plan.label, 'unknown').catch(ifLeadershipLost(undefined));
    const prompt = trackPrompt(draft, initialPromptId(draft));
    follower.releaseFrames(prompt);
    const { plan, isKeyUsed, error } = sent;
    const isEngineDown = error.engineDown === true;
    submissionRecovery.recover({ prompt, plan, clientKnows: 'unknown', isKeyUsed, isEngineDown });
    throw toV1Error(submitUnknown(sent.error, prompt.promptId));
  }

  /** Another process has taken the prompt over. It may have found a job, or none. */
  async function answerForOtherProcess(
    draft: SubmissionDraft,
    sent: SendResult,
  ): Promise<Accepted> {
    const prompt = await trackOtherProcessPrompt(draft);
    const error = 'error' in sent ? sent.error : SUBMISSION_FAILED;
    if (!prompt) throw toV1Error(submitUnknown(error, initialPromptId(draft)));
    return toAccepted(prompt, 'nodeErrors' in sent ? sent.nodeErrors : {});
  }

  /** Another process has taken the prompt over: sockets get it under the id in the ledger. */
  async function trackOtherProcessPrompt(draft: SubmissionDraft): Promise<LivePrompt | undefined> {
    const { label } = draft.plan;
    const row = await ledger.prompts.get(label);
    follower.untrack(label, row?.promptId);
    return row && trackPrompt(draft, row.promptId);
  }

  function trackPrompt(draft: SubmissionDraft, promptId: string): LivePrompt {
    const { plan, createdAtMs, caller, graphJson, extraDataJson } = draft;
    const { number, clientId } = draft.submission;
    const { label: key, graph, extraData, outputs: targets } = plan;
    const identity = { key, promptId, number, clientId, createdAtMs, isResumed: false };
    const content = { graph, graphJson, extraData, extraDataJson, targets };
    return follower.trackPrompt(Object.assign(identity, content), caller);
  }

  function toAccepted(prompt: LivePrompt, nodeErrors: NodeErrors): Accepted {
    const { promptId, number } = prompt;
    return { promptId, number, nodeErrors, release: () => follower.releaseFrames(prompt) };
  }

  return { accept };
}

const SUBMISSION_FAILED = {
  status: 500,
  code: 'internal_error',
  message: 'The submission broke off.',
  details: null,
};
const OUTBOX_FULL = {
  status: 429,
  code: 'queue_full',
  message: 'Too many prompts are waiting for the job service to have room.',
  details: null,
  retryAfterSeconds: 10,
};

/** True when v1 clients can put the id into a URL path unchanged. */
export function isPathSafeId(id: string): boolean {
  return /^[\w.~-]{1,300}$/.test(id);
}

/** Returns the outputs to execute. Targets that name none of them are a 400. */
function chooseOutputs({ graph, partialTargets }: Submission, info: ObjectInfo): readonly string[] {
  const chosen = chosenOutputs(outputNodes(graph, info), partialTargets);
  if (chosen.length > 0 || partialTargets === undefined) return chosen;
  throw new V1Error(400, plainError('prompt_no_outputs', 'Prompt has no outputs'));
}

function toV1Error({ status, body, retryAfterSeconds }: V1Refusal): V1Error {
  const headers: { [name: string]: string } =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  return new V1Error(status, promptFault(body), { headers, blames: 'job service' });
}
