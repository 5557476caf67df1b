import type { Steps } from '../wire/steps.ts';
import type { Graph } from '../wire/v2.ts';
import { closure, linkedNodes } from './plan.ts';

/** Steps spent on telling which outputs fail because of which node; graphs made to be slow get less. */
export const MAX_BLAME_STEPS = 200_000;

/** Targets by the node among these they depend on; each is named at least once, however large the graph. */
export function* dependentOutputs(
  graph: Graph,
  targets: readonly string[],
  failing: ReadonlySet<string>,
): Steps<ReadonlyMap<string, readonly string[]>> {
  const byNode = new Map<string, string[]>();
  const blame = (id: string, target: string): void => {
    const known = byNode.get(id);
    if (known) known.push(target);
    else byNode.set(id, [target]);
  };
  const culprits = culpritsOf(graph, targets, failing);
  let steps = 0;
  for (const target of targets) {
    const culprit = culprits.get(target);
    if (culprit === undefined) continue;
    if (steps > MAX_BLAME_STEPS) blame(culprit, target);
    else {
      const needed = closure(graph, [target]);
      for (const id of needed) if (failing.has(id)) blame(id, target);
      steps += needed.length;
      yield needed.length;
    }
  }
  return byNode;
}

/** Of each node that cannot run one node because of which it cannot. */
function culpritsOf(
  graph: Graph,
  targets: readonly string[],
  failing: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const culprits = new Map<string, string>();
  for (const id of closure(graph, targets)) {
    const from = linkedNodes(graph, id).find((source) => culprits.has(source)) ?? '';
    const culprit = failing.has(id) ? id : culprits.get(from);
    if (culprit !== undefined) culprits.set(id, culprit);
  }
  return culprits;
}
