import type { Steps } from '../../protocol/steps.ts';
import type { Graph } from '../../protocol/v2.ts';
import { dependenciesFirst, linkedNodes } from '../execution/run-plan.ts';

/**
 * Limit of the steps that find which outputs fail because of which node; graphs made to be slow get
 * less detail.
 */
const MAX_ATTRIBUTION_STEPS = 200_000;

type Attribution = {
  /** For each target that fails, one failing node it depends on; `undefined`: none is known. */
  readonly causes: ReadonlyMap<string, string | undefined>;
  /** All nodes that it depends on. */
  readonly neededBy: (target: string) => readonly string[];
  readonly isFailing: (id: string) => boolean;
};

/**
 * Targets by the failing node they depend on; each that has a cause is named at least once, however
 * large the graph.
 */
export function* targetsByFailingNode(
  targets: Iterable<string>,
  { causes, neededBy, isFailing }: Attribution,
): Steps<ReadonlyMap<string, readonly string[]>> {
  const byNode = new Map<string, string[]>();
  const attribute = (id: string, target: string): void => {
    const known = byNode.get(id);
    if (known) known.push(target);
    else byNode.set(id, [target]);
  };
  let steps = 0;
  for (const target of targets) {
    if (!causes.has(target)) continue;
    if (steps > MAX_ATTRIBUTION_STEPS) {
      const cause = causes.get(target);
      if (cause !== undefined) attribute(cause, target);
      continue;
    }
    const needed = neededBy(target);
    for (const id of needed) if (isFailing(id)) attribute(id, target);
    steps += needed.length;
    yield needed.length;
  }
  return byNode;
}

/** The same by the links of a graph. */
export function dependentOutputs(
  graph: Graph,
  targets: readonly string[],
  failing: ReadonlySet<string>,
): Steps<ReadonlyMap<string, readonly string[]>> {
  const causes = new Map<string, string>();
  for (const id of dependenciesFirst(graph, targets)) {
    const from = linkedNodes(graph, id).find((source) => causes.has(source)) ?? '';
    const cause = failing.has(id) ? id : causes.get(from);
    if (cause !== undefined) causes.set(id, cause);
  }
  return targetsByFailingNode(targets, {
    causes,
    neededBy: (target) => dependenciesFirst(graph, [target]),
    isFailing: (id) => failing.has(id),
  });
}
