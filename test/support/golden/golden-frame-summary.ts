import type { Json } from '../../../src/protocol/json.ts';

type Data = {
  readonly node?: string | null;
  readonly value?: number;
  readonly max?: number;
  readonly output?: Json;
  readonly nodes?: Json;
  readonly sid?: string;
  readonly status?: { readonly exec_info: { readonly queue_remaining: number } };
};

type NodeState = { readonly value: number; readonly max: number; readonly state: string };

/** A normalised frame in the notation of the transcript tables: `S(1)`, `PS{1:f 1/1}`, `X(null)` … */
export function frameSummary(frame: Json): string {
  if ('binary' in (frame as object)) {
    const { binary, format, text } = frame as { binary: number; format?: string; text?: string };
    return `binary ${binary} ${format ?? text}`;
  }
  const { type, data } = frame as { type: string; data: Data };
  return TYPES[type]?.(data) ?? type;
}

/** True for a `progress` or `progress_state` with a node between its first and last step. */
export function isStepSummary(summary: string): boolean {
  return summary.startsWith('P(') || /:r [1-9]\d*\/\d+/.test(summary);
}

const TYPES: Readonly<Record<string, (data: Data) => string>> = {
  status: ({ status, sid }) =>
    `S(${status?.exec_info.queue_remaining})${sid === undefined ? '' : '+sid'}`,
  executing: ({ node }) => `X(${node})`,
  executed: ({ node, output }) => `executed(${node}${output === null ? ' null' : ''})`,
  execution_cached: ({ nodes }) => `execution_cached${JSON.stringify(nodes)}`,
  progress: ({ node, value, max }) => `P(${node} ${value}/${max})`,
  progress_state: ({ nodes }) =>
    `PS{${Object.entries(nodes as object)
      .map(stateOf)
      .join(',')}}`,
};

function stateOf([id, node]: [string, NodeState]): string {
  return `${id}:${node.state.slice(0, 1)} ${node.value}/${node.max}`;
}
