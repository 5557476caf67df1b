import { randomUUID } from 'node:crypto';
import { reached } from '../crash-point.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import { type Caller, ok, refuse, type Result, type SubmitRequest } from '../wire/jobs.ts';
import { isJsonObject, type Json, stringifyJson } from '../wire/json.ts';
import type { Graph } from '../wire/v2.ts';
import { type LiveJob, newJob, toRow } from './live.ts';
import { closure } from './plan.ts';
import { type Resolved, resolveFiles, type ResolveDeps } from './resolve.ts';
import { validateWorkflow } from './validate.ts';

const QUEUE_FULL_RETRY_S = 5;

type Place = { release(): void };

export type SubmitDeps = {
  readonly ledger: Ledger;
  readonly nodes: ReadonlyMap<string, NodeDef>;
  readonly retentionMs: number;
  readonly clock: () => number;
  readonly filesOf: (user: string) => ResolveDeps;
  /** Takes a place in the bounded queue, or answers undefined; `release` gives back one that was not used. */
  readonly reserve: (user: string) => Place | undefined | Promise<Place | undefined>;
  readonly lastPlace: () => number | Promise<number>;
};

/** Takes a submission through validation, asset resolution, queue bound and key claim to a durable job. */
export async function acceptJob(
  { user }: Caller,
  request: SubmitRequest,
  deps: SubmitDeps,
): Promise<Result<LiveJob>> {
  const valid = validateWorkflow(request.workflow, deps.nodes);
  if (!valid.ok) return valid;
  const { workflow, outputs } = valid.value;
  const resolved = await resolveFiles({ workflow, targets: outputs }, deps.filesOf(user));
  const refusal = refuseFiles(resolved, workflow, outputs);
  if (refusal) return refusal;
  const place = await deps.reserve(user);
  if (!place) {
    return refuse(429, 'queue_full', 'the queue is full', {
      retryAfterSeconds: QUEUE_FULL_RETRY_S,
    });
  }
  try {
    return await insertJob(
      { user, request, workflow, targets: outputs, reads: resolved.assetIds },
      deps,
    );
  } finally {
    place.release();
  }
}

type Accepted = Pick<LiveJob, 'user' | 'workflow' | 'targets' | 'reads'> & {
  readonly request: SubmitRequest;
};

async function insertJob(accepted: Accepted, deps: SubmitDeps): Promise<Result<LiveJob>> {
  const { user, request } = accepted;
  const key = request.idempotencyKey;
  const nowMs = deps.clock();
  const job = newJob({
    id: randomUUID(),
    user,
    order: request.order ?? (await deps.lastPlace()),
    createdAtMs: nowMs,
    expiresAtMs: nowMs + deps.retentionMs,
    workflow: accepted.workflow,
    targets: accepted.targets,
    provenance: coercedProvenance(request, accepted.workflow),
    metadata: request.metadata ?? null,
    reads: accepted.reads,
  });
  if (!(await deps.ledger.jobs.insert(toRow(job), key))) {
    return refuse(422, 'idempotency_key_reuse', 'this idempotency key has been used before');
  }
  reached('after-job-insert');
  return ok(job);
}

/** Saved files carry the prompt as validation coerced it, the names of files as the client wrote them. */
function coercedProvenance(
  { provenance, workflow: submitted }: SubmitRequest,
  coerced: Graph,
): SubmitRequest['provenance'] | null {
  if (!provenance || !isJsonObject(provenance.prompt)) return provenance ?? null;
  const nodes = Object.entries(provenance.prompt).map(([id, node]): [string, Json] => {
    const [before, after] = [submitted[id]?.inputs ?? {}, coerced[id]?.inputs ?? {}];
    if (!isJsonObject(node) || !isJsonObject(node['inputs'])) return [id, node];
    const inputs = Object.entries(node['inputs']).map(([name, value]) => {
      const isSame = stringifyJson(before[name] ?? null) === stringifyJson(value);
      return [name, isSame ? (after[name] ?? value) : value];
    });
    return [id, { ...node, inputs: Object.fromEntries(inputs) as Json }];
  });
  return { ...provenance, prompt: Object.fromEntries(nodes) };
}

function refuseFiles(
  { missing, unknownFiles: failures }: Resolved,
  workflow: Graph,
  targets: readonly string[],
): Result<never> | undefined {
  if (missing.length > 0) {
    const details = { missing_ids: [...new Set(missing)] };
    return refuse(422, 'missing_asset', 'the workflow names assets that do not exist', { details });
  }
  if (failures.length === 0) return undefined;
  const nodeErrors: { [nodeId: string]: Json } = {};
  for (const { nodeId } of failures) {
    nodeErrors[nodeId] = {
      errors: failures.filter((failure) => failure.nodeId === nodeId).map(invalidFile),
      dependent_outputs: targets.filter((target) => closure(workflow, [target]).includes(nodeId)),
      class_type: workflow[nodeId]?.class_type ?? '',
    };
  }
  const details = { node_errors: nodeErrors };
  return refuse(422, 'invalid_workflow', 'Prompt outputs failed validation', { details });
}

/** v1's words for a loader whose file is not there. */
function invalidFile({ input, value }: Resolved['unknownFiles'][number]): Json {
  return {
    type: 'custom_validation_failed',
    message: 'Custom validation failed for node',
    details: `${input} - Invalid image file: ${value}`,
    extra_info: { input_name: input },
  };
}
