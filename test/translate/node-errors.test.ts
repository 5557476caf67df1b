import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { toNodeErrors } from '../../src/translate/node-errors.ts';
import { nodeErrorDetails } from '../../src/protocol/node-errors.ts';
import type { NodeErrors } from '../../src/protocol/v1.ts';
import type { Graph } from '../../src/protocol/v2.ts';

type Exchange = {
  note?: string;
  request: { body_json?: { prompt?: Graph; partial_execution_targets?: unknown } };
  response: { body_json?: { node_errors?: NodeErrors } };
};

const RECORDED = JSON.parse(
  readFileSync(new URL('../../fixtures/v1/http/validation-errors.json', import.meta.url), 'utf8'),
) as { exchanges: Exchange[] };

const REFUSED = RECORDED.exchanges.flatMap(({ note = '', request, response }) => {
  const [graph, native] = [request.body_json?.prompt, response.body_json?.node_errors ?? {}];
  return graph && Object.keys(native).length > 0 ? [{ note, graph, native }] : [];
});

const OUTPUTS = /^(Save|Preview)/;

function outputsOf(graph: Graph): readonly string[] {
  return Object.keys(graph).filter((id) => OUTPUTS.test(graph[id]?.class_type ?? ''));
}

/** The part of an entry that the contract's shape has room for. */
function summary(nodeErrors: NodeErrors) {
  return Object.fromEntries(
    Object.entries(nodeErrors).map(([id, { errors, dependent_outputs, class_type }]) => [
      id,
      {
        class_type,
        dependent_outputs: [...dependent_outputs].toSorted(),
        errors: errors.map(({ type, extra_info: info }) => [type, info.input_name ?? '']),
      },
    ]),
  );
}

describe('node errors of recorded refusals', () => {
  test('there are recordings to translate', () => {
    expect(REFUSED.length).toBeGreaterThan(20);
  });

  test.each(REFUSED)(
    '$note: same nodes, inputs, types and outputs by way of the contract’s shape alone',
    ({ graph, native }) => {
      const { node_errors } = nodeErrorDetails(native);
      const translated = toNodeErrors({ node_errors }, graph, outputsOf(graph));
      expect(summary(translated)).toEqual(summary(native));
    },
  );

  test('a refusal in a node’s own words keeps them', () => {
    const own = {
      type: 'custom_validation_failed',
      message: 'Custom validation failed for node',
      details: 'image - Invalid image file: x.png',
      extra_info: { input_name: 'image' },
    };
    const graph = { '1': { class_type: 'LoadImage', inputs: { image: 'x.png' } } };
    const native = { '1': { errors: [own], dependent_outputs: [], class_type: 'LoadImage' } };
    const { node_errors } = nodeErrorDetails(native);
    expect(node_errors).toEqual({ '1': [{ field: 'image', reason: 'Invalid image file: x.png' }] });
    expect(toNodeErrors({ node_errors }, graph, [])).toEqual(native);
  });
});
