import {
  type NodeContext,
  type Value,
  type Inputs,
  NodeFailure,
  type NodeDef,
} from '../../nodes/node.ts';
import { stringifyJson, type Json } from '../../protocol/json.ts';
import type { Link } from '../../translate/graph.ts';
import type { NodeRecord, NodeRecords } from './node-cache.ts';
import type { MemoryMeter } from './memory-meter.ts';
import type { RunPlan, PlannedNode } from './run-plan.ts';
import { createSchedule } from './schedule.ts';
import type { FromWorker, StoredOutput } from '../jobs/worker-protocol.ts';
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
  /** Called once, before the first node that is not cached. */
  begin(): Promise<unknown>;
  /** Resolves when the main thread has handled all posted messages. */
  readonly handled: () => Promise<null>;
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
  readonly inputs: ReadonlyMap<string, readonly Value[]>;
  constructor(node: PlannedNode, inputs: ReadonlyMap<string, readonly Value[]>, cause: unknown) {
    super(`node ${node.id} failed`, { cause });
    this.node = node;
    this.inputs = inputs;
  }
}

/** Runs the nodes that the targets need and the cache lacks, and posts every step. */
export async function execute(execution: Execution): Promise<void> {
  const { plan, records, targets } = execution;
  const cached = [...plan.values()].filter((node) => records.has(node.signature));
  const waiting = nodesToRun(execution);
  const skipped = cached.filter((node) => !waiting.has(node.id));
  for (const node of cached)
    execution.meter.settle(records.get(node.signature)?.slots.flat() ?? []);
  execution.post({
    type: 'begin',
    cached: cached.map((node) => node.id),
    total: waiting.size + skipped.length,
    done: skipped.length,
  });
  const schedule = createSchedule(
    waiting.values(),
    (node) => targets.has(node.id) || node.def.outputNode === true,
  );
  let hasBegun = false;
  let nodesRun = 0;
  for (let node = schedule.next(); node; node = schedule.next()) {
    if (!hasBegun && !records.has(node.signature)) {
      await execution.begin();
      hasBegun = true;
    }
    const missing = missingLinks(node, execution);
    if (missing.length > 0) {
      // v1 says that it is at the node before it runs the nodes that the node asks for.
      execution.post({ type: 'started', nodeId: node.id, classType: node.def.name });
      schedule.add(
        neededNodes(
          missing.map(({ from }) => from),
          execution,
        ).values(),
      );
      schedule.wait(node, missing);
      continue;
    }
    await runOrReuse(node, execution);
    schedule.done(node.id);
    if (++nodesRun % NODES_BETWEEN_PAUSES === 0) await execution.handled();
  }
}

/**
 * Returns the nodes to run. Cached targets are included, so that their old result is shown. The
 * inputs of a cached node are not.
 */
function nodesToRun(execution: Execution): ReadonlyMap<string, PlannedNode> {
  const { targets } = execution;
  const needed = neededNodes(targets, execution);
  return new Map([...execution.plan].filter(([id]) => targets.has(id) || needed.has(id)));
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
  const asks = (arguments_: Inputs): readonly string[] => node.def.neededInputs?.(arguments_) ?? [];
  try {
    const names = argumentSets(node.def, inputs).flatMap(asks);
    return names.flatMap((name) => node.lazyLinks.get(name) ?? []);
  } catch (cause) {
    throw new NodeCallError(node, inputs, cause);
  }
}

async function runOrReuse(node: PlannedNode, execution: Execution): Promise<void> {
  const { post } = execution;
  const known = execution.records.get(node.signature);
  if (known) {
    const reused = known.outputs.map((output) => ({ ...output, node_id: node.id }));
    post({ type: 'finished', nodeId: node.id, ...uiField(known), reused });
    return;
  }
  post({ type: 'started', nodeId: node.id, classType: node.def.name });
  const record = await run(node, execution);
  execution.records.set(node.signature, record);
  post({ type: 'finished', nodeId: node.id, ...uiField(record) });
}

