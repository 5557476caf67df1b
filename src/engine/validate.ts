import type { NodeDef } from '../nodes/node.ts';
import { ok, refuse, type Result } from '../wire/jobs.ts';
import type { Graph } from '../wire/v2.ts';
export function validateWorkflow(workflow: Graph, nodes: ReadonlyMap<string, NodeDef>): Result<{ workflow: Graph; outputs: readonly string[] }> {
  const outputs = Object.keys(workflow).filter((id) => nodes.get(workflow[id]?.class_type ?? '')?.outputNode);
  if (outputs.length === 0) return refuse(422, 'invalid_workflow', 'no outputs');
  return ok({ workflow, outputs });
}
