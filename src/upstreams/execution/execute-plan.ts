import type { NodeContext, Value } from '../../nodes/node.ts';
import { stringifyJson } from '../../protocol/json.ts';
import type { NodeRecord, NodeRecords } from './node-cache.ts';
import { callNode } from './call-node.ts';
import type { MemoryMeter } from './memory-meter.ts';
import type { RunPlan, PlannedNode } from './run-plan.ts';
import type { FromWorker, StoredOutput } from '../jobs/worker-protocol.ts';
import { createSchedule } from './schedule.ts';
import { toValue } from './node-values.ts';

/** The context of a running call, and the files it saved. */
export type CallContext = NodeContext & {
  readonly meter: MemoryMeter;
  readonly saved: readonly StoredOutput[];
  /** Sends the pending preview once the call is over. */
  flush(): void;
};

export type Execution = {
  readonly plan: RunPlan;
  readonly targets: ReadonlySet<string>;
  /** Results of the user's previous prompt; those of this prompt are added as they are computed. */
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
 * Small nodes take microseconds: after this many the worker waits for the main thread, which can
 * then serve others.
 */
const NODES_BETWEEN_PAUSES = 32;

/** A node threw. `node` and `inputs` tell which one, with which values. */
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

/** Runs the nodes that the targets need and the cache does not hold, and posts every step. */
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
    waiting,
    (node) => targets.has(node.id) || node.def.outputNode === true,
  );
  let hasBegun = false;
  let nodesRun = 0;
  for (let node = schedule.next(); node; node = schedule.next()) {
    if (!hasBegun && !records.has(node.signature)) {
      await execution.begin();
      hasBegun = true;
    }
    await runOrReuse(node, execution);
    schedule.done(node.id);
    if (++nodesRun % NODES_BETWEEN_PAUSES === 0) await execution.handled();
  }
}

/** Cached targets are included, to show their old result; the inputs of a cached node are not. */
function nodesToRun({ plan, records, targets }: Execution): ReadonlyMap<string, PlannedNode> {
  const wanted = new Set(targets);
  for (const id of wanted) {
    const node = plan.get(id);
    if (!node || records.has(node.signature)) continue;
    for (const link of node.links.values()) wanted.add(link.from);
  }
  const isNeeded = (node: PlannedNode): boolean =>
    wanted.has(node.id) && (targets.has(node.id) || !records.has(node.signature));
  return new Map([...plan].filter(([, node]) => isNeeded(node)));
}

async function runOrReuse(node: PlannedNode, execution: Execution): Promise<void> {
  const known = execution.records.get(node.signature);
  if (known) {
    const reused = known.outputs.map((output) => ({ ...output, node_id: node.id }));
    execution.post({ type: 'finished', nodeId: node.id, ...uiField(known), reused });
    return;
  }
  execution.post({ type: 'started', nodeId: node.id, classType: node.def.name });
  const record = await run(node, execution);
  execution.records.set(node.signature, record);
  execution.post({ type: 'finished', nodeId: node.id, ...uiField(record) });
}

async function run(node: PlannedNode, execution: Execution): Promise<NodeRecord> {
  let inputs: ReadonlyMap<string, readonly Value[]> = new Map();
  try {
    inputs = evaluate(node, execution);
    const context = execution.contextFor(node);
    const { slots, ui } = await callNode(node.def, inputs, context);
    context.flush();
    return { slots, outputs: [...context.saved], ...(ui && { uiJson: stringifyJson(ui) }) };
  } catch (cause) {
    throw new NodeCallError(node, inputs, cause);
  }
}

function evaluate(
  node: PlannedNode,
  { plan, records }: Execution,
): ReadonlyMap<string, readonly Value[]> {
  const inputs = new Map<string, readonly Value[]>();
  for (const [name, { value, spec }] of node.literals) inputs.set(name, [toValue(value, spec)]);
  for (const [name, link] of node.links) {
    const source = plan.get(link.from);
    /** v1 takes the slot as a Python index: -1 is the last output. */
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
