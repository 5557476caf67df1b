import type { PromptRow } from '../../ledger/ledger.ts';
import { pruneTo } from '../../translate/graph.ts';
import {
  type PartnerCredentials,
  partnerCredentialsOf,
  withoutSecrets,
} from '../../translate/partner-credentials.ts';
import { type JsonObject, parseJson } from '../../protocol/json.ts';
import type { Caller } from '../../protocol/job-api.ts';
import type { Graph } from '../../protocol/v2.ts';
import { type ResolvedFile, insertAssetReferences } from '../../files/resolve-files.ts';
import type { Submission } from '../submission.ts';

/** The metadata label of a job at the upstream, by which the job is found after a crash. */
export const KEY_LABEL = 'holdover_key';

/** Everything that is needed to submit a prompt, now or again. */
export type SubmissionPlan = {
  /** The key of the prompt; also the metadata label of its job. */
  readonly promptKey: string;
  /** The key changes only after a certain refusal. */
  readonly idempotencyKey: string;
  /** The graph as the client sent it. */
  readonly graph: Graph;
  readonly resolvedFiles: readonly ResolvedFile[];
  readonly outputs: readonly string[];
  /** True when the whole graph is sent; false: only the nodes that the outputs need. */
  readonly isWhole: boolean;
  readonly number: number;
  readonly extraData: JsonObject;
  readonly secrets: PartnerCredentials;
  /** The names of the secrets, if each of them is the credential of the caller. */
  readonly ownSecrets: readonly string[];
  /**
   * True when the prompt came with secrets that were lost with their process: its job can be
   * searched for, but the plan cannot be sent.
   */
  readonly lacksSecrets: boolean;
  /** The trace context of the `POST`, where traces are made. */
  readonly traceparent?: string | undefined;
};

/**
 * The part of a plan that the ledger stores beside the graph. The names of its members are stored:
 * they never change.
 */
type PlanJson = {
  readonly key: string;
  readonly placed: readonly ResolvedFile[];
  readonly isWhole: boolean;
  /** True when the prompt came with keys of its own, which are in memory only. */
  readonly hasSecrets: boolean;
  readonly ownKeys: readonly string[];
  /** The trace that a later process continues. Absent: no trace was made. */
  readonly traceparent?: string;
};

/** The members of a plan beside its submission. */
type PlanDetails = Pick<SubmissionPlan, 'outputs' | 'resolvedFiles' | 'traceparent'> & {
  readonly caller: Caller;
};

export function createPlan(
  key: string,
  submission: Submission,
  details: PlanDetails,
): SubmissionPlan {
  const { caller, ...rest } = details;
  const { graph, number, extraData, partialTargets } = submission;
  return {
    ...rest,
    promptKey: key,
    idempotencyKey: key,
    graph,
    number,
    isWhole: partialTargets === undefined,
    extraData: withoutSecrets(extraData),
    secrets: partnerCredentialsOf(extraData),
    ownSecrets: findOwnSecrets(partnerCredentialsOf(extraData), caller),
    lacksSecrets: false,
  };
}

function findOwnSecrets(secrets: PartnerCredentials, { credential }: Caller): readonly string[] {
  const isOwn = Object.values(secrets).every((secret) => secret === credential);
  return isOwn ? Object.keys(secrets) : [];
}

/**
 * Returns a plan of the same prompt with fewer outputs. Its first key is free again, since the
 * refusal was certain.
 */
export function withOutputs(plan: SubmissionPlan, outputs: readonly string[]): SubmissionPlan {
  return {
    ...plan,
    outputs,
    isWhole: false,
    idempotencyKey: changedKey(plan, String(outputs.length)),
  };
}

/**
 * Returns a plan of the same prompt with a new key, after the service lost its job or made none.
 * The old key may be used up.
 */
export function withNewKey(plan: SubmissionPlan): SubmissionPlan {
  return { ...plan, idempotencyKey: `${plan.promptKey}.again${newKeyCount(plan) + 1}` };
}

/** Returns how many keys of the prompt were used up without a job that ran. */
export function newKeyCount({ promptKey, idempotencyKey }: SubmissionPlan): number {
  return Number(/^\.again(\d+)/.exec(idempotencyKey.slice(promptKey.length))?.[1] ?? 0);
}

/** Returns a changed key for the same submission, after a certain refusal. */
export function changedKey(plan: SubmissionPlan, change: string): string {
  const { promptKey } = plan;
  const newKeys = newKeyCount(plan);
  return newKeys === 0 ? `${promptKey}.${change}` : `${promptKey}.again${newKeys}_${change}`;
}

/** Returns the workflow that is sent to v2. */
export function workflowOf({ graph, resolvedFiles, isWhole, outputs }: SubmissionPlan): Graph {
  const workflow = insertAssetReferences(graph, resolvedFiles);
  return isWhole ? workflow : pruneTo(workflow, outputs);
}

/** Returns the part of the plan that the ledger has to store before the plan is sent. */
export function toStoredPlan(plan: SubmissionPlan): Pick<PromptRow, 'intentJson' | 'targetsJson'> {
  const { idempotencyKey: key, resolvedFiles: placed, isWhole, secrets, traceparent } = plan;
  const ownKeys = plan.ownSecrets;
  const hasSecrets = plan.lacksSecrets || Object.keys(secrets).length > 0;
  const trace = traceparent === undefined ? undefined : { traceparent };
  const stored: PlanJson = { key, placed, isWhole, hasSecrets, ownKeys, ...trace };
  return { intentJson: JSON.stringify(stored), targetsJson: JSON.stringify(plan.outputs) };
}

/** Reads a stored plan. The record of a job that was submitted through v2 has none. */
function parseStoredPlan(intentJson: string): Partial<PlanJson> {
  return JSON.parse(intentJson) as Partial<PlanJson>;
}

/**
 * True when the prompt was submitted through v1. Jobs submitted through v2 have an owner of their
 * own.
 */
export function isSubmittedThroughV1({ intentJson }: PromptRow): boolean {
  return parseStoredPlan(intentJson).key !== undefined;
}

/** Returns the trace context of the `POST`, whichever process received it. */
export function traceparentIn({ intentJson }: PromptRow): string | undefined {
  return parseStoredPlan(intentJson).traceparent;
}

/** True when the plan can be sent only with the credential of its caller among its secrets. */
export function needsOwnSecrets({ jobId, intentJson }: PromptRow): boolean {
  return jobId === null && (parseStoredPlan(intentJson).ownKeys ?? []).length > 0;
}

/**
 * Restores the plan of an earlier process. Adds the credential of the caller if the plan needs it
 * and it is known.
 */
export function restorePlan(row: PromptRow, { credential }: Caller): SubmissionPlan {
  const stored = parseStoredPlan(row.intentJson);
  const { ownKeys: ownSecrets = [] } = stored;
  const restoredSecrets =
    credential === undefined ? [] : ownSecrets.map((name) => [name, credential]);
  return {
    promptKey: row.key,
    idempotencyKey: stored.key ?? row.key,
    graph: parseJson(row.graphJson) as Graph,
    resolvedFiles: stored.placed ?? [],
    outputs: parseJson(row.targetsJson) as readonly string[],
    isWhole: stored.isWhole ?? true,
    number: row.number,
    extraData: parseJson(row.extraDataJson) as JsonObject,
    secrets: Object.fromEntries(restoredSecrets) as PartnerCredentials,
    ownSecrets,
    lacksSecrets: stored.hasSecrets === true && restoredSecrets.length === 0,
    traceparent: stored.traceparent,
  };
}
