import { reached } from '../crash-point.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { inTurns } from '../lib/turns.ts';
import {
  type V1Refusal,
  refuseShape,
  standstill,
  submitUnknown,
  unreachableUpstream,
} from '../translate/errors.ts';
import { partialNodeErrors } from '../translate/definition-errors.ts';
import { chosenOutputs, outputNodes } from '../translate/workflow.ts';
import type { Logger } from '../telemetry.ts';
import type { Json, JsonObject } from '../wire/json.ts';
import { stringifySteps } from '../wire/json-steps.ts';
import type { Caller } from '../wire/jobs.ts';
import type { NodeErrors, ObjectInfo } from '../wire/v1.ts';
import type { Birth } from './birth.ts';
import type { LivePrompt } from './board.ts';
import { V1Error, plainError, promptFault } from './errors.ts';
import type { Follower } from './follower.ts';
import type { createFolderCheck } from './foreign-folders.ts';
import { type Intake, enter, ownIdOf, rowOf } from './intake.ts';
import type { Outbox, Place } from './outbox.ts';
import { type Pace, waitMsOf } from './pace.ts';
import { intentOf, planOf } from './plan.ts';
import type { Reconciler } from './reconciler.ts';
import { LeadLost, type PromptJournal, ifLost } from './prompt-journal.ts';
import { createPromptKeys } from './prompt-key.ts';
import type { AssetRewriter } from './rewrite.ts';
import { type Sender, type Sent, refusalOf } from './send.ts';
import type { Submission } from './submission.ts';
import type { Twins } from './twins.ts';

/** What `POST /prompt` answers; `release` lets the prompt's frames go. */
export type Accepted = {
  readonly promptId: string;
  readonly number: number;
  readonly nodeErrors: NodeErrors;
  readonly release: () => void;
};

export type Acceptor = { accept(caller: Caller, submission: Submission): Promise<Accepted> };

type Deps = {
  readonly ledger: Ledger;
  readonly journal: Pick<PromptJournal, 'claim' | 'drop' | 'leads'>;
  readonly twins: Twins;
  readonly follower: Follower;
  readonly rewriter: AssetRewriter;
  readonly refuseForeignFolders: ReturnType<typeof createFolderCheck>;
  readonly sender: Sender;
  readonly birth: Birth;
  readonly outbox: Outbox;
  readonly reconciler: Reconciler;
  readonly pace: Pace;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
  /** Jobs run at a service, which may take a prompt in part. */
  readonly mayBeAnothers: boolean;
  readonly log: Logger;
  readonly now: () => number;
};

/**
 * Turns a submission into a v2 job, or into a letter that waits for one. The intent is on disk
 * before the first byte leaves, and what the client is told before it hears of it.
 */
