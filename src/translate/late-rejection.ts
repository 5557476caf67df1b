import type { V2Error } from '../protocol/job-api.ts';
import type { NodeErrors } from '../protocol/v1.ts';
import type { Graph, JobError } from '../protocol/v2.ts';
import type { V1Refusal } from './prompt-refusal.ts';
import { classOf } from './graph.ts';

/**
 * Returns the job error of a prompt that is refused after it was accepted: the refusal can only be
 * shown as a failed run, on the first node with an error.
 */
export function jobErrorOf(error: V2Error, { body }: V1Refusal, graph: Graph): JobError {
  const [nodeId] = Object.keys(body.node_errors);
  const { message, details } = body.error;
  return {
    code: error.code,
    message: [message, details, nodeId === undefined ? '' : nodeMessages(body.node_errors, nodeId)]
      .filter((text, i, all) => text !== '' && all.indexOf(text) === i)
      .join('\n'),
    ...(nodeId !== undefined && { node_id: nodeId, class_type: classOf(graph, nodeId) }),
  };
}

function nodeMessages(nodeErrors: NodeErrors, nodeId: string): string {
  const errors = nodeErrors[nodeId]?.errors ?? [];
  return errors.map(({ message, details }) => `${message}: ${details}`).join('\n');
}
