import type { ServerResponse } from 'node:http';
import { refuseShape } from '../translate/prompt-refusal.ts';
import { applyCoercions } from '../translate/file-mentions.ts';
import type { Caller, SubmitRequest } from '../protocol/job-api.ts';
import { type Json, type JsonObject, LosslessNumber, isJsonObject } from '../protocol/json.ts';
import { runSteps } from '../protocol/steps.ts';
import type { Graph, Job } from '../protocol/v2.ts';

/** A job that was submitted past v1, with as much of its request as this process has seen. */
export type ExternalJob = {
  readonly caller: Caller;
  readonly jobId: string;
  /** `undefined`: the graph has to be read from the upstream. */
  readonly graph: Graph | undefined;
  /** The position in the queue: v1's `number`. */
  readonly order: number | undefined;
  readonly extraData: JsonObject;
  /** Resolves when the client that submitted the job has been answered, or has disconnected. */
  readonly answered: Promise<void>;
};

/** A job that was submitted here, and the response to its submitter. */
export type EngineSubmission = {
  readonly caller: Caller;
  readonly request: SubmitRequest;
  readonly job: Job;
  readonly response: ServerResponse;
};

/** Describes a job that the embedded engine has just accepted. */
export function externalJobOfEngine({
  caller,
  request,
  job,
  response,
}: EngineSubmission): ExternalJob {
  return {
    caller,
    jobId: job.id,
    graph: runSteps(applyCoercions(request.workflow, job.x_workflow ?? {}, [])),
    order: request.order,
    extraData: extraDataOf(request.provenance?.extraPngInfo),
    answered: whenAnswered(response),
  };
}

type ForwardedSubmission = {
  readonly caller: Caller;
  readonly body: () => Promise<JsonObject | undefined>;
  readonly job: JsonObject;
  readonly response: ServerResponse;
};

/**
 * Describes the job of a request that was forwarded to a service. `undefined`: the answer is not a
 * job.
 */
export async function externalJobOfService({
  caller,
  body: read,
  job,
  response,
}: ForwardedSubmission): Promise<ExternalJob | undefined> {
  const { id, urls, x_workflow: coerced } = job;
  if (typeof id !== 'string' || id === '' || !isJsonObject(urls)) return undefined;
  const answered = whenAnswered(response);
  const body = await read();
  const graph = graphOf(body?.workflow);
  return {
    caller,
    jobId: id,
    graph: graph && runSteps(applyCoercions(graph, graphOf(coerced) ?? {}, [])),
    order: orderOf(body?.x_order),
    extraData: extraDataOf(body?.x_extra_pnginfo),
    answered,
  };
}

/** Returns the workflow when v1 can show it, that is when it is an object of nodes. */
export function graphOf(value: Json | undefined): Graph | undefined {
  if (!isJsonObject(value) || refuseShape(value)) return undefined;
  const isGraph = Object.values(value).every((node) => isJsonObject((node as JsonObject).inputs));
  return isGraph ? (value as Graph) : undefined;
}

function orderOf(value: Json | undefined): number | undefined {
  if (typeof value !== 'number' && !(value instanceof LosslessNumber)) return undefined;
  const order = Number(value.toString());
  return Number.isFinite(order) ? order : undefined;
}

/** Leaves out v2's `extra_data`, which holds only keys. The data for saved files is no secret. */
function extraDataOf(extraPngInfo: Json | undefined): JsonObject {
  return isJsonObject(extraPngInfo) ? { extra_pnginfo: extraPngInfo } : {};
}

function whenAnswered(response: ServerResponse): Promise<void> {
  if (response.destroyed || response.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    response.once('finish', resolve).once('close', resolve);
  });
}
