import type { NodeDef } from '../nodes/node.ts';
import type { Steps } from '../wire/steps.ts';
import type { Graph } from '../wire/v2.ts';
import { MAX_BLAME_STEPS } from './dependents.ts';
import { type Verdict, judgeNode } from './validate-node.ts';

/** What one walk over everything the outputs need has found. */
export type Survey = {
  /** Of every node some output needs, in the order they were met. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Output nodes that cannot run. */
  readonly failing: ReadonlySet<string>;
  /** Nodes on a cycle, in its order; empty when there is none. */
  readonly cycle: readonly string[];
  /** For each node that fails, one node with errors it fails because of; none when only a cycle is to blame. */
  readonly culprits: ReadonlyMap<string, string | undefined>;
};

/** Weight of judging one node, in values. */
const JUDGING = 10;

/** Judges each node the outputs need once, their sources first. */
export function* surveyGraph(
  workflow: Graph,
  outputs: readonly string[],
  nodes: ReadonlyMap<string, NodeDef>,
): Steps<Survey> {
  const verdicts = new Map<string, Verdict>();
  const culprits = new Map<string, string | undefined>();
  const judge = (id: string): Verdict => {
    const verdict = judgeNode(id, workflow, nodes);
    verdicts.set(id, verdict);
    if (!isClean(verdict)) culprits.set(id, id);
    return verdict;
  };
  let cycle: readonly string[] = [];
  for (const output of outputs) {
    if (verdicts.has(output)) continue;
    const found = yield* walk(output, { judge, verdicts, culprits });
    if (cycle.length === 0) cycle = found;
  }
  return { verdicts, culprits, cycle, failing: new Set(outputs.filter((id) => culprits.has(id))) };
}

/** Failing outputs by the erroneous node that spoils them; each is named at least once, however large the graph. */
export function* spoiled({
  verdicts,
  failing,
  culprits,
}: Survey): Steps<ReadonlyMap<string, string[]>> {
  const byNode = new Map<string, string[]>();
  const blame = (id: string, output: string): void => {
    const known = byNode.get(id);
    if (known) known.push(output);
    else byNode.set(id, [output]);
  };
  let steps = 0;
  for (const output of failing) {
    if (steps > MAX_BLAME_STEPS) {
      const culprit = culprits.get(output);
      if (culprit !== undefined) blame(culprit, output);
      continue;
    }
    const needed = reach(output, verdicts);
    steps += needed.size;
    yield needed.size;
    for (const id of needed) if (!isClean(verdicts.get(id))) blame(id, output);
  }
  return byNode;
}

type Walk = {
  readonly judge: (id: string) => Verdict;
  readonly verdicts: ReadonlyMap<string, Verdict>;
  readonly culprits: Map<string, string | undefined>;
};

/** Depth first with a stack of its own: graphs may be deeper than the call stack. Answers a cycle it met. */
function* walk(start: string, { judge, verdicts, culprits }: Walk): Steps<readonly string[]> {
  const onPath = new Set([start]);
  const path = [{ id: start, next: sources(judge(start)) }];
  yield JUDGING;
  let cycle: readonly string[] = [];
  const spoil = (id: string, because: string | undefined): void => {
    if (!culprits.has(id)) culprits.set(id, because);
  };
  for (let top = path.at(-1); top; top = path.at(-1)) {
    const from = top.next.pop();
    if (from === undefined) {
      path.pop();
      onPath.delete(top.id);
      const above = path.at(-1);
      if (above && culprits.has(top.id)) spoil(above.id, culprits.get(top.id));
    } else if (onPath.has(from)) {
      spoil(top.id, undefined);
      if (cycle.length > 0) continue;
      cycle = path.slice(path.findIndex(({ id }) => id === from)).map(({ id }) => id);
    } else if (verdicts.has(from)) {
      if (culprits.has(from)) spoil(top.id, culprits.get(from));
    } else {
      onPath.add(from);
      path.push({ id: from, next: sources(judge(from)) });
      yield JUDGING;
    }
  }
  return cycle;
}

function reach(start: string, verdicts: ReadonlyMap<string, Verdict>): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const verdict = verdicts.get(id);
    if (!verdict || seen.has(id)) continue;
    seen.add(id);
    for (const from of sources(verdict)) open.push(from);
  }
  return seen;
}

/** The nodes it takes values from, the first one last. */
function sources({ links }: Verdict): string[] {
  return links.map(({ link }) => link[0]).toReversed();
}

function isClean(verdict: Verdict | undefined): boolean {
  return verdict !== undefined && verdict.errors.length === 0 && verdict.thrown === undefined;
}
