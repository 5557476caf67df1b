import type { Inputs, NodeContext, NodeDef, NodeResult, Value } from '../../nodes/node.ts';
import { stringifyJson } from '../../protocol/json.ts';
import type { Link } from '../../translate/graph.ts';
import type { NodeRecord, NodeRecords } from './node-cache.ts';
import type { MemoryMeter } from './memory-meter.ts';
import type { RunPlan, PlannedNode } from './run-plan.ts';
import { createSchedule } from './schedule.ts';
import type {
  AskMainThread,
  FromWorker,
  ShownResult,
  StoredOutput,
} from '../jobs/worker-protocol.ts';
import { toValue } from './node-values.ts';

/** The context of a running call, and the files that it has saved. */
export type CallContext = NodeContext & {
  readonly meter: MemoryMeter;
  readonly saved: readonly StoredOutput[];
  /** Sends the pending preview when the call is over. */
  flush(): void;
};

export type Execution = {
  readonly plan: RunPlan;
  readonly targets: ReadonlySet<string>;
  /**
   * The results of the user's previous prompt. Those of this prompt are added when they are
   * computed.
   */
  readonly records: NodeRecords;
  readonly meter: MemoryMeter;
  readonly post: (message: FromWorker) => void;
  readonly ask: AskMainThread;
  contextFor(node: PlannedNode): CallContext;
};

/**
 * After this many nodes the worker waits for the main thread, which can then do other work. Small
 * nodes take only microseconds.
 */
const NODES_BETWEEN_PAUSES = 32;

/** Thrown when a node throws. `node` and `inputs` are the node and its values. */
export class NodeCallError extends Error {
  override readonly name = 'NodeCallError';
  readonly node: PlannedNode;
  readonly inputs: Inputs;
  constructor(node: PlannedNode, inputs: Inputs, cause: unknown) {
    super(`node ${node.id} failed`, { cause });
    this.node = node;
    this.inputs = inputs;
  }
}

/** Runs the nodes that the targets need and the cache lacks, and posts every step. */
export async function execute(execution: Execution): Promise<void> {
  const { plan, records, targets } = execution;
  const cached = [...plan.values()].filter((node) => records.has(node.signature));
  const needed = neededNodes(targets, execution);
  // A cached target is included, so that its old result is shown. The inputs of a cached node are not.
  const waiting = new Map([...plan].filter(([id]) => targets.has(id) || needed.has(id)));
  const skipped = cached.filter((node) => !waiting.has(node.id));
  for (const node of cached) execution.meter.settle(records.get(node.signature)?.slots ?? []);
  execution.post({
    type: 'begin',
    cached: cached.map((node) => node.id),
    total: waiting.size + skipped.length,
    done: skipped.length,
  });
  await executeInOrder(waiting.values(), execution);
  for (const node of skipped)
    if (node.def.hasIntermediateOutput)
      execution.post({ type: 'shown', ...reusedResult(node, execution) });
}

/** Executes these nodes, and those that their lazy inputs ask for. */
async function executeInOrder(nodes: Iterable<PlannedNode>, execution: Execution): Promise<void> {
  const { targets, records } = execution;
  const schedule = createSchedule(
    nodes,
    (node) => targets.has(node.id) || node.def.outputNode === true,
  );
  let hasBegun = false;
  let nodesRun = 0;
  for (let node = schedule.next(); node; node = schedule.next()) {
    if (!hasBegun && !records.has(node.signature)) {
      await execution.ask('begin');
      hasBegun = true;
    }
    const missing = missingLinks(node, execution);
    if (missing.length > 0) {
      // v1 says that it is at the node before it runs the nodes that the node asks for.
      execution.post({ type: 'started', nodeId: node.id, classType: node.def.name });
      const sources = missing.map(({ from }) => from);
      schedule.add(neededNodes(sources, execution).values());
      schedule.wait(node, missing);
      continue;
    }
    await runOrReuse(node, execution);
    schedule.done(node.id);
    if (++nodesRun % NODES_BETWEEN_PAUSES === 0) await execution.ask('handled');
  }
}

