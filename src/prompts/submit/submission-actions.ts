import { reached } from '../../lib/crash-point.ts';
import type { JobError } from '../../protocol/v2.ts';
import { partialNodeErrors } from '../../translate/definition-errors.ts';
import {
  jobErrorOf,
  outputsWithoutErrors,
  unreachableUpstream,
} from '../../translate/prompt-refusal.ts';
import type { Follower } from '../follow/follower.ts';
import type { EndWithoutJob } from '../follow/job-consumer.ts';
import { type WaitReason, isInOutbox } from '../pending-reason.ts';
import type { PromptPorts } from '../ports.ts';
import { LeadershipLost, ifLeadershipLost } from '../prompt-event-log.ts';
import { ClientAnswers } from './client-answers.ts';
import { type FollowParts, linkJob } from './link-job.ts';
import type { Outbox } from './outbox.ts';
import type { PendingSubmission } from './pending-submission.ts';
import { withNewKey } from './plan.ts';
import { SubmissionCalls } from './submission-calls.ts';
import { withJitter } from '../../lib/retry.ts';
import type { Action, Input } from './submission-table.ts';
import { waitMsOf } from './submission-wait.ts';

/** The next input; `undefined`: the submission has ended. */
type Next = Promise<Input | undefined>;

type Act = (submission: PendingSubmission, input: Input) => Next;

/** Why a prompt stays in the outbox, by what was learned last. After other inputs its job is searched for. */
const OUTBOX_REASONS: Partial<Record<Input, WaitReason>> = {
  full: 'no_room',
  'not sent': 'unreachable',
  unreachable: 'unreachable',
  refused: 'refused_for_now',
  'refused for now': 'refused_for_now',
};

/** Does what the table says. */
export class SubmissionActions {
  readonly #ports: PromptPorts;
  readonly #parts: FollowParts;
  readonly #follower: Follower;
  readonly #outbox: Outbox;
  readonly #calls: SubmissionCalls;
  readonly #answers: ClientAnswers;

  readonly acts: Readonly<Record<Action, Act>> = {
    continue: (submission) => this.#continue(submission),
    send: (submission) => this.#calls.send(submission),
    'send with new key': (submission) => this.#sendWithNewKey(submission),
    wait: (submission, input) => this.#wait(submission, input),
    queue: (submission, input) => this.#queue(submission, input),
    link: (submission) => this.#link(submission),
    refuse: (submission, input) => this.#refuse(submission, input),
    'answer unknown': (submission) => this.#answerUnknown(submission),
    fail: (submission) => this.#fail(submission),
    remove: (submission) => this.#end(submission, 'removed'),
    'give up: not taken': (submission) => this.#giveUp(submission, NEVER_TAKEN),
    'give up: not known': (submission) => this.#giveUp(submission, NOT_FOUND_OUT),
    cancel: (submission) => this.#end(submission, { kind: 'canceled' }),
    'cancel job': (submission, input) => this.#cancelJob(submission, input),
    stop: async () => undefined,
  };

  constructor(ports: PromptPorts, parts: FollowParts, outbox: Outbox) {
    this.#ports = ports;
    this.#parts = parts;
    this.#follower = parts.follower;
    this.#outbox = outbox;
    this.#calls = new SubmissionCalls(ports);
    this.#answers = new ClientAnswers(ports.records, parts.follower);
  }

