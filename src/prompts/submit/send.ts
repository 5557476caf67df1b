import {
  type V1Refusal,
  outputsWithoutErrors,
  toPromptRefusal,
  isCapacityRefusal,
} from '../../translate/prompt-refusal.ts';
import { jobErrorOf } from '../../translate/late-rejection.ts';
import { errorsInOrder } from '../../translate/node-errors.ts';
import { extraPngInfo } from '../../translate/file-mentions.ts';
import type { Json } from '../../protocol/json.ts';
import { withGivenNames } from '../../protocol/upload-folders.ts';
import { type Caller, type SubmitRequest, type V2Error } from '../../protocol/job-api.ts';
import type { NodeErrors } from '../../protocol/v1.ts';
import type { Job, JobError } from '../../protocol/v2.ts';
import type { PromptContext } from '../context.ts';
import { givenNames } from '../../files/resolve-files.ts';
import { renewAssets } from '../../files/renew-assets.ts';
import {
  KEY_LABEL,
  type SubmissionPlan,
  toStoredPlan,
  changedKey,
  withOutputs,
  withNewKey,
  workflowOf,
} from './plan.ts';

/** The result of a submission; `plan` is the one that was sent last. */
export type SendResult = { readonly plan: SubmissionPlan } & (
  | { readonly kind: 'accepted'; readonly job: Job; readonly nodeErrors: NodeErrors }
  /** The refusal is certain and permanent. */
  | { readonly kind: 'refused'; readonly error: V2Error; readonly refusal: V1Refusal }
  /** The refusal is certain but temporary; the key of `plan` is free. */
  | { readonly kind: 'no capacity'; readonly error: V2Error }
  | { readonly kind: 'unsent'; readonly error: V2Error }
  /**
   * There may be a job. When an attempt has certainly reached the service, the plan must not be
   * sent again.
   */
  | { readonly kind: 'unknown'; readonly error: V2Error; readonly mayResend: boolean }
);

export type SubmissionSender = ReturnType<typeof createSubmissionSender>;

/** The result of this kind. */
export type SendResultOf<Kind extends SendResult['kind']> = SendResult & { readonly kind: Kind };

type RefusedResult = SendResultOf<'refused'>;

/** Sends the plans of prompts to the upstream. */
export function createSubmissionSender({
  jobs,
  ledger,
  reupload,
}: Pick<PromptContext, 'jobs' | 'ledger' | 'reupload'>) {
  const { files } = ledger;
  async function attempt(
    caller: Caller,
    plan: SubmissionPlan,
    more: Pick<SubmitRequest, 'workflowJson' | 'isRepeated'> = {},
  ): Promise<SendResult> {
    const result = await jobs.submit(caller, { ...toSubmitRequest(plan), ...more });
    if (result.ok) return { kind: 'accepted', plan, job: result.value, nodeErrors: {} };
    const error = withNamesOf(plan, result.error);
    const kind = classifyError(error);
    if (kind === 'unknown') {
      const mayResend = error.code !== KEY_REUSED && error.outcome !== 'not_repeatable';
      return { kind, plan, error, mayResend };
    }
    if (kind === 'refused') return { kind, plan, error, refusal: toRefusal(error, plan) };
    return { kind, plan: error.outcome === 'not_taken' ? withNewKey(plan) : plan, error };
  }

  /** Returns another plan that may be accepted; none if the refused plan may have made a job. */
  async function nextPlan(
    caller: Caller,
    sent: RefusedResult,
  ): Promise<SubmissionPlan | undefined> {
    const { plan, error, refusal } = sent;
    if (error.outcome === 'refused_late') return undefined;
    const { placed } = plan;
    const isRenewed = plan.idempotencyKey === renewedKey(plan);
    const renewed = isRenewed
      ? undefined
      : await renewAssets({ jobs, files, reupload }, caller, { resolvedFiles: placed, error });
    if (renewed) return { ...plan, placed: renewed, idempotencyKey: renewedKey(plan) };
    const validOutputs = outputsWithoutErrors(refusal.body.node_errors, plan.outputs);
    const isPartial = validOutputs.length > 0 && validOutputs.length < plan.outputs.length;
    return refusal.status === 400 && isPartial ? withOutputs(plan, validOutputs) : undefined;
  }

  /** Records the plan: a process that takes over must know which key may have made a job. */
  async function record(plan: SubmissionPlan): Promise<void> {
    await ledger.prompts.setPlan(plan.promptKey, toStoredPlan(plan, 'maybe_sent'));
  }

  /**
   * Sends a recorded plan. v2 takes a graph as a whole or not at all; v1 runs the valid outputs and
   * reports the rest.
   */
  async function sendRecorded(
    caller: Caller,
    firstPlan: SubmissionPlan,
    graphJson?: string,
  ): Promise<SendResult> {
    let nodeErrors: NodeErrors = {};
    for (let plan = firstPlan; ;) {
      const isUnchanged = workflowOf(plan) === plan.graph && graphJson !== undefined;
      const sent = await attempt(caller, plan, isUnchanged ? { workflowJson: graphJson } : {});
      if (sent.kind === 'accepted') return { ...sent, nodeErrors };
      if (sent.kind !== 'refused') return sent;
      const next = await nextPlan(caller, sent);
      const isRenewed = next !== undefined && next.outputs === plan.outputs;
      if (!isRenewed) {
        const all = { ...nodeErrors, ...sent.refusal.body.node_errors };
        nodeErrors = errorsInOrder(Object.entries(all), plan.graph);
      }
      if (next === undefined) return withNodeErrors(sent, nodeErrors);
      await record(next);
      plan = next;
    }
  }

  return {
    /**
     * Sends a plan that the ledger has unchanged. `graphJson`: the JSON of the plan's graph, if it
     * exists already.
     */
    sendRecorded,
    /** Records the plan and sends it. */
    async send(caller: Caller, plan: SubmissionPlan): Promise<SendResult> {
      await record(plan);
      return sendRecorded(caller, plan);
    },
    /** Sends a plan that may have been sent before. Does not change the plan after a refusal. */
    async sendUnchanged(caller: Caller, plan: SubmissionPlan): Promise<SendResult> {
      await record(plan);
      return attempt(caller, plan, { isRepeated: true });
    },
  };
}