async function run(node: PlannedNode, execution: Execution): Promise<NodeRecord> {
  let inputs: ReadonlyMap<string, readonly Value[]> = new Map();
  try {
    inputs = evaluate(node, new Map([...node.links, ...reachedLinks(node, execution)]), execution);
    const context = execution.contextFor(node);
    const { slots, ui } = await callNode(node.def, inputs, context);
    context.flush();
    return { slots, outputs: [...context.saved], ...(ui && { uiJson: stringifyJson(ui) }) };
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
): ReadonlyMap<string, readonly Value[]> {
  const inputs = new Map<string, readonly Value[]>();
  for (const [name, { value, spec }] of node.literals) inputs.set(name, [toValue(value, spec)]);
  for (const [name, link] of links) {
    const source = plan.get(link.from);
    /** v1 uses the slot as a Python index: -1 is the last output. */
    const slot = source && records.get(source.signature)?.slots.at(link.slot);
    if (!slot)
      throw new Error(
        `input ${name} is linked to output ${link.slot} of node ${link.from}, which has none`,
      );
    inputs.set(name, slot);
  }
  return inputs;
}

function uiField(record: NodeRecord): { uiJson?: string } {
  return record.uiJson === undefined ? {} : { uiJson: record.uiJson };
}

/**
 * The result of all calls of a node: one list for each output slot, and the values that it shows.
 */
type CallResult = {
  readonly slots: readonly (readonly Value[])[];
  readonly ui?: { readonly [key: string]: readonly Json[] };
};

/**
 * Runs a node as v1 does: once for each item of the longest input list; shorter lists repeat their
 * last item. A node that takes lists runs once. Results of list outputs are joined.
 */
async function callNode(
  def: NodeDef,
  inputs: ReadonlyMap<string, readonly Value[]>,
  context: NodeContext & { readonly meter: MemoryMeter },
): Promise<CallResult> {
  const slots: Value[][] = def.outputs.map(() => []);
  const ui = new Map<string, Json[]>();
  for (const arguments_ of argumentSets(def, inputs)) {
    context.check();
    const result = await def.run(arguments_, context);
    context.meter.settle(collectOutputs(def, result.outputs, slots));
    for (const [key, items] of Object.entries(result.ui ?? {})) {
      const shown = ui.get(key) ?? [];
      for (const item of items) shown.push(item);
      ui.set(key, shown);
    }
  }
  return { slots, ...(ui.size > 0 && { ui: Object.fromEntries(ui) }) };
}

function argumentSets(
  def: NodeDef,
  inputs: ReadonlyMap<string, readonly Value[]>,
): readonly Inputs[] {
  if (def.inputIsList) return [Object.fromEntries(inputs) as unknown as Inputs];
  const calls = Math.max(1, ...[...inputs.values()].map((list) => list.length));
  return Array.from({ length: calls }, (_, call) => {
    const entries = [...inputs].map(([name, list]) => [name, itemFor(name, list, call)] as const);
    return Object.fromEntries(entries);
  });
}

function itemFor(name: string, list: readonly Value[], call: number): Value {
  const item = list[Math.min(call, list.length - 1)];
  if (item === undefined)
    throw new NodeFailure('IndexError', `the list linked to ${name} is empty`);
  return item;
}

/** Adds the outputs of one call to the slots and returns them. */
function collectOutputs(
  def: NodeDef,
  outputs: readonly (Value | readonly Value[])[],
  slots: Value[][],
): readonly Value[] {
  const all: Value[] = [];
  for (const [index, slot] of slots.entries()) {
    const value = outputs[index];
    if (value === undefined) throw new Error(`${def.name} gave no value for its output ${index}`);
    const isList = def.outputs[index]?.isList === true;
    const values = isList ? (value as readonly Value[]) : [value as Value];
    for (const one of values) {
      slot.push(one);
      all.push(one);
    }
  }
  return all;
}
