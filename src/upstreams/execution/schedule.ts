import TinyQueue from 'tinyqueue';
import type { PlannedNode } from './run-plan.ts';

/**
 * Returns the nodes whose inputs are all computed. v1 runs an output node as soon as it can;
 * otherwise the order of the walk, which is that of `nodes`, decides.
 */
export function createSchedule(
  nodes: ReadonlyMap<string, PlannedNode>,
  isOutput: (node: PlannedNode) => boolean,
) {
  const dependents = new Map<string, Waiting[]>();
  const ready = { outputs: new TinyQueue([], byRank), others: new TinyQueue([], byRank) };
  const release = (waiting: Waiting): void => {
    (isOutput(waiting.node) ? ready.outputs : ready.others).push(waiting);
  };
  let rank = 0;
  for (const node of nodes.values()) {
    const needs = new Set<string>();
    for (const { from } of node.links.values()) if (nodes.has(from)) needs.add(from);
    const waiting: Waiting = { node, rank: rank++, blockers: needs.size };
    for (const id of needs) {
      const theirs = dependents.get(id);
      if (theirs) theirs.push(waiting);
      else dependents.set(id, [waiting]);
    }
    if (needs.size === 0) release(waiting);
  }
  return {
    next: (): PlannedNode | undefined => (ready.outputs.pop() ?? ready.others.pop())?.node,
    done(id: string): void {
      for (const waiting of dependents.get(id) ?? [])
        if (--waiting.blockers === 0) release(waiting);
      dependents.delete(id);
    },
  };
}

/** `blockers`: how many of the nodes it is linked to are not computed yet. */
type Waiting = { readonly node: PlannedNode; readonly rank: number; blockers: number };

function byRank(one: Waiting, other: Waiting): number {
  return one.rank - other.rank;
}