  /** Shows that the prompt waits in the outbox, and answers its client. */
  async enterOutbox(submission: PendingSubmission): Promise<void> {
    const prompt = this.#answers.track(submission);
    submission.isSought = false;
    if (!(await this.#follower.appendEntry(prompt, 'waits'))) throw new LeadershipLost();
    if (submission.client) reached('after-outbox');
    this.#answers.accept(submission, prompt);
  }

  /** Waits for so long, and up to a fifth more. A cancel ends the wait. */
  async #sleep(submission: PendingSubmission, ms: number): Promise<void> {
    const { signal } = submission.wake;
    await this.#ports.policy.deadlineClock.sleep(withJitter(ms), signal);
  }

  /**
   * Called when a step has failed, which is tried again. The prompt is recorded and will run, so a
   * client that waits is not answered with the error: it would send the prompt once more.
   */
  noteFailure(submission: PendingSubmission, error: unknown): void {
    const { caller, foundJob, client } = submission;
    const prompt = client ? this.#answers.track(submission, foundJob) : submission.prompt;
    const facts = { event: 'submission.failed', err: error, promptId: prompt?.promptId };
    const text = 'a step of a submission failed; trying again';
    this.#ports.frames.log.error({ ...facts, user: caller.user }, text);
    if (prompt) this.#answers.accept(submission, prompt);
    if (submission.state === 'submitting') submission.state = 'sent';
    // Later prompts of the user wait until it is sent.
    if (client && !foundJob) this.#outbox.add(submission);
  }

  /** Called when the loop of a prompt has stopped before its end. */
  async stopped(submission: PendingSubmission, error: unknown): Promise<void> {
    if (!(error instanceof LeadershipLost)) this.noteFailure(submission, error);
    this.#outbox.remove(submission);
    if (error instanceof LeadershipLost) return this.#answers.answerForOtherProcess(submission);
    this.#ports.records.eventLog.stopLeading(submission.key);
  }

  async #continue(submission: PendingSubmission): Next {
    const { wake, facts, state, key, firstWaitMs } = submission;
    submission.firstWaitMs = 0;
    if (firstWaitMs > 0) await this.#sleep(submission, firstWaitMs);
    await this.#outbox.turnOf(submission, wake.signal, () =>
      this.#setReason(submission, 'earlier_prompts'),
    );
    if (state !== 'done' && !this.#ports.records.eventLog.isLeader(key)) throw new LeadershipLost();
    if (submission.isCancelRequested && state !== 'done') return 'cancelled';
    // Where the client was told an error, the job is only searched for.
    if (!facts.mayHaveJob && state !== 'unknown') return this.#calls.send(submission);
    if (!this.#outbox.has(submission)) await this.#showSearch(submission);
    return this.#calls.search(submission);
  }

  async #wait(submission: PendingSubmission, input: Input): Next {
    const reason = OUTBOX_REASONS[input];
    if (reason) this.#setReason(submission, reason);
    else {
      // Later prompts of the user do not wait for a search.
      this.#leaveOutbox(submission);
      await this.#showSearch(submission);
    }
    this.#outbox.endTurn(submission);
    await this.#sleep(submission, waitMsOf(this.#ports.policy.pace, submission, input));
    return 'due';
  }

  /** Shows that the job of the prompt is searched for. */
  async #showSearch(submission: PendingSubmission): Promise<void> {
    const { prompt, state, isSought } = submission;
    if (!prompt || state === 'done' || isSought) return;
    if (!(await this.#follower.appendEntry(prompt, 'sought'))) throw new LeadershipLost();
    submission.isSought = true;
  }

  async #queue(submission: PendingSubmission, input: Input): Next {
    this.#outbox.add(submission);
    await this.#calls.record(submission, 'outbox', submission.plan);
    if (!submission.prompt || !isInOutbox(submission.prompt)) await this.enterOutbox(submission);
    return this.#wait(submission, input);
  }

