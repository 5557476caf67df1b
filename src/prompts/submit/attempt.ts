import {
  type V1Refusal,
  isCapacityRefusal,
  outputsWithoutErrors,
  toPromptRefusal,
} from '../../translate/prompt-refusal.ts';
import { errorsInOrder } from '../../translate/node-errors.ts';
import type { Json } from '../../protocol/json.ts';
import { withGivenNames } from '../../protocol/upload-folders.ts';
import { type Caller, type SubmitRequest, type V2Error, v2Error } from '../../protocol/job-api.ts';
import type { NodeErrors } from '../../protocol/v1.ts';
import type { Job } from '../../protocol/v2.ts';
import type { PromptPorts } from '../ports.ts';
import { givenNames } from '../../files/resolve-files.ts';
import { renewAssets } from '../../files/renew-assets.ts';
import { KEY_LABEL, type SubmissionPlan, changedKey, withOutputs, workflowOf } from './plan.ts';
import type { AttemptInput } from './submission-table.ts';

/** The result of sending a plan. */
export type Attempt = AcceptedAttempt | FailedAttempt;

type AcceptedAttempt = Sent & {
  readonly input: 'accepted';
  readonly job: Job;
  readonly error?: undefined;
};

export type FailedAttempt = Sent & {
  readonly job?: undefined;
  readonly input: Exclude<AttemptInput, 'accepted'>;
  readonly error: V2Error;
  /** The answer of `POST /prompt` to the error. */
  readonly refusal: V1Refusal;
};

type Sent = {
  /** The plan that was sent last. */
  readonly plan: SubmissionPlan;
  /** The errors of the outputs that this plan lacks. */
  readonly nodeErrors: NodeErrors;
};

type SendOptions = {
  /**
   * Records a changed plan before it is sent, since a process that takes over must know which key
   * may have made a job. `undefined`: the plan must not be changed.
   */
  readonly record?: ((plan: SubmissionPlan) => Promise<void>) | undefined;
  /** The JSON of the plan's graph, if it exists already. */
  readonly graphJson?: string | undefined;
};

/**
 * Sends a plan that is recorded. v2 takes a graph as a whole or not at all; v1 runs the valid outputs
 * and reports the rest. A refusal that another plan can repair is repaired.
 */
export async function sendPlan(
  ports: PromptPorts,
  caller: Caller,
  firstPlan: SubmissionPlan,
  { record, graphJson }: SendOptions,
): Promise<Attempt> {
  let nodeErrors: NodeErrors = {};
  for (let plan = firstPlan; ;) {
    const sent = await sendOnce(ports, caller, plan, graphJson);
    if (!record || !isRefused(sent)) return { ...sent, nodeErrors };
    const next = await nextPlan(ports, caller, sent);
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

async function sendOnce(
  { jobs }: PromptPorts,
  caller: Caller,
  plan: SubmissionPlan,
  graphJson: string | undefined,
): Promise<Attempt> {
  const isUnchanged = graphJson !== undefined && workflowOf(plan) === plan.graph;
  const request = { ...toSubmitRequest(plan), ...(isUnchanged && { workflowJson: graphJson }) };
  const result = await jobs.api.submit(caller, request);
  if (result.ok) return { input: 'accepted', plan, job: result.value, nodeErrors: {} };
  const error = withNamesOf(plan, result.error);
  const refusal = toRefusal(error, plan);
  return { input: inputOf(error), plan, nodeErrors: {}, error, refusal };
}

/** Returns another plan that may be accepted. */
async function nextPlan(
  { jobs: { api, reupload }, records: { files } }: PromptPorts,
  caller: Caller,
  { plan, error, refusal }: FailedAttempt,
): Promise<SubmissionPlan | undefined> {
  const isRenewed = plan.idempotencyKey === renewedKey(plan);
  const renewed = isRenewed
    ? undefined
    : await renewAssets({ jobs: api, files, reupload }, caller, {
        resolvedFiles: plan.resolvedFiles,
        error,
      });
  if (renewed) return { ...plan, resolvedFiles: renewed, idempotencyKey: renewedKey(plan) };
  const validOutputs = outputsWithoutErrors(refusal.body.node_errors, plan.outputs);
  const isPartial = validOutputs.length > 0 && validOutputs.length < plan.outputs.length;
  return refusal.status === 400 && isPartial ? withOutputs(plan, validOutputs) : undefined;
}

/** True when the service made no job, for a reason that is not its capacity. */
function isRefused(sent: Attempt): sent is FailedAttempt {
  return sent.input === 'refused' || sent.input === 'refused for now';
}

/** Returns the attempt that failed inside Holdover: the request may have been sent. */
export function brokenOff(plan: SubmissionPlan): FailedAttempt {
  const error = v2Error(500, 'internal_error', 'The submission broke off.', { outcome: 'unknown' });
  return { input: 'unknown', plan, nodeErrors: {}, error, refusal: toRefusal(error, plan) };
}

/** Returns the error with the names that the client gave to its files. */
function withNamesOf({ resolvedFiles }: SubmissionPlan, error: V2Error): V2Error {
  const names = givenNames(resolvedFiles);
  const message = withGivenNames(error.message, names) as string;
  return { ...error, message, details: withGivenNames(error.details, names) };
}

function withNodeErrors(sent: FailedAttempt, nodeErrors: NodeErrors): FailedAttempt {
  const body = { ...sent.refusal.body, node_errors: nodeErrors };
  return { ...sent, refusal: { ...sent.refusal, body } };
}

/** Returns the answer of `POST /prompt` to a refusal of this plan. */
export function toRefusal(error: V2Error, plan: SubmissionPlan): V1Refusal {
  return toPromptRefusal(error, plan.graph, plan);
}

/** Used at most once: a file that is missing a second time is gone. */
function renewedKey(plan: SubmissionPlan): string {
  return changedKey(plan, 'healed');
}

function inputOf(error: V2Error): FailedAttempt['input'] {
  if (error.outcome !== undefined) return error.outcome;
  if (error.code === 'idempotency_key_reuse') return 'key used';
  // v1 clients expect surplus jobs to wait in a queue; its own 429 means a subscription.
  if (isCapacityRefusal(error)) return 'full';
  // A refused key may be accepted tomorrow, a page in place of JSON comes from a proxy, and a full
  // disk may have room later.
  const mayPass = [401, 507].includes(error.status) || error.code === 'bad_upstream_response';
  return mayPass ? 'refused for now' : 'refused';
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
      // v1's graph from the front end, and the other members that it wants in saved files.
      extraPngInfo: plan.extraData.extra_pnginfo ?? null,
    },
  };
}
