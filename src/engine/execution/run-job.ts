import { createHash, randomUUID } from 'node:crypto';
import { Cancelled, type InputSpec, type NodeDef, type OutputSpec } from '../../nodes/node.ts';
import type { Link } from '../../translate/graph.ts';
import {
  isJsonObject,
  type Json,
  parseJson,
  stringifyJson,
  entriesInOrder,
  objectInOrder,
} from '../../protocol/json.ts';
import { pythonJson } from '../../protocol/python-json.ts';
import type { Graph, JobError } from '../../protocol/v2.ts';
import type { NodeCache, NodeRecords } from './node-cache.ts';
import { type CallContextOptions, NodeCallContext } from './call-context.ts';
import { execute, NodeCallError } from './execute-plan.ts';
import { jobError, publicMessage, toJobError } from '../jobs/job-error.ts';
import { createMemoryMeter } from './memory-meter.ts';
import { type RunPlan, type PlannedNode, createRunPlan } from './run-plan.ts';
import type { AskMainThread, ReadableFiles, RunEnd, RunRequest } from '../jobs/worker-protocol.ts';
import { describeInputs } from './node-values.ts';

/**
 * The limit for shown results: the server keeps them in memory, and sends them to every reader of
 * the job.
 */
const MAX_UI_CHARS = 4 * 2 ** 20;

export type RunServices = Pick<CallContextOptions, 'ask' | 'post' | 'spoolDir'> & {
  readonly nodes: ReadonlyMap<string, NodeDef>;
  readonly cache: NodeCache;
};

/** Runs one job to its end inside a worker thread. Every outcome is returned as a value. */
export async function runJob(request: RunRequest, deps: RunServices): Promise<RunEnd> {
  const previous = deps.cache.take(request.user);
  let records: NodeRecords = new Map();
  try {
    const plan = createRunPlan({
      graph: parseJson(request.workflowJson) as Graph,
      targets: request.targets,
      nodes: deps.nodes,
      files: request.files,
      nonce: randomUUID(),
    });
    records = await reusableRecords(previous, plan, deps.ask);
    await executePlan(plan, records, request, deps);
    return { kind: 'succeeded' };
  } catch (error) {
    return runEndOf(error);
  } finally {
    deps.cache.put(request.user, records);
  }
}

async function executePlan(
  plan: RunPlan,
  records: NodeRecords,
  request: RunRequest,
  deps: RunServices,
): Promise<void> {
  const meter = createMemoryMeter(request.memoryLimitBytes);
  const { prompt, extraPngInfo } = provenanceOf(request);
  const shown = Array.from(records.values(), ({ uiJson }) => uiJson?.length ?? 0);
  const uiChars = shown.reduce((sum, chars) => sum + chars, 0);
  const context: CallContextOptions = {
    meter,
    textBudget: { left: Math.max(0, MAX_UI_CHARS - uiChars) },
    files: request.files,
    stopFlag: request.stopFlag,
    metadata: {
      promptText: await promptText(prompt, plan, { files: request.files, ask: deps.ask }),
      extraPngInfo: isJsonObject(extraPngInfo) ? extraPngInfo : null,
    },
    ...deps,
  };
  await execute({
    plan,
    records,
    meter,
    targets: new Set(request.targets),
    post: deps.post,
    ask: deps.ask,
    contextFor: (node) => new NodeCallContext(node.id, inputTypes(node, plan), context),
  });
}

function provenanceOf({ provenanceJson, workflowJson }: RunRequest) {
  const provenance = parseJson(provenanceJson ?? '{}');
  const { prompt, extraPngInfo } = isJsonObject(provenance) ? provenance : {};
  return { prompt: prompt ?? parseJson(workflowJson), extraPngInfo };
}

function inputTypes(node: PlannedNode, plan: RunPlan): { readonly [input: string]: string } {
  const types = Array.from(linksOf(node), ([input, link]) => [input, outputType(link, plan)]);
  return Object.fromEntries(types) as { [input: string]: string };
}

