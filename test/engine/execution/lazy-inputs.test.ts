// A node with lazy inputs asks for those that it needs; the nodes behind the others do not run.
import { expect, test } from 'vitest';
import { ALL_NODES } from '../../../src/nodes/library.ts';
import type { Graph } from '../../../src/protocol/v2.ts';
import type { FromWorker } from '../../../src/engine/jobs/worker-protocol.ts';
import { type Execution, execute } from '../../../src/engine/execution/execute-plan.ts';
import { createMemoryMeter } from '../../../src/engine/execution/memory-meter.ts';
import { type NodeRecord, createNodeCache } from '../../../src/engine/execution/node-cache.ts';
import { runJob } from '../../../src/engine/execution/run-job.ts';
import { createRunPlan } from '../../../src/engine/execution/run-plan.ts';
import { fakeContext } from '../../support/graphs/pixels.ts';

/** A switch between two chains of nodes, by a value of its own. */
const graph = (chosen: unknown): Graph =>
  ({
    yes: { class_type: 'PrimitiveString', inputs: { value: 'yes' } },
    longer: { class_type: 'StringTrim', inputs: { string: ['yes', 0], mode: 'Both' } },
    no: { class_type: 'PrimitiveString', inputs: { value: 'no' } },
    switch: {
      class_type: 'ComfySwitchNode',
      inputs: { switch: chosen, on_true: ['longer', 0], on_false: ['no', 0] },
    },
    truth: { class_type: 'PrimitiveBoolean', inputs: { value: true } },
    shown: { class_type: 'PreviewAny', inputs: { source: ['switch', 0] } },
  }) as unknown as Graph;

/** The nodes that ran, in their order, and the result. */
async function run(nodes: Graph, records = new Map<string, NodeRecord>()) {
  const posted: FromWorker[] = [];
  const meter = createMemoryMeter(1e6);
  const plan = createRunPlan({
    graph: nodes,
    targets: ['shown'],
    nodes: ALL_NODES,
    files: new Map(),
    nonce: 'x',
  });
  const context = { ...fakeContext({}), meter, saved: [], flush() {} };
  await execute({
    plan,
    targets: new Set(['shown']),
    records,
    meter,
    post: (message) => posted.push(message),
    ask: (async () => null) as never,
    contextFor: () => context,
  } satisfies Execution);
  const nodesIn = (type: 'started' | 'finished') =>
    posted.flatMap((message) => (message.type === type ? [message.nodeId] : []));
  const result = records.get(plan.get('switch')?.signature ?? '')?.slots[0];
  return { started: nodesIn('started'), finished: nodesIn('finished'), result };
}

test.each([
  [true, ['yes', 'longer'], 'yes'],
  [false, ['no'], 'no'],
])('switch %s: only the chosen branch runs', async (chosen, branch, text) => {
  expect(await run(graph(chosen))).toEqual({
    started: ['switch', ...branch, 'switch', 'shown'],
    finished: [...branch, 'switch', 'shown'],
    result: text,
  });
});

test('the choice may come from a node, which runs first', async () => {
  const { finished } = await run(graph(['truth', 0]));
  expect(finished).toEqual(['truth', 'yes', 'longer', 'switch', 'shown']);
});

test('a branch that the cache has is not run again', async () => {
  const records = new Map<string, NodeRecord>();
  await run(graph(true), records);
  const { finished } = await run(graph(['truth', 0]), records);
  expect(finished).toEqual(['truth', 'switch', 'shown']);
});

test('a FLOAT stays one behind a switch', async () => {
  const posted: FromWorker[] = [];
  const workflow = {
    ...graph(true),
    longer: { class_type: 'PrimitiveFloat', inputs: { value: 3 } },
    no: { class_type: 'PrimitiveFloat', inputs: { value: 4 } },
  };
  const end = await runJob(
    {
      user: 'anna',
      workflowJson: JSON.stringify(workflow),
      targets: ['shown'],
      files: new Map(),
      memoryLimitBytes: 1e6,
      stopFlag: new Int32Array(1),
    } as unknown as Parameters<typeof runJob>[0],
    {
      nodes: ALL_NODES,
      cache: createNodeCache({ maxBytes: 1e6 }),
      ask: (async () => null) as never,
      post: (message) => posted.push(message),
      spoolDir: '',
    },
  );
  expect(end).toEqual({ kind: 'succeeded' });
  expect(posted.at(-1)).toMatchObject({ nodeId: 'shown', uiJson: '{"text":["3.0"]}' });
});
