import { expect, test } from 'vitest';
import type { Graph } from '../../../src/protocol/v2.ts';
import { dependenciesFirst } from '../../../src/translate/graph.ts';
import type { PlannedNode } from '../../../src/engine/execution/run-plan.ts';
import { createSchedule } from '../../../src/engine/execution/schedule.ts';

/** Nodes by the ids they are linked to, in the order of a walk. */
function run(graph: { readonly [id: string]: readonly string[] }, outputs: readonly string[] = []) {
  const nodes = Object.entries(graph).map(([id, links]): [string, PlannedNode] => [
    id,
    { id, links: new Map(links.map((from, i) => [`input${i}`, { from, slot: 0 }])) } as never,
  ]);
  const schedule = createSchedule(new Map(nodes).values(), ({ id }) => outputs.includes(id));
  const order: string[] = [];
  for (let node = schedule.next(); node; node = schedule.next()) {
    order.push(node.id);
    schedule.done(node.id);
  }
  return order;
}

test('a node comes after all it is linked to', () => {
  expect(run({ c: ['a', 'b'], b: ['a'], a: [] })).toEqual(['a', 'b', 'c']);
});

test('an output node runs as soon as it can', () => {
  const graph = { a: [], b: [], c: ['b'], save: ['a'] };
  expect(run(graph)).toEqual(['a', 'b', 'c', 'save']);
  expect(run(graph, ['save'])).toEqual(['a', 'save', 'b', 'c']);
});

test('two links to one node count once, links to cached nodes not at all', () => {
  expect(run({ b: ['a', 'a', 'cached'], a: [] })).toEqual(['a', 'b']);
});

test('nodes on a cycle never come', () => {
  expect(run({ a: ['b'], b: ['a'], c: [] })).toEqual(['c']);
});

test('a node with more links than a call has arguments', () => {
  const links = Array.from({ length: 160_000 }, (_, i) => [`${i}`, ['source', 0]] as const);
  const sink = { class_type: 'Sink', inputs: Object.fromEntries(links) };
  const nodes: Graph = { source: { class_type: 'Source', inputs: {} }, sink };
  expect(dependenciesFirst(nodes, ['sink'])).toEqual(['source', 'sink']);
});
