import type { Graph } from '../../../src/protocol/v2.ts';

/** The `--job-memory` these graphs are made for. */
export const MEMORY_MB = 64;

/** Shows a text (node 9). */
export function shown(value: string): Graph {
  return graph({ class_type: 'PrimitiveString', inputs: { value } });
}

/** Joins a text of 1 KB with itself, so many times. */
export function doubling(times: number): Graph {
  const first = { class_type: 'PrimitiveString', inputs: { value: 'x'.repeat(1024) } };
  const nodes: { [id: string]: object } = { '100': first };
  for (let id = 101; id < 100 + times; id++) {
    const half = [String(id - 1), 0];
    nodes[id] = joining(half);
  }
  return { ...nodes, ...graph(joining([String(99 + times), 0])) } as Graph;
}

/** Puts a text of 1 MB between all characters of another. */
export function spreading(): Graph {
  const nodes = doubling(11);
  const inputs = { string: ['1', 0], find: '', replace: ['1', 0] };
  const spread = { class_type: 'StringReplace', inputs };
  return { ...nodes, '2': spread, '9': preview('2') } as Graph;
}

function joining(half: unknown): object {
  return {
    class_type: 'StringConcatenate',
    inputs: { string_a: half, string_b: half, delimiter: '' },
  };
}

function graph(first: object): Graph {
  return { '1': first, '9': preview('1') } as Graph;
}

function preview(id: string): object {
  return { class_type: 'PreviewAny', inputs: { source: [id, 0] } };
}
