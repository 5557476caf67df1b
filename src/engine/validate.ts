import type { NodeDef } from '../nodes/node.ts';
import { type Json, isJsonObject } from '../wire/json.ts';
import { type Result, ok, refuse } from '../wire/jobs.ts';
import type { NodeErrorEntry, NodeErrors } from '../wire/v1.ts';
import type { Graph, GraphNode } from '../wire/v2.ts';
import { type Verdict, configOf, entry, judgeNode } from './validate-node.ts';

/** A workflow fit to run: literals coerced, and the output nodes to run it for. */
export type Valid = { readonly workflow: Graph; readonly outputs: readonly string[] };

type Nodes = ReadonlyMap<string, NodeDef>;

/**
 * v1's validation as the v2 service applies it: all outputs or none. A refusal carries v1's own
 * `error` and `node_errors` in its details, so that the v1 side can say exactly what v1 said.
 */
export function validateWorkflow(workflow: Graph, nodes: Nodes): Result<Valid> {
  if (isUiFormat(workflow)) return refuseFormat();
  const unfit = unfitNode(workflow, nodes);
  if (unfit) return refuseWhole('invalid_prompt', unfit.message, `Node ID '#${unfit.id}'`);
  const outputs = Object.keys(workflow).filter(
    (id) => nodes.get(workflow[id]?.class_type ?? '')?.outputNode,
  );
  if (outputs.length === 0) return refuseWhole('prompt_no_outputs', 'Prompt has no outputs', '');
  const survey = surveyGraph(workflow, outputs, nodes);
  if (survey.failing.size > 0) return refuseOutputs(workflow, survey);
  return ok({ workflow: withCoerced(workflow, survey.verdicts), outputs });
}

type Survey = {
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Output nodes that cannot run. */
  readonly failing: ReadonlySet<string>;
  /** Nodes on a cycle, in its order; empty when there is none. */
  readonly cycle: readonly string[];
  readonly reach: ReadonlyMap<string, ReadonlySet<string>>;
};

/** Walks from each output to everything it needs, judging each node once. */
function surveyGraph(workflow: Graph, outputs: readonly string[], nodes: Nodes): Survey {
  const verdicts = new Map<string, Verdict>();
  const reach = new Map<string, ReadonlySet<string>>();
  const judge = (id: string): Verdict => {
    const known = verdicts.get(id) ?? judgeNode(id, workflow, nodes);
    verdicts.set(id, known);
    return known;
  };
  let cycle: readonly string[] = [];
  const failing = new Set<string>();
  for (const output of outputs) {
    const walk = walkFrom(output, judge);
    reach.set(output, walk.seen);
    if (walk.cycle.length > 0) cycle = walk.cycle;
    const isBad = [...walk.seen].some((id) => !isClean(verdicts.get(id)));
    if (isBad || walk.cycle.length > 0) failing.add(output);
  }
  return { verdicts, failing, cycle, reach };
}

/** Depth first with a stack of its own: graphs may be deeper than the call stack. */
function walkFrom(
  start: string,
  judge: (id: string) => Verdict,
): { seen: ReadonlySet<string>; cycle: readonly string[] } {
  const seen = new Set([start]);
  const onPath = new Set([start]);
  const path: { id: string; next: string[] }[] = [{ id: start, next: sources(judge(start)) }];
  let cycle: string[] = [];
  for (let top = path.at(-1); top; top = path.at(-1)) {
    const from = top.next.shift();
    if (from === undefined) {
      path.pop();
      onPath.delete(top.id);
    } else if (!seen.has(from)) {
      seen.add(from);
      onPath.add(from);
      path.push({ id: from, next: sources(judge(from)) });
    } else if (onPath.has(from)) {
      cycle = path.slice(path.findIndex(({ id }) => id === from)).map(({ id }) => id);
    }
  }
  return { seen, cycle };
}

function sources(verdict: Verdict): string[] {
  return verdict.links.map(({ link }) => link[0]);
}