function linksOf({ links, lazyLinks }: PlannedNode): PlannedNode['links'] {
  return new Map([...links, ...lazyLinks]);
}

/** Returns the type of an output. One that has the type of an input leads to that input's link. */
function outputType(link: Link, plan: RunPlan): string {
  let next: Link | undefined = link;
  let type = '*';
  while (next) {
    const node: PlannedNode | undefined = plan.get(next.from);
    const output: OutputSpec | undefined = node?.def.outputs.at(next.slot);
    type = output?.type ?? '*';
    next =
      node && output?.matchType !== undefined ? matchedLink(node, output.matchType) : undefined;
  }
  return type;
}

function matchedLink(node: PlannedNode, template: string): Link | undefined {
  const links = linksOf(node);
  const isMatched = ([, options]: InputSpec): boolean =>
    isJsonObject(options?.['template']) && options['template']['template_id'] === template;
  const names = Object.entries(node.def.required).filter(([, spec]) => isMatched(spec));
  return names.map(([name]) => links.get(name)).find((link) => link !== undefined);
}

/** Returns the reusable results. Results whose files are gone are computed again. */
async function reusableRecords(
  previous: NodeRecords,
  plan: RunPlan,
  ask: AskMainThread,
): Promise<NodeRecords> {
  const signatures = new Set([...plan.values()].map((node) => node.signature));
  const candidates = [...previous].filter(([signature]) => signatures.has(signature));
  const outputs = candidates.flatMap(([, record]) => record.outputs);
  const alive = new Set(outputs.length > 0 ? await ask('alive', outputs) : []);
  return new Map(
    candidates.filter(([, record]) => record.outputs.every((output) => alive.has(output.id))),
  );
}

/**
 * Returns the prompt as saved files hold it. v1 adds the sha256 of the bytes to each node that
 * reads a file.
 */
async function promptText(
  prompt: Json,
  plan: RunPlan,
  stored: StoredFiles,
): Promise<string | null> {
  if (!isJsonObject(prompt)) return pythonJson(prompt);
  const nodes = new Map(entriesInOrder(prompt));
  for (const node of plan.values()) {
    const digests = await fileDigests(node, stored);
    const shown = nodes.get(node.id);
    if (digests.length > 0 && isJsonObject(shown))
      nodes.set(node.id, { ...shown, is_changed: digests });
  }
  return pythonJson(objectInOrder([...nodes]));
}

type StoredFiles = { readonly files: ReadableFiles; readonly ask: AskMainThread };

async function fileDigests(
  node: PlannedNode,
  { files, ask }: StoredFiles,
): Promise<readonly string[]> {
  const digests: string[] = [];
  for (const name of node.def.fileInputs ?? []) {
    const value = node.literals.get(name)?.value;
    const hash = typeof value === 'string' ? files.get(value) : undefined;
    // If the bytes are gone, the node that reads them fails and reports it.
    const bytes = hash === undefined ? null : await ask('read', hash);
    if (bytes) digests.push(createHash('sha256').update(bytes).digest('hex'));
  }
  return digests;
}

function runEndOf(error: unknown): RunEnd {
  if (!(error instanceof NodeCallError)) {
    const message = error instanceof Error ? publicMessage(error) : String(error);
    return failed(jobError('node_execution_error', message));
  }
  if (error.cause instanceof Cancelled) return { kind: 'stopped' };
  const node = {
    node_id: error.node.id,
    class_type: error.node.def.name,
    x_current_inputs: describeInputs(error.inputs),
  };
  const { cause } = (error.cause ?? {}) as Error;
  const { code: systemCode } = (cause ?? {}) as NodeJS.ErrnoException;
  const end = failed(toJobError(error.cause, node));
  return typeof systemCode === 'string' ? { ...end, systemCode } : end;
}

function failed(error: JobError): RunEnd & { kind: 'failed' } {
  return { kind: 'failed', errorJson: stringifyJson(error) };
}
