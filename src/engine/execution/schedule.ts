import TinyQueue from 'tinyqueue';
import { type Link, addTo } from '../../translate/graph.ts';
import type { PlannedNode } from './run-plan.ts';

type Schedule = {
  next(): PlannedNode | undefined;
  done(id: string): void;
  add(nodes: Iterable<PlannedNode>): void;
  /** Lets a node wait until the nodes behind some links are done. */
  wait(node: PlannedNode, links: Iterable<Link>): void;
};

/**
 * Returns the nodes whose inputs are all computed. v1 runs an output node as soon as it can;
 * otherwise the order of `nodes`, which is that of the walk, decides.
 */
export function createSchedule(
  nodes: Iterable<PlannedNode>,
  isOutput: (node: PlannedNode) => boolean,
): Schedule {
  const dependents = new Map<string, Waiting[]>();
  const ready = new TinyQueue<Waiting>([], byTurn);
  /** The nodes that are not done. */
  const open = new Set<string>();
  let rank = 0;
  const wait: Schedule['wait'] = (node, links) => {
    const sources = new Set(Array.from(links, ({ from }) => from));
    const blockers = [...sources].filter((id) => open.has(id));
    const waiting = { node, isOutput: isOutput(node), rank: rank++, blockers: blockers.length };
    for (const id of blockers) addTo(dependents, id, waiting);
    if (blockers.length === 0) ready.push(waiting);
  };
  const add: Schedule['add'] = (more) => {
    const fresh = [...more].filter(({ id }) => !open.has(id));
    for (const { id } of fresh) open.add(id);
    for (const node of fresh) wait(node, node.links.values());
  };
  add(nodes);
  return {
    next: () => ready.pop()?.node,
    done(id) {
      open.delete(id);
      for (const waiting of dependents.get(id) ?? [])
        if (--waiting.blockers === 0) ready.push(waiting);
      dependents.delete(id);
    },
    add,
    wait,
  };
}

/** `blockers`: the number of linked nodes that are not computed yet. */
type Waiting = {
  readonly node: PlannedNode;
  readonly isOutput: boolean;
  readonly rank: number;
  blockers: number;
};

function byTurn(one: Waiting, other: Waiting): number {
  return Number(other.isOutput) - Number(one.isOutput) || one.rank - other.rank;
}