  /** Sends the prompt under a new key, since the old key certainly made no job. */
  #sendWithNewKey(submission: PendingSubmission): Next {
    submission.plan = withNewKey(submission.plan);
    submission.facts.noteNewKey();
    return this.#calls.send(submission);
  }

  async #link(submission: PendingSubmission): Next {
    const { foundJob: job, plan, nodeErrors, client, caller } = submission;
    if (!job) throw new Error('there is no job to link');
    submission.isBusy = true;
    const prompt = this.#answers.track(submission, job);
    if (client && this.#ports.policy.traits.isService && Object.keys(nodeErrors).length === 0) {
      const info = await this.#ports.jobs.objectInfo(caller);
      submission.nodeErrors = partialNodeErrors(plan.graph, info, plan.outputs);
    }
    // v1 stores only the outputs that run with a prompt.
    const outputs =
      Object.keys(submission.nodeErrors).length === 0
        ? plan.outputs
        : outputsWithoutErrors(submission.nodeErrors, plan.outputs);
    const linked = linkJob(this.#ports, this.#parts, { prompt, plan: { ...plan, outputs }, job });
    await linked.catch((error: unknown) => this.#answers.notLinked(submission, error));
    this.#outbox.remove(submission);
    if (client) reached('after-attach');
    this.#answers.accept(submission, prompt);
    return undefined;
  }

  async #refuse(submission: PendingSubmission, input: Input): Next {
    const { failedAttempt: failed } = submission;
    const isRefusal = failed && REFUSALS.has(failed.input);
    const refuse = (): void =>
      this.#answers.refuse(submission, isRefusal ? failed.refusal : unreachableUpstream());
    try {
      await this.#answers.remove(submission);
    } catch (error) {
      // A process that takes it over sends it, and removes it only when its content is refused.
      if (failed?.input === 'refused') refuse();
      if (!submission.client || error instanceof LeadershipLost) throw error;
      this.noteFailure(submission, error);
      return this.#wait(submission, input);
    }
    refuse();
    return this.#ended(submission);
  }

  async #answerUnknown(submission: PendingSubmission): Next {
    const { facts, plan } = submission;
    const recorded = this.#calls.record(submission, 'unknown', plan);
    await recorded
      .catch(ifLeadershipLost(undefined))
      .finally(() => this.#answers.answerUnknown(submission));
    facts.noteOnlySearching(this.#ports.policy.deadlineClock.now());
    return 'due';
  }

  async #fail(submission: PendingSubmission): Next {
    const { failedAttempt: failed, plan } = submission;
    const error = failed ? jobErrorOf(failed.error, failed.refusal, plan.graph) : SECRETS_GONE;
    return this.#end(submission, { kind: 'failed', error });
  }

  async #giveUp(submission: PendingSubmission, reason: string): Next {
    const { caller, prompt } = submission;
    const { user } = caller;
    const facts = { event: 'submission.abandoned', user, promptId: prompt?.promptId, reason };
    this.#ports.frames.log.warn(facts, 'gave up a submission');
    return this.#end(submission, { kind: 'lost', reason });
  }

  /** Ends the prompt. Its job is searched for when there may be one. */
  async #end(submission: PendingSubmission, ending: EndWithoutJob | 'removed'): Next {
    const { prompt } = submission;
    submission.isBusy = true;
    this.#leaveOutbox(submission);
    if (prompt && ending === 'removed') await this.#follower.remove(prompt);
    if (prompt && ending !== 'removed') await this.#follower.finishWithoutJob(prompt, ending);
    return this.#ended(submission);
  }

  #ended(submission: PendingSubmission): Input | undefined {
    submission.state = 'done';
    submission.facts.noteOnlySearching(this.#ports.policy.deadlineClock.now());
    submission.searchWaitMs = 0;
    submission.wake = new AbortController();
    submission.ended.resolve();
    return submission.facts.mayHaveJob ? 'due' : undefined;
  }

  async #cancelJob(submission: PendingSubmission, input: Input): Next {
    if (await this.#calls.cancelLateJob(submission)) return undefined;
    await this.#sleep(submission, waitMsOf(this.#ports.policy.pace, submission, input));
    return input;
  }

  #leaveOutbox(submission: PendingSubmission): void {
    const { prompt, key } = submission;
    this.#outbox.remove(submission);
    // Only the leader of a prompt reports that it waits.
    if (prompt && this.#ports.records.eventLog.isLeader(key))
      this.#ports.frames.livePrompts.removeFromOutbox(prompt);
  }

  /** Sets the reason why the prompt is still in the outbox. */
  #setReason({ prompt }: PendingSubmission, reason: WaitReason): void {
    if (prompt && isInOutbox(prompt)) this.#ports.frames.livePrompts.setWaitReason(prompt, reason);
  }
}

/** The outcomes whose own refusal the client gets. */
const REFUSALS: ReadonlySet<Input> = new Set(['refused', 'refused for now', 'full']);

const NEVER_TAKEN = 'the job service never took it';
const NOT_FOUND_OUT = 'whether the job service took it could not be found out';

const SECRETS_GONE: JobError = {
  code: 'credentials_gone',
  message:
    'This prompt came with a key of its own. Keys are never stored, and the server was restarted ' +
    'before the job could be submitted. Please submit it again.',
  x_exception_type: 'ServiceError',
};
