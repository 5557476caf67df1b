import type { Steps } from '../../protocol/steps.ts';
import type { Graph } from '../../protocol/v2.ts';
import { dependenciesFirst, linkedNodes } from '../execution/run-plan.ts';

/**
 * Limit of the steps that find which outputs fail because of which node; graphs made to be slow get
 * less detail.
 */
export const MAX_ATTRIBUTION_STEPS = 200_000;

/**
 * Targets by the failing node they depend on; each target is named at least once, however large the
 * graph.
 */
export function* dependentOutputs(
  graph: Graph,
  targets: readonly string[],
  failing: ReadonlySet<string>,
): Steps<ReadonlyMap<string, readonly string[]>> {
  const byNode = new Map<string, string[]>();
  const attribute = (id: string, target: string): void => {
    const known = byNode.get(id);
    if (known) known.push(target);
    else byNode.set(id, [target]);
  };
  const causes = firstFailingCauses(graph, targets, failing);
  let steps = 0;
  for (const target of targets) {
    const cause = causes.get(target);
    if (cause === undefined) continue;
    if (steps > MAX_ATTRIBUTION_STEPS) attribute(cause, target);
    else {
      const needed = dependenciesFirst(graph, [target]);
      for (const id of needed) if (failing.has(id)) attribute(id, target);
      steps += needed.length;
      yield needed.length;
    }
  }
  return byNode;
}

/** For each node that cannot run: one failing node it depends on. */
function firstFailingCauses(
  graph: Graph,
  targets: readonly string[],
  failing: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const causes = new Map<string, string>();
  for (const id of dependenciesFirst(graph, targets)) {
    const from = linkedNodes(graph, id).find((source) => causes.has(source)) ?? '';
    const cause = failing.has(id) ? id : causes.get(from);
    if (cause !== undefined) causes.set(id, cause);
  }
  return causes;
}
