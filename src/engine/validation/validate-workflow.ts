import { type Json, entriesInOrder, isJsonObject } from '../../protocol/json.ts';
import { type Result, ok, refuse } from '../../protocol/job-api.ts';
import type { V2ErrorCode } from '../../protocol/error-codes.ts';
import type { Steps } from '../../protocol/steps.ts';
import {
  type ContractNodeError,
  MISSING_CLASS,
  UNKNOWN_CLASS,
  errorEntry,
  nodeErrorDetails,
} from '../../protocol/node-errors.ts';
import type { NodeErrorEntry, NodeErrors } from '../../protocol/v1.ts';
import type { Graph, GraphNode } from '../../protocol/v2.ts';
import { withNodes } from '../../translate/graph.ts';
import { errorsInOrder, missingNodeError } from '../../translate/node-errors.ts';
import { inputConfig } from './validate-link.ts';
import type { ValidationContext, NodeValidation } from './validate-node.ts';
import { type GraphValidation, outputsByFailingNode, validateGraph } from './validate-graph.ts';

type Nodes = ValidationContext['nodes'];

/**
 * Validates what these outputs depend on as v1 does, but all outputs or none, as the v2 service
 * does. The details of a refusal have v1's own `error` and `node_errors`, so that the v1 side can
 * repeat v1's answer exactly. Returns the workflow with coerced literals; the same object if none
 * was changed.
 */
export function* validateOutputs(
  workflow: Graph,
  outputs: readonly string[],
  context: ValidationContext,
): Steps<Result<Graph>> {
  const validation = yield* validateGraph(workflow, outputs, context);
  if (validation.failingOutputs.size > 0) return yield* refuseOutputs(workflow, validation);
  return ok(yield* withCoerced(workflow, validation.validations));
}

/** Returns the output nodes, or the first fault of the workflow as a whole, at which v1 stops. */
export function findOutputs(workflow: Graph, nodes: Nodes): Result<readonly string[]> {
  // The editor's own format has lists of nodes and links instead of one node for each id.
  if (Array.isArray(workflow['nodes']) || Array.isArray(workflow['links']))
    return refuseWhole('invalid_prompt', UI_FORMAT, '', {}, 'workflow_format_ui');
  for (const [id, node] of entriesInOrder(workflow)) {
    const name = (isJsonObject(node as Json) ? node.class_type : undefined) as Json | undefined;
    if (typeof name !== 'string') return refuseNode(workflow, id, MISSING_CLASS);
    if (!nodes.has(name)) return refuseNode(workflow, id, UNKNOWN_CLASS);
  }
  const outputs = Object.keys(workflow).filter(
    (id) => nodes.get(workflow[id]?.class_type ?? '')?.outputNode,
  );
  if (outputs.length === 0) return refuseWhole('prompt_no_outputs', 'Prompt has no outputs', '');
  return ok(outputs);
}

function* refuseOutputs(workflow: Graph, validation: GraphValidation): Steps<Result<never>> {
  const linksByTarget = firstLinks(validation);
  const outputsByNode = yield* outputsByFailingNode(validation);
  const byNode = [...outputsByNode].map(([id, outputs]): [string, NodeErrors[string]] => {
    const errors = errorsOf(id, validation, linksByTarget);
    const className = workflow[id]?.class_type ?? '';
    return [id, { errors, dependent_outputs: outputs, class_type: className }];
  });
  const nodeErrors = errorsInOrder(byNode, workflow);
  const outputErrors = byNode
    .filter(([id]) => validation.failingOutputs.has(id))
    .flatMap(([, { errors }]) => errors);
  const details = outputErrors.map((error) => `${error.message}: ${error.details}`);
  return refuseWhole(
    'prompt_outputs_failed_validation',
    'Prompt outputs failed validation',
    details.join('\n'),
    nodeErrors,
  );
}

type ValidLink = NodeValidation['links'][number];

/** Returns the first link that leads to each node. */
function firstLinks({ validations }: GraphValidation): ReadonlyMap<string, ValidLink> {
  const links = [...validations.values()].flatMap((nodeValidation) => nodeValidation.links);
  return new Map(links.toReversed().map((link) => [link.link[0], link]));
}

/**
 * Returns the errors. An exception at an output node is its own error. Elsewhere it is reported for
 * the first link that leads to the node.
 */
function errorsOf(
  id: string,
  { validations, failingOutputs: failing }: GraphValidation,
  linksByTarget: ReadonlyMap<string, ValidLink>,
): readonly NodeErrorEntry[] {
  const nodeValidation = validations.get(id);
  if (!nodeValidation?.thrown) return nodeValidation?.errors ?? [];
  const { type, message } = nodeValidation.thrown;
  const traceback = [`  in the validation of node ${id}\n`];
  if (failing.has(id)) {
    const info = { exception_type: type, traceback };
    return [errorEntry('exception_during_validation', message, info)];
  }
  const link = linksByTarget.get(id);
  const info = {
    ...(link ? { input_name: link.input, input_config: inputConfig(link.spec) } : {}),
    exception_message: message,
    exception_type: type,
    traceback,
    ...(link ? { linked_node: link.link } : {}),
  };
  return [errorEntry('exception_during_inner_validation', message, info)];
}

function* withCoerced(
  workflow: Graph,
  validations: ReadonlyMap<string, NodeValidation>,
): Steps<Graph> {
  const changed = new Map<string, GraphNode>();
  for (const [id, node] of Object.entries(workflow)) {
    const coerced = validations.get(id)?.coerced ?? {};
    const isChanged = Object.keys(coerced).some((input) => coerced[input] !== node.inputs[input]);
    if (isChanged) changed.set(id, { ...node, inputs: { ...node.inputs, ...coerced } });
    yield 1 + Object.keys(node.inputs ?? {}).length;
  }
  return withNodes(workflow, changed);
}

const UI_FORMAT =
  'This is the editor\u2019s own workflow format: export the workflow in API format.';

/**
 * Refuses a prompt for one node. v1 names such a node only in `error`; the contract lists it under
 * `node_errors`.
 */
function refuseNode(workflow: Graph, id: string, contractError: ContractNodeError): Result<never> {
  const error = missingNodeError(id, workflow[id]);
  const details = {
    error,
    node_errors: Object.fromEntries([[id, [contractError]]]) as Json,
    x_native: {},
  };
  const hint =
    contractError === UNKNOWN_CLASS ? ' A remote v2 upstream that has the class can run it.' : '';
  return refuse(422, 'invalid_workflow', error.message + hint, { details });
}

function refuseWhole(
  type: string,
  message: string,
  details: string,
  nodeErrors: NodeErrors = {},
  code: V2ErrorCode = 'invalid_workflow',
): Result<never> {
  const error = { type, message, details, extra_info: {} };
  return refuse(422, code, message, { details: { error, ...nodeErrorDetails(nodeErrors) } });
}
