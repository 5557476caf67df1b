import type { Steps } from '../../protocol/steps.ts';
import type { Graph } from '../../protocol/v2.ts';
import { errorEntry } from '../../protocol/node-errors.ts';
import { shownText } from '../../translate/shown-value.ts';
import type { NodeErrorEntry } from '../../protocol/v1.ts';
import { classOf, targetsByFailingNode } from '../../translate/graph.ts';
import { type ValidationContext, type NodeValidation, validateNode } from './validate-node.ts';

/** The validation of all nodes that the outputs depend on. */
export type GraphValidation = {
  /** The result for every node that an output depends on, in the order of the visits. */
  readonly validations: ReadonlyMap<string, NodeValidation>;
  /** The output nodes that cannot run. */
  readonly failingOutputs: ReadonlySet<string>;
  /** For each failing node, one node with errors that it depends on. */
  readonly causes: ReadonlyMap<string, string>;
};

/** The weight of validating one node, in values. */
const NODE_WEIGHT = 10;

/** Validates each node that the outputs depend on once, its sources first. */
export function* validateGraph(
  workflow: Graph,
  outputs: readonly string[],
  context: ValidationContext,
): Steps<GraphValidation> {
  const validations = new Map<string, NodeValidation>();
  const causes = new Map<string, string>();
  const validate = (id: string): NodeValidation => {
    const validation = validateNode(id, workflow, context);
    validations.set(id, validation);
    if (!isValid(validation)) causes.set(id, id);
    return validation;
  };
  const cycles = new Map<string, readonly string[]>();
  for (const output of outputs)
    if (!validations.has(output)) yield* walk(output, { validate, validations, causes, cycles });
  for (const [id, error] of cycleErrors(cycles, workflow))
    validations.get(id)?.errors.unshift(error);
  return {
    validations,
    causes,
    failingOutputs: new Set(outputs.filter((id) => causes.has(id))),
  };
}

/** The most characters of the names in the errors of all cycles: each error names a whole cycle. */
const MAX_NAMES_CHARS = 1_000_000;
/** Characters around a name. */
const CHARS_AROUND = 8;

/** Returns the errors of the nodes on cycles, each of which names the whole cycle of the node. */
function* cycleErrors(
  cycles: GraphCycles,
  workflow: Graph,
): Generator<readonly [id: string, NodeErrorEntry]> {
  for (const cycle of new Set(cycles.values())) {
    let leftChars = MAX_NAMES_CHARS / cycles.size;
    const named: string[] = [];
    for (const id of cycle) {
      leftChars -= id.length + CHARS_AROUND;
      if (leftChars < 0) break;
      named.push(id);
    }
    const steps = [...named, ...named.slice(0, 1)].map(
      (step) => `${step} (${classOf(workflow, step)})`,
    );
    const details = shownText(steps.join(' -> '));
    for (const id of cycle)
      if (cycles.get(id) === cycle)
        yield [id, errorEntry('dependency_cycle', details, { node_id: id, cycle_nodes: named })];
  }
}

/** Returns the failing outputs by the node with errors on which they depend. */
export function outputsByFailingNode({
  validations,
  failingOutputs,
  causes,
}: GraphValidation): Steps<ReadonlyMap<string, readonly string[]>> {
  return targetsByFailingNode(failingOutputs, {
    causes,
    neededBy: (output) => [...reachableFrom(output, validations)],
    isFailing: (id) => !isValid(validations.get(id)),
  });
}

/** The cycle on which each node is. */
type GraphCycles = ReadonlyMap<string, readonly string[]>;

/** The most cycles that are named behind one output: each may have all nodes. */
const MAX_CYCLES = 100;

type WalkState = {
  readonly validate: (id: string) => NodeValidation;
  readonly validations: ReadonlyMap<string, NodeValidation>;
  readonly causes: Map<string, string>;
  readonly cycles: Map<string, readonly string[]>;
};

/**
 * Walks depth first with an explicit stack, as graphs may be deeper than the call stack. A link
 * back to a node of a known cycle makes no other one, as in v1.
 */
function* walk(start: string, { validate, validations, causes, cycles }: WalkState): Steps<void> {
  const onPath = new Set([start]);
  const path = [{ id: start, next: sources(validate(start)) }];
  yield NODE_WEIGHT;
  let found = 0;
  const markFailing = (id: string, cause: string | undefined): void => {
    if (cause !== undefined && !causes.has(id)) causes.set(id, cause);
  };
  for (let top = path.at(-1); top; top = path.at(-1)) {
    const from = top.next.pop();
    if (from === undefined) {
      path.pop();
      onPath.delete(top.id);
      const parent = path.at(-1);
      if (parent && causes.has(top.id)) markFailing(parent.id, causes.get(top.id));
    } else if (onPath.has(from)) {
      markFailing(top.id, top.id);
      if (cycles.has(from) || ++found > MAX_CYCLES) continue;
      const cycle = path.slice(path.findIndex(({ id }) => id === from)).map(({ id }) => id);
      for (const id of cycle) cycles.set(id, cycle);
      yield cycle.length;
    } else if (validations.has(from)) {
      if (causes.has(from)) markFailing(top.id, causes.get(from));
    } else {
      onPath.add(from);
      path.push({ id: from, next: sources(validate(from)) });
      yield NODE_WEIGHT;
    }
  }
}

function reachableFrom(
  start: string,
  validations: ReadonlyMap<string, NodeValidation>,
): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const validation = validations.get(id);
    if (!validation || seen.has(id)) continue;
    seen.add(id);
    for (const from of sources(validation)) open.push(from);
  }
  return seen;
}

/** Returns the nodes from which a node takes values, the first one last. */
function sources({ links }: NodeValidation): string[] {
  return links.map(({ link }) => link[0]).toReversed();
}

function isValid(validation: NodeValidation | undefined): boolean {
  return (
    validation !== undefined && validation.errors.length === 0 && validation.thrown === undefined
  );
}