/** Returns the nodes without a result that these nodes need or are, in the order of the plan. */
function neededNodes(
  ids: Iterable<string>,
  { plan, records }: Execution,
): ReadonlyMap<string, PlannedNode> {
  const wanted = new Set(ids);
  for (const id of wanted) {
    const node = plan.get(id);
    if (!node || records.has(node.signature)) continue;
    for (const link of node.links.values()) wanted.add(link.from);
  }
  const isNeeded = (node: PlannedNode): boolean =>
    wanted.has(node.id) && !records.has(node.signature);
  return new Map([...plan].filter(([, node]) => isNeeded(node)));
}

/** Returns the lazy links that a node asks for and whose nodes have no result yet. */
function missingLinks(node: PlannedNode, execution: Execution): readonly Link[] {
  if (execution.records.has(node.signature)) return [];
  return neededLinks(node, execution).filter(({ from }) => {
    const source = execution.plan.get(from);
    return source !== undefined && !execution.records.has(source.signature);
  });
}

function neededLinks(node: PlannedNode, execution: Execution): readonly Link[] {
  if (node.lazyLinks.size === 0) return [];
  const inputs = evaluate(node, node.links, execution);
  try {
    const names = node.def.neededInputs?.(inputs) ?? [];
    return names.flatMap((name) => node.lazyLinks.get(name) ?? []);
  } catch (cause) {
    throw new NodeCallError(node, inputs, cause);
  }
}

async function runOrReuse(node: PlannedNode, execution: Execution): Promise<void> {
  const { post } = execution;
  if (execution.records.has(node.signature))
    return post({ type: 'finished', ...reusedResult(node, execution) });
  post({ type: 'started', nodeId: node.id, classType: node.def.name });
  const record = await run(node, execution);
  execution.records.set(node.signature, record);
  post({ type: 'finished', nodeId: node.id, uiJson: record.uiJson });
}

/** Returns what the node showed when its result was computed. */
function reusedResult(node: PlannedNode, { records }: Execution): ShownResult {
  const { outputs = [], uiJson } = records.get(node.signature) ?? {};
  const reused = outputs.map((output) => ({ ...output, node_id: node.id }));
  return { nodeId: node.id, uiJson, reused };
}

async function run(node: PlannedNode, execution: Execution): Promise<NodeRecord> {
  let inputs: Inputs = {};
  try {
    inputs = evaluate(node, new Map([...node.links, ...reachedLinks(node, execution)]), execution);
    const context = execution.contextFor(node);
    const { outputs: slots, ui } = await callNode(node.def, inputs, context);
    context.flush();
    return { slots, outputs: [...context.saved], uiJson: ui && stringifyJson(ui) };
  } catch (cause) {
    throw new NodeCallError(node, inputs, cause);
  }
}

/** Returns the lazy links whose nodes have a result. */
function reachedLinks(
  { lazyLinks }: PlannedNode,
  { plan, records }: Execution,
): readonly (readonly [input: string, link: Link])[] {
  return [...lazyLinks].filter(([, { from }]) => records.has(plan.get(from)?.signature ?? ''));
}

function evaluate(
  node: PlannedNode,
  links: PlannedNode['links'],
  { plan, records }: Execution,
): Inputs {
  const inputs = new Map<string, Value>();
  for (const [name, { value, spec }] of node.literals) inputs.set(name, toValue(value, spec));
  for (const [name, link] of links) {
    const source = plan.get(link.from);
    /** v1 uses the slot as a Python index: -1 is the last output. */
    const value = source && records.get(source.signature)?.slots.at(link.slot);
    if (value === undefined)
      throw new Error(
        `input ${name} is linked to output ${link.slot} of node ${link.from}, which has none`,
      );
    inputs.set(name, value);
  }
  return Object.fromEntries(inputs);
}

/** Runs a node. Throws when it gives fewer outputs than it declares. */
async function callNode(def: NodeDef, inputs: Inputs, context: CallContext): Promise<NodeResult> {
  context.check();
  const { outputs, ui } = await def.run(inputs, context);
  const missing = def.outputs.findIndex((_, index) => outputs[index] === undefined);
  if (missing >= 0) throw new Error(`${def.name} gave no value for its output ${missing}`);
  context.meter.settle(outputs);
  return { outputs, ...(ui && Object.keys(ui).length > 0 && { ui }) };
}
