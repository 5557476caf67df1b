import { systemClock } from '../../../src/lib/clock.ts';
import { expect, test } from 'vitest';
import { createMemoryLedger } from '../../support/app/memory-ledger.ts';
import type { Graph } from '../../../src/protocol/v2.ts';
import { ANNA, graph, runJob, value } from '../../support/app/jobs.ts';
import { startEngine } from './open.ts';

type Nodes = { [id: string]: [string, { [name: string]: number | string | [string, number] }] };

function shows(count: number): Graph {
  const nodes: Nodes = {};
  for (let i = 1; i <= count; i++) {
    nodes[`n${i}`] = ['Number', { value: i }];
    nodes[`s${i}`] = ['Show', { value: [`n${i}`, 0] }];
  }
  return graph(nodes);
}

test('a job that saves many files does not have all names listed for each', async () => {
  const saves = 200;
  const memory = createMemoryLedger();
  let listed = 0;
  const assets = {
    ...memory.assets,
    outputPaths: (...args: Parameters<typeof memory.assets.outputPaths>) => {
      listed++;
      return memory.assets.outputPaths(...args);
    },
  };
  const engine = await startEngine({
    ledger: { ...memory, assets },
    clock: { ...systemClock, now: () => 1000 },
  });
  const nodes: Nodes = {};
  for (let i = 1; i <= saves; i++) {
    nodes[`n${i}`] = ['Number', { value: i }];
    nodes[`s${i}`] = ['Save', { value: [`n${i}`, 0], prefix: 'many' }];
  }
  const { job } = await runJob(engine, graph(nodes));
  expect(new Set(job.outputs.map(({ name }) => name)).size).toBe(saves);
  expect(listed).toBeLessThan(5);
});

test('output nodes of a large graph run as soon as they can, in the order of the graph', async () => {
  const engine = await startEngine();
  const { events, job } = await runJob(engine, shows(300));
  const order = events.flatMap((event) =>
    event.event === 'x_node' && event.data.phase === 'started' ? [event.data.node_id] : [],
  );
  expect(order).toEqual(Array.from({ length: 300 }, (_, i) => [`n${i + 1}`, `s${i + 1}`]).flat());
  expect(Object.keys(job.x_ui ?? {})).toHaveLength(300);
});

test('the engine takes in little of a large job between two turns of the event loop', async () => {
  const engine = await startEngine();
  const { id } = value(await engine.submit(ANNA, { workflow: shows(500), extraData: {} }));
  const events = value(await engine.events(ANNA, id, new AbortController().signal));
  let inTurn = 0;
  let most = 0;
  let isOver = false;
  const turn = (): void => {
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  for await (const event of events) {
    if (event.event !== 'status') most = Math.max(most, ++inTurn);
  }
  isOver = true;
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThan(300);
});