/** Returns the error with the names that the client gave to its files. */
function withNamesOf({ placed }: SubmissionPlan, error: V2Error): V2Error {
  const { message, details } = error;
  const names = givenNames(placed);
  const named = withGivenNames({ message, details }, names) as Pick<V2Error, 'message' | 'details'>;
  return { ...error, ...named };
}

function withNodeErrors(sent: RefusedResult, nodeErrors: NodeErrors): RefusedResult {
  const body = { ...sent.refusal.body, node_errors: nodeErrors };
  return { ...sent, refusal: { ...sent.refusal, body } };
}

/** Returns the error of a prompt whose client cannot be told of the refusal any more. */
export function refusalAsJobError({ error, refusal, plan }: RefusedResult): JobError {
  return jobErrorOf(error, refusal, plan.graph);
}

/** Returns the answer of `POST /prompt` to a refusal of this plan. */
export function toRefusal(error: V2Error, { graph, outputs, placed }: SubmissionPlan): V1Refusal {
  return toPromptRefusal(error, graph, { outputs, resolvedFiles: placed });
}

const KEY_REUSED = 'idempotency_key_reuse';

/** Used at most once: a file that is missing a second time is gone. */
function renewedKey(plan: SubmissionPlan): string {
  return changedKey(plan, 'healed');
}

function classifyError(error: V2Error): Exclude<SendResult['kind'], 'accepted'> {
  const isUnknown = error.outcome === 'unknown' || error.outcome === 'not_repeatable';
  if (isUnknown || error.code === KEY_REUSED) return 'unknown';
  if (error.outcome === 'not_sent' || error.outcome === 'not_taken') return 'unsent';
  // v1 clients expect surplus jobs to wait in a queue; its own 429 means a subscription.
  return isCapacityRefusal(error) ? 'no capacity' : 'refused';
}

function toSubmitRequest(plan: SubmissionPlan): SubmitRequest {
  return {
    workflow: workflowOf(plan),
    extraData: plan.secrets,
    idempotencyKey: plan.idempotencyKey,
    // The job gets the id that the client was told, so that the id holds when a power cut loses the
    // link.
    ...(plan.idempotencyKey === plan.promptKey && { jobId: plan.promptKey }),
    metadata: { [KEY_LABEL]: plan.promptKey },
    order: plan.number,
    provenance: {
      prompt: plan.graph as Json,
      extraPngInfo: extraPngInfo(plan.extraData),
    },
  };
}
