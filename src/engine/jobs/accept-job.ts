import type { Clock } from '../../lib/clock.ts';
import { randomUUID } from 'node:crypto';
import { reached } from '../../lib/crash-point.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { runInSteps } from '../../lib/event-loop.ts';
import { createLazyJson } from '../../lib/lazy-json.ts';
import { STORAGE_FULL, isStorageFull } from '../../lib/storage-errors.ts';
import {
  type Caller,
  ok,
  refuse,
  type Result,
  type SubmitRequest,
} from '../../protocol/job-api.ts';
import {
  isJsonObject,
  type Json,
  isSameJson,
  entriesInOrder,
  objectInOrder,
} from '../../protocol/json.ts';
import { type Steps } from '../../protocol/steps.ts';
import type { Graph } from '../../protocol/v2.ts';
import type { JobFiles } from '../assets/job-files.ts';
import type { EngineLimits } from '../job-engine.ts';
import type { JobQueue } from './job-queue.ts';
import { type LiveJob, toRow, unstarted } from './live-job.ts';
import { resolveFiles } from './resolve-files.ts';
import { findOutputs, validateOutputs } from '../validation/validate-workflow.ts';

export type AcceptOptions = JobFiles & {
  readonly ledger: Ledger;
  readonly limits: EngineLimits;
  readonly clock: Clock;
  /** Inserts a job while it holds a slot in the bounded queue; refuses when the queue is full. */
  readonly withSlot: <T>(user: string, insert: () => Promise<Result<T>>) => Promise<Result<T>>;
  readonly queue: JobQueue;
};

/**
 * Accepts a submission: validates it, resolves its assets, checks the limit of the queue and the
 * idempotency key, and stores the job durably.
 */
export async function acceptJob(
  { user }: Caller,
  request: SubmitRequest,
  deps: AcceptOptions,
): Promise<Result<LiveJob>> {
  const files = deps.fileLookupOf(user);
  const outputs = findOutputs(request.workflow, files.nodes);
  if (!outputs.ok) return outputs;
  const targets = outputs.value;
  const resolved = await resolveFiles({ workflow: request.workflow, targets }, files);
  const context = { nodes: files.nodes, unknownFiles: resolved.unknownFiles };
  const valid = await runInSteps(validateOutputs(request.workflow, targets, context));
  if (!valid.ok) return valid;
  const release = deps.assets.hold(resolved.assetIds);
  try {
    const missing = [...resolved.missing, ...(await deps.assets.missing(resolved.assetIds))];
    if (missing.length > 0) return refuseMissing(missing);
    const accepted = { user, request, workflow: valid.value, targets, reads: resolved.assetIds };
    return await deps.withSlot(user, () => insertJob(accepted, deps));
  } catch (error) {
    // Refused, not thrown: a submission that breaks off may have made a job.
    if (isStorageFull(error)) return refuse(507, 'insufficient_storage', STORAGE_FULL);
    throw error;
  } finally {
    // In this turn the caller makes it a live job.
    setImmediate(release);
  }
}

type AcceptedJob = Pick<LiveJob, 'user' | 'targets' | 'reads'> & {
  readonly workflow: Graph;
  readonly request: SubmitRequest;
};

async function insertJob(accepted: AcceptedJob, deps: AcceptOptions): Promise<Result<LiveJob>> {
  const { user, request } = accepted;
  const key = request.idempotencyKey;
  const nowMs = deps.clock.now();
  // The text that came with the workflow is its JSON if nothing in it was coerced.
  const isUnchanged = accepted.workflow === request.workflow;
  const provenance = await runInSteps(coercedProvenance(request, accepted.workflow));
  const job: LiveJob = {
    ...unstarted(),
    id: request.jobId ?? randomUUID(),
    user,
    order: request.order ?? (await deps.queue.nextOrder()),
    createdAtMs: nowMs,
    expiresAtMs: nowMs + deps.limits.retentionMs,
    workflow: createLazyJson(accepted.workflow, isUnchanged ? request.workflowJson : undefined),
    targets: accepted.targets,
    provenance: provenance && createLazyJson(provenance),
    metadata: request.metadata ?? null,
    reads: accepted.reads,
    traceparent: request.traceparent,
  };
  // The caller syncs the ledger before it answers.
  if (!(await deps.ledger.jobs.insert(await toRow(job), key, 'soon')))
    return refuse(422, 'idempotency_key_reuse', 'this idempotency key has been used before');
  reached('after-job-insert');
  return ok(job);
}

/**
 * Saved files contain the prompt as validation coerced it, with file names as the client wrote
 * them.
 */
function* coercedProvenance(
  { provenance, workflow: submitted }: SubmitRequest,
  coerced: Graph,
): Steps<NonNullable<SubmitRequest['provenance']> | null> {
  const isUnchanged = coerced === submitted;
  if (!provenance || isUnchanged || !isJsonObject(provenance.prompt)) return provenance ?? null;
  const nodes: [string, Json][] = [];
  for (const [id, node] of entriesInOrder(provenance.prompt)) {
    const [before, after] = [submitted[id]?.inputs ?? {}, coerced[id]?.inputs ?? {}];
    if (!isJsonObject(node) || !isJsonObject(node['inputs'])) {
      nodes.push([id, node]);
      continue;
    }
    const inputs = Object.entries(node['inputs']).map(([name, value]) => [
      name,
      isSameJson(before[name] ?? null, value) ? (after[name] ?? value) : value,
    ]);
    nodes.push([id, { ...node, inputs: Object.fromEntries(inputs) as Json }]);
    yield 1 + inputs.length;
  }
  return { ...provenance, prompt: objectInOrder(nodes) };
}

function refuseMissing(missing: readonly string[]): Result<never> {
  const details = { missing_ids: [...new Set(missing)] };
  return refuse(422, 'missing_asset', 'the workflow names assets that do not exist', { details });
}
