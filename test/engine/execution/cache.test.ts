import { expect, test } from 'vitest';
import { type NodeRecord, createNodeCache } from '../../../src/engine/execution/node-cache.ts';
import { createRunPlan } from '../../../src/engine/execution/run-plan.ts';
import { ALL_NODES } from '../../../src/nodes/library.ts';
import type { Graph } from '../../../src/protocol/v2.ts';

const MIB = 2 ** 20;

function recordOf(text: string, more: Partial<NodeRecord> = {}): NodeRecord {
  return { slots: [text], outputs: [], ...more };
}

test.each<[string, NodeRecord, number]>([
  ['a text that fits', recordOf('x'.repeat(MIB / 4)), 1],
  ['a text that does not', recordOf('x'.repeat(MIB)), 0],
  ['what a node shows', recordOf('', { uiJson: 'x'.repeat(MIB) }), 0],
])('the cache holds no more text than it may: %s', (_, record, kept) => {
  const cache = createNodeCache({ maxBytes: MIB });
  cache.take('anna');
  cache.put('anna', new Map([['one', record]]));
  expect(cache.take('anna').size).toBe(kept);
});

test('the longest idle user’s texts go first', () => {
  const cache = createNodeCache({ maxBytes: 2 * MIB });
  for (const user of ['anna', 'ben', 'carl']) {
    cache.take(user);
    cache.put(user, new Map([['one', recordOf(`${user}${'x'.repeat(MIB / 3)}`)]]));
  }
  expect(['anna', 'ben', 'carl'].map((user) => cache.take(user).size)).toEqual([0, 1, 1]);
});

test('results that are to be forgotten go at once, or at the end of the job that has them', () => {
  const cache = createNodeCache({ maxBytes: MIB });
  const put = () => cache.put('anna', new Map([['one', recordOf('x')]]));
  cache.take('anna');
  put();
  cache.forget('anna');
  cache.forget('ben');
  expect(cache.take('anna').size).toBe(0);
  cache.forget('anna');
  put();
  expect(cache.take('anna').size).toBe(0);
  put();
  expect(cache.take('anna').size).toBe(1);
});

test('two nodes that ask for their id have one result, as classes of the newer style in v1', () => {
  const size = { class_type: 'GetImageSize', inputs: { image: ['1', 0] } };
  const graph = { 1: { class_type: 'EmptyImage', inputs: {} }, 2: size, 3: size };
  const options = { nodes: ALL_NODES, files: new Map(), nonce: 'x', targets: ['2', '3'] };
  const plan = createRunPlan({ graph: graph as unknown as Graph, ...options });
  expect(plan.get('3')?.signature).toBe(plan.get('2')?.signature);
});
