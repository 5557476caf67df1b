import type { PromptIntent, PromptRow } from '../../ledger/ledger.ts';
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

/** The label a job carries upstream, by which it is found again after a crash. */
export const KEY_LABEL = 'holdover_key';

/** Everything needed to submit a prompt, now or once more. */
export type SubmissionPlan = {
  /** Of the prompt; the job's label. */
  readonly label: string;
  /** The v2 idempotency key: another one only when the one before was refused for certain. */
  readonly key: string;
  /** As the client sent it. */
  readonly graph: Graph;
  readonly placed: readonly ResolvedFile[];
  readonly outputs: readonly string[];
  /** Nothing of the graph is left out. */
  readonly isWhole: boolean;
  readonly number: number;
  readonly extraData: JsonObject;
  readonly secrets: PartnerCredentials;
  /** Names of the secrets, if all of them are the key their owner calls with. */
  readonly ownKeys: readonly string[];
  /** It came with secrets that are gone with its process: it can be looked for, not sent. */
  readonly lacksSecrets: boolean;
};

/** What the ledger keeps of a plan beside the graph. */
type StoredPlan = {
  /** Absent of a prompt an older version took. */
  readonly where?: SendState;
  readonly key: string;
  readonly placed: readonly ResolvedFile[];
  readonly isWhole: boolean;
  /** The prompt came with keys of its own, which are in memory only. */
  readonly hasSecrets: boolean;
  readonly ownKeys: readonly string[];
};

export function createPlan(
  key: string,
  submission: Submission,
  details: Pick<SubmissionPlan, 'outputs' | 'placed'> & { readonly owner: Caller },
): SubmissionPlan {
  const { outputs, placed, owner } = details;
  const { graph, number, extraData, partialTargets } = submission;
  return {
    outputs,
    placed,
    label: key,
    key,
    graph,
    number,
    isWhole: partialTargets === undefined,
    extraData: withoutSecrets(extraData),
    secrets: partnerCredentialsOf(extraData),
    ownKeys: findOwnKeys(partnerCredentialsOf(extraData), owner),
    lacksSecrets: false,
  };
}

function findOwnKeys(secrets: PartnerCredentials, { credential }: Caller): readonly string[] {
  const isOwn = Object.values(secrets).every((secret) => secret === credential);
  return isOwn ? Object.keys(secrets) : [];
}

/** The same prompt with fewer outputs. Its first key is free again: the refusal was certain. */
export function withOutputs(plan: SubmissionPlan, outputs: readonly string[]): SubmissionPlan {
  return { ...plan, outputs, isWhole: false, key: changedKey(plan, String(outputs.length)) };
}

/**
 * The same prompt once more, after the service lost its job or was found to have made none: its key
 * may be used up, so it has another one.
 */
export function withNewKey(plan: SubmissionPlan): SubmissionPlan {
  return { ...plan, key: `${plan.label}.again${resendCount(plan) + 1}` };
}

/** How often it was sent again because its job was lost. */
export function resendCount({ label, key }: Pick<SubmissionPlan, 'label' | 'key'>): number {
  return Number(/^\.again(\d+)/.exec(key.slice(label.length))?.[1] ?? 0);
}

/** A key for the same submission, changed after a refusal that was certain. */
export function changedKey(
  { label, key }: Pick<SubmissionPlan, 'label' | 'key'>,
  change: string,
): string {
  const resends = resendCount({ label, key });
  return resends === 0 ? `${label}.${change}` : `${label}.again${resends}_${change}`;
}

/** What v2 is asked to run. */
export function workflowOf({ graph, placed, isWhole, outputs }: SubmissionPlan): Graph {
  const workflow = insertAssetReferences(graph, placed);
  return isWhole ? workflow : pruneTo(workflow, outputs);
}

/** `here`: it was not sent, or refused for certain; `away`: it is being sent, or was. */
export type SendState = 'here' | 'away';

/** What the ledger has to know before the plan is sent. */
export function toStoredPlan(plan: SubmissionPlan, where: SendState): PromptIntent {
  const { key, placed, isWhole, outputs, secrets, ownKeys } = plan;
  const hasSecrets = plan.lacksSecrets || Object.keys(secrets).length > 0;
  const intent: StoredPlan = { where, key, placed, isWhole, hasSecrets, ownKeys };
  return { intentJson: JSON.stringify(intent), targetsJson: JSON.stringify(outputs) };
}

/** Older versions wrote less. */
function parseStoredPlan(intentJson: string): Partial<StoredPlan> {
  return JSON.parse(intentJson) as Partial<StoredPlan>;
}

/** Whether an earlier process may have sent it, with an outcome nobody knows. */
export function mayHaveBeenSent({ intentJson }: PromptRow): boolean {
  return parseStoredPlan(intentJson).where !== 'here';
}

/** True when it was submitted here; jobs that were submitted through v2 have an owner of their own. */
export function isSubmittedThroughV1({ intentJson }: PromptRow): boolean {
  return parseStoredPlan(intentJson).key !== undefined;
}

/** Whether it can only be sent with the key its owner calls with. */
export function needsCallerKey({ jobId, intentJson }: PromptRow): boolean {
  return jobId === null && (parseStoredPlan(intentJson).ownKeys ?? []).length > 0;
}

/** The plan of an earlier process, with the owner's key if it needs that one and it is known. */
export function restorePlan(row: PromptRow, { credential }: Caller): SubmissionPlan {
  const intent = parseStoredPlan(row.intentJson);
  const { ownKeys = [] } = intent;
  const restoredSecrets = credential === undefined ? [] : ownKeys.map((name) => [name, credential]);
  return {
    label: row.key,
    key: intent.key ?? row.key,
    graph: parseJson(row.graphJson) as Graph,
    placed: intent.placed ?? [],
    outputs: parseJson(row.targetsJson) as readonly string[],
    isWhole: intent.isWhole ?? true,
    number: row.number,
    extraData: parseJson(row.extraDataJson) as JsonObject,
    secrets: Object.fromEntries(restoredSecrets) as PartnerCredentials,
    ownKeys,
    lacksSecrets: intent.hasSecrets === true && restoredSecrets.length === 0,
  };
}