function isClean(verdict: Verdict | undefined): boolean {
  return verdict !== undefined && verdict.errors.length === 0 && verdict.thrown === undefined;
}

function refuseOutputs(workflow: Graph, survey: Survey): Result<never> {
  const nodeErrors: { [id: string]: NodeErrors[string] } = {};
  for (const id of survey.verdicts.keys()) {
    const errors = errorsOf(id, survey);
    if (errors.length === 0) continue;
    nodeErrors[id] = {
      errors,
      dependent_outputs: [...survey.failing].filter((output) => survey.reach.get(output)?.has(id)),
      class_type: workflow[id]?.class_type ?? '',
    };
  }
  const own = [...survey.failing].flatMap((id) => nodeErrors[id]?.errors ?? []);
  const details = own.map((error) => `${error.message}: ${error.details}`);
  if (survey.cycle.length > 0)
    details.push(`Dependency cycle: ${[...survey.cycle, survey.cycle[0]].join(' -> ')}`);
  return refuseWhole(
    'prompt_outputs_failed_validation',
    'Prompt outputs failed validation',
    details.join('\n'),
    nodeErrors,
  );
}

/** An exception at an output is its own; elsewhere it is told in the words of the first link that met it. */
function errorsOf(id: string, survey: Survey): readonly NodeErrorEntry[] {
  const verdict = survey.verdicts.get(id);
  if (!verdict?.thrown) return verdict?.errors ?? [];
  const { type, message } = verdict.thrown;
  const traceback = [`  in the validation of node ${id}\n`];
  if (survey.reach.has(id)) {
    const info = { exception_type: type, traceback };
    return [entry('exception_during_validation', 'Exception when validating node', message, info)];
  }
  const met = [...survey.verdicts.values()]
    .flatMap(({ links }) => links)
    .find(({ link }) => link[0] === id);
  const info = {
    ...(met ? { input_name: met.input, input_config: configOf(met.spec) } : {}),
    exception_message: message,
    exception_type: type,
    traceback,
    ...(met ? { linked_node: met.link as unknown as Json } : {}),
  };
  return [
    entry(
      'exception_during_inner_validation',
      'Exception when validating inner node',
      message,
      info,
    ),
  ];
}

function withCoerced(workflow: Graph, verdicts: ReadonlyMap<string, Verdict>): Graph {
  const entries = Object.entries(workflow).map(([id, node]): [string, GraphNode] => {
    const coerced = verdicts.get(id)?.coerced;
    return [id, coerced ? { ...node, inputs: { ...node.inputs, ...coerced } } : node];
  });
  return Object.fromEntries(entries);
}

function unfitNode(workflow: Graph, nodes: Nodes): { id: string; message: string } | undefined {
  for (const [id, node] of Object.entries(workflow)) {
    const name: Json = isJsonObject(node as Json) ? (node.class_type as Json) : null;
    if (typeof name !== 'string') {
      return { id, message: 'Cannot execute because a node is missing the class_type property.' };
    }
    if (nodes.has(name)) continue;
    const message =
      `Cannot execute because node ${name} does not exist. The embedded engine has no class ` +
      `${name}; a remote v2 upstream that has it can run this workflow.`;
    return { id, message };
  }
  return undefined;
}

/** The editor's own format: lists of nodes and links instead of one node per id. */
function isUiFormat(workflow: Graph): boolean {
  return Array.isArray(workflow['nodes']) && Array.isArray(workflow['links']);
}

function refuseFormat(): Result<never> {
  const message =
    'This is the editor\u2019s own workflow format: export the workflow in API format.';
  return refuseWhole('invalid_prompt', message, '', {}, 'workflow_format_ui');
}

function refuseWhole(
  type: string,
  message: string,
  details: string,
  nodeErrors: NodeErrors = {},
  code = 'invalid_workflow',
): Result<never> {
  const error = { type, message, details, extra_info: {} };
  return refuse(422, code, message, {
    details: { error, node_errors: nodeErrors as unknown as Json },
  });
}