export function createAcceptor(deps: Deps): Acceptor {
  const { ledger, journal, twins, follower, outbox, reconciler, sender, now } = deps;
  const newKey = createPromptKeys();

  async function accept(caller: Caller, submission: Submission): Promise<Accepted> {
    const again = await twins.resumed(caller, submission);
    if (again) return { ...again, nodeErrors: {}, release: () => {} };
    twins.refuse(caller, submission);
    const misshapen = refuseShape(submission.graph as JsonObject);
    if (misshapen) throw refused(misshapen);
    const outputs = outputsOf(submission, await deps.objectInfo(caller));
    const placed = await deps.rewriter.placed(caller, submission.graph, submission.subfolder);
    await deps.refuseForeignFolders(caller, { graph: submission.graph, placed, outputs });
    const createdAtMs = now();
    const plan = planOf(newKey(createdAtMs), submission, { outputs, placed, owner: caller });
    const graphJson = await inTurns(stringifySteps(plan.graph as Json));
    const extraDataJson = await inTurns(stringifySteps(plan.extraData));
    const intake = { caller, submission, plan, graphJson, extraDataJson, createdAtMs };
    if (outbox.isBusy(caller.user)) return await queueUp(intake);
    await record(intake, 'submitting');
    reached('after-intent');
    const sent = await send(intake);
    reached('after-submit');
    return await settle(intake, sent);
  }

  /** Others take a claim for a dead process's when nothing has come of it in time. */
  async function record(intake: Intake, state: 'submitting' | 'outbox'): Promise<void> {
    try {
      await enter(rowOf(intake, state), deps);
    } catch (error) {
      throw error instanceof LeadLost ? refused(standstill()) : error;
    }
  }

  /** Something of our own may break on the way: then nobody knows what became of the job. */
  async function send({ caller, plan, graphJson }: Intake): Promise<Sent> {
    try {
      return await sender.send(caller, plan, graphJson);
    } catch (cause) {
      const facts = { err: cause, user: caller.user };
      if (!(cause instanceof LeadLost)) deps.log.error(facts, 'a submission broke off');
      return { kind: 'unknown', plan, error: BROKEN, isKeyUsed: false };
    }
  }

  async function settle(intake: Intake, sent: Sent): Promise<Accepted> {
    try {
      return await outcome(intake, sent);
    } catch (error) {
      if (error instanceof LeadLost) return await elsewhere(intake, sent);
      throw error;
    }
  }

  async function outcome(intake: Intake, sent: Sent): Promise<Accepted> {
    switch (sent.kind) {
      case 'accepted':
        return await born(intake, sent);
      case 'crowded': {
        const place = outbox.place(intake.caller.user);
        if (place) return await park({ ...intake, plan: sent.plan }, place, sent);
        throw await retracted(intake, refusalOf(sent.error, sent.plan));
      }
      case 'unsent':
        throw await retracted(intake, unreachableUpstream());
      case 'refused':
        throw await retracted(intake, sent.refusal);
      case 'unknown':
        return await doubt(intake, sent);
    }
  }

  /** Refused for certain: nothing is left of it. */
  async function retracted(intake: Intake, refusal: V1Refusal): Promise<V1Error> {
    const { label } = intake.plan;
    const removed = ledger.prompts.remove(label).then(() => true);
    if (await removed.catch(ifLost(false))) await journal.drop(label);
    else await showTheirs(intake);
    return refused(refusal);
  }

  async function born(intake: Intake, sent: Sent & { kind: 'accepted' }): Promise<Accepted> {
    const { submission } = intake;
    const { label } = intake.plan;
    if (!journal.leads(label)) throw new LeadLost();
    const jobId = isPlain(sent.job.id) ? sent.job.id : label;
    const prompt = adopt(intake, submission.promptId ?? jobId);
    await deps.birth(prompt, sent.plan, sent.job);
    reached('after-attach');
    return answer(prompt, await nodeErrorsOf(intake, sent));
  }

  /** A service that runs the good outputs of a prompt may say nothing of the others. */
  async function nodeErrorsOf(
    { caller, plan }: Intake,
    { nodeErrors }: Sent & { kind: 'accepted' },
  ): Promise<NodeErrors> {
    if (!deps.mayBeAnothers || Object.keys(nodeErrors).length > 0) return nodeErrors;
    return partialNodeErrors(plan.graph, await deps.objectInfo(caller), plan.outputs);
  }

  /** The first of its user to find no room. */
  async function park(
    intake: Intake,
    place: Place,
    { error }: Sent & { kind: 'crowded' },
  ): Promise<Accepted> {
    try {
      const { prompts } = ledger;
      const { plan } = intake;
      const rests = prompts.setIntent(plan.label, intentOf(plan, 'here'));
      await Promise.all([prompts.setState(plan.label, 'outbox'), rests]);
      return await post(intake, place, waitMsOf(deps.pace, error));
    } finally {
      place.leave();
    }
  }

  /** Who comes after it waits behind it. */
  async function queueUp(intake: Intake): Promise<Accepted> {
    const place = outbox.place(intake.caller.user);
    if (!place) throw refused(refusalOf(FULL, intake.plan));
    try {
      await record(intake, 'outbox');
      return await post(intake, place, 0);
    } finally {
      place.leave();
    }
  }

  async function post(intake: Intake, place: Place, waitMs: number): Promise<Accepted> {
    const prompt = adopt(intake, ownIdOf(intake));
    place.leave();
    await outbox.put({ prompt, plan: intake.plan, told: 'accepted', isInDoubt: false }, waitMs);
    reached('after-outbox');
    return answer(prompt, {});
  }

  async function doubt(intake: Intake, sent: Sent & { kind: 'unknown' }): Promise<never> {
    const { prompts } = ledger;
    await prompts.setState(intake.plan.label, 'unknown').catch(ifLost(undefined));
    const prompt = adopt(intake, ownIdOf(intake));
    follower.release(prompt);
    const { plan, isKeyUsed, error } = sent;
    const isEngineDown = error.engineDown === true;
    reconciler.take({ prompt, plan, told: 'unknown', isKeyUsed, isEngineDown });
    throw refused(submitUnknown(sent.error, prompt.promptId));
  }

  /** The other one may have found a job, or none. */
  async function elsewhere(intake: Intake, sent: Sent): Promise<Accepted> {
    const prompt = await showTheirs(intake);
    const error = 'error' in sent ? sent.error : BROKEN;
    if (!prompt) throw refused(submitUnknown(error, ownIdOf(intake)));
    return answer(prompt, 'nodeErrors' in sent ? sent.nodeErrors : {});
  }

  /**
   * This process was as good as dead, and another one has taken the prompt over: sockets hear of
   * it under the id the ledger has, whatever the job is called.
   */
  async function showTheirs(intake: Intake): Promise<LivePrompt | undefined> {
    const { label } = intake.plan;
    const row = await ledger.prompts.get(label);
    follower.disown(label, row?.promptId);
    return row && adopt(intake, row.promptId);
  }

  function adopt(intake: Intake, promptId: string): LivePrompt {
    const { plan, createdAtMs, caller, graphJson, extraDataJson } = intake;
    const { number, clientId } = intake.submission;
    const { label: key, graph, extraData, outputs: targets } = plan;
    const whose = { key, promptId, number, clientId, createdAtMs, isResumed: false };
    const what = { graph, graphJson, extraData, extraDataJson, targets };
    return follower.adopt(Object.assign(whose, what), caller);
  }

  function answer(prompt: LivePrompt, nodeErrors: NodeErrors): Accepted {
    const { promptId, number } = prompt;
    return { promptId, number, nodeErrors, release: () => follower.release(prompt) };
  }

  return { accept };
}

const BROKEN = {
  status: 500,
  code: 'internal_error',
  message: 'The submission broke off.',
  details: null,
};
const FULL = {
  status: 429,
  code: 'queue_full',
  message: 'Too many prompts are waiting for the job service to have room.',
  details: null,
  retryAfterSeconds: 10,
};

/** Whether an id can be a prompt's: v1 clients put it into paths as it is. */
export function isPlain(id: string): boolean {
  return /^[\w.~-]{1,300}$/.test(id);
}

/** The outputs to execute; with targets given that name none of them there is nothing to run. */
function outputsOf({ graph, partialTargets }: Submission, info: ObjectInfo): readonly string[] {
  const chosen = chosenOutputs(outputNodes(graph, info), partialTargets);
  if (chosen.length > 0 || partialTargets === undefined) return chosen;
  throw new V1Error(400, plainError('prompt_no_outputs', 'Prompt has no outputs'));
}

function refused({ status, body, retryAfterSeconds }: V1Refusal): V1Error {
  const headers: { [name: string]: string } =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  return new V1Error(status, promptFault(body), { headers, blames: 'job service' });
}
