import type { NodeDef } from '../nodes/node.ts';
import { type Json, isJsonObject } from '../wire/json.ts';
import { type Result, ok, refuse } from '../wire/jobs.ts';
import type { Steps } from '../wire/steps.ts';
import {
  type ContractNodeError,
  MISSING_CLASS,
  UNKNOWN_CLASS,
  nodeErrorDetails,
} from '../wire/node-errors.ts';
import type { NodeErrorEntry, NodeErrors } from '../wire/v1.ts';
import type { Graph, GraphNode } from '../wire/v2.ts';
import { configOf, entry } from './validate-entry.ts';
import type { Verdict } from './validate-node.ts';
import { type Survey, spoiled, surveyGraph } from './validate-survey.ts';

/** A workflow fit to run: literals coerced, and the output nodes to run it for. */
export type Valid = { readonly workflow: Graph; readonly outputs: readonly string[] };

type Nodes = ReadonlyMap<string, NodeDef>;

/**
 * v1's validation as the v2 service applies it: all outputs or none. A refusal carries v1's own
 * `error` and `node_errors` in its details, so that the v1 side can say exactly what v1 said.
 */
export function* validateSteps(workflow: Graph, nodes: Nodes): Steps<Result<Valid>> {
  if (isUiFormat(workflow)) return refuseFormat();
  const unfit = unfitNode(workflow, nodes);
  if (unfit) return refuseNode(unfit);
  const outputs = Object.keys(workflow).filter(
    (id) => nodes.get(workflow[id]?.class_type ?? '')?.outputNode,
  );
  if (outputs.length === 0) return refuseWhole('prompt_no_outputs', 'Prompt has no outputs', '');
  const survey = yield* surveyGraph(workflow, outputs, nodes);
  if (survey.failing.size > 0) return yield* refuseOutputs(workflow, survey);
  return ok({ workflow: yield* withCoerced(workflow, survey.verdicts), outputs });
}

function* refuseOutputs(workflow: Graph, survey: Survey): Steps<Result<never>> {
  const meetings = firstLinks(survey);
  const spoiledBy = yield* spoiled(survey);
  const byNode = [...spoiledBy].map(([id, outputs]): [string, NodeErrors[string]] => {
    const errors = errorsOf(id, survey, meetings);
    const className = workflow[id]?.class_type ?? '';
    return [id, { errors, dependent_outputs: outputs, class_type: className }];
  });
  // Not by assignment: a node may be called `__proto__`.
  const nodeErrors: NodeErrors = Object.fromEntries(byNode);
  const own = byNode.filter(([id]) => survey.failing.has(id)).flatMap(([, { errors }]) => errors);
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

type Meeting = Verdict['links'][number];

/** The first link that leads to each node. */
function firstLinks({ verdicts }: Survey): ReadonlyMap<string, Meeting> {
  const links = [...verdicts.values()].flatMap((verdict) => verdict.links);
  return new Map(links.toReversed().map((met) => [met.link[0], met]));
}

/** An exception at an output is its own; elsewhere it is told in the words of the first link that met it. */
function errorsOf(
  id: string,
  { verdicts, failing }: Survey,
  meetings: ReadonlyMap<string, Meeting>,
): readonly NodeErrorEntry[] {
  const verdict = verdicts.get(id);
  if (!verdict?.thrown) return verdict?.errors ?? [];
  const { type, message } = verdict.thrown;
  const traceback = [`  in the validation of node ${id}\n`];
  if (failing.has(id)) {
    const info = { exception_type: type, traceback };
    return [entry('exception_during_validation', 'Exception when validating node', message, info)];
  }
  const met = meetings.get(id);
  const info = {
    ...(met ? { input_name: met.input, input_config: configOf(met.spec) } : {}),
    exception_message: message,
    exception_type: type,
    traceback,
    ...(met ? { linked_node: met.link } : {}),
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

function* withCoerced(workflow: Graph, verdicts: ReadonlyMap<string, Verdict>): Steps<Graph> {
  const entries: [string, GraphNode][] = [];
  for (const [id, node] of Object.entries(workflow)) {
    const coerced = verdicts.get(id)?.coerced;
    entries.push([id, coerced ? { ...node, inputs: { ...node.inputs, ...coerced } } : node]);
    yield 1 + Object.keys(node.inputs ?? {}).length;
  }
  return Object.fromEntries(entries);
}

/** A node that v1 refuses the whole prompt for. */
type UnfitNode = {
  readonly id: string;
  readonly message: string;
  readonly told: ContractNodeError;
};

function unfitNode(workflow: Graph, nodes: Nodes): UnfitNode | undefined {
  for (const [id, node] of Object.entries(workflow)) {
    const name: Json = isJsonObject(node as Json) ? (node.class_type as Json) : null;
    if (typeof name !== 'string') {
      const message = 'Cannot execute because a node is missing the class_type property.';
      return { id, message, told: MISSING_CLASS };
    }
    if (nodes.has(name)) continue;
    const message =
      `Cannot execute because node ${name} does not exist. The embedded engine has no class ` +
      `${name}; a remote v2 upstream that has it can run this workflow.`;
    return { id, message, told: UNKNOWN_CLASS };
  }
  return undefined;
}

/** The editor's own format: lists of nodes and links instead of one node per id. */
function isUiFormat(workflow: Graph): boolean {
  return Array.isArray(workflow['nodes']) || Array.isArray(workflow['links']);
}

function refuseFormat(): Result<never> {
  const message =
    'This is the editor\u2019s own workflow format: export the workflow in API format.';
  return refuseWhole('invalid_prompt', message, '', {}, 'workflow_format_ui');
}

/** v1 names such a node in `error` alone; the contract locates it among the nodes. */
function refuseNode({ id, message, told }: UnfitNode): Result<never> {
  const error = { type: 'invalid_prompt', message, details: `Node ID '#${id}'`, extra_info: {} };
  const details = { error, node_errors: Object.fromEntries([[id, [told]]]) as Json, x_native: {} };
  return refuse(422, 'invalid_workflow', message, { details });
}

function refuseWhole(
  type: string,
  message: string,
  details: string,
  nodeErrors: NodeErrors = {},
  code = 'invalid_workflow',
): Result<never> {
  const error = { type, message, details, extra_info: {} };
  return refuse(422, code, message, { details: { error, ...nodeErrorDetails(nodeErrors) } });
}
