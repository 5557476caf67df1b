import type { PlannedNode } from './plan.ts';

/** Hands out nodes whose links are all computed. */
export type Schedule = {
  next(): PlannedNode | undefined;
  done(id: string): void;
};

/** v1 runs an output node as soon as it can; otherwise the order of the walk, which is that of `nodes`, decides. */
export function createSchedule(
  nodes: ReadonlyMap<string, PlannedNode>,
  isOutput: (node: PlannedNode) => boolean,
): Schedule {
  const rank = new Map([...nodes.keys()].map((id, index) => [id, index]));
  const blockers = new Map<string, Set<string>>();
  const dependents = new Map<string, string[]>();
  const ready: { readonly outputs: Set<string>; readonly others: Set<string> } = {
    outputs: new Set(),
    others: new Set(),
  };
  const release = (node: PlannedNode): void => {
    (isOutput(node) ? ready.outputs : ready.others).add(node.id);
  };
  for (const node of nodes.values()) {
    const needs = new Set(
      [...node.links.values()].map((link) => link.from).filter((id) => nodes.has(id)),
    );
    blockers.set(node.id, needs);
    for (const id of needs) dependents.set(id, [...(dependents.get(id) ?? []), node.id]);
    if (needs.size === 0) release(node);
  }
  return {
    next() {
      const pool = ready.outputs.size > 0 ? ready.outputs : ready.others;
      const id = earliest(pool, rank);
      if (id === undefined) return undefined;
      pool.delete(id);
      return nodes.get(id);
    },
    done(id) {
      for (const dependent of dependents.get(id) ?? []) {
        const open = blockers.get(dependent);
        open?.delete(id);
        const node = nodes.get(dependent);
        if (node && open?.size === 0) release(node);
      }
    },
  };
}

function earliest(ids: ReadonlySet<string>, rank: ReadonlyMap<string, number>): string | undefined {
  let best: string | undefined;
  for (const id of ids) {
    if (best === undefined || (rank.get(id) ?? 0) < (rank.get(best) ?? 0)) best = id;
  }
  return best;
}
