import { expect, test } from 'vitest';
import { nodeTimesJson, readNodeTimes } from '../../src/prompts/node-times.ts';
import {
  chain,
  finished,
  outputOf,
  progress,
  runScript,
  settled,
  started,
  status,
} from '../translate/script.ts';

// The times that the page shows in the graph of a job.

const GRAPH = chain(['1', 'Load'], ['2', 'Sample'], ['3', 'Save']);

/** Every input comes ten milliseconds after the one before it. */
function timesOf(inputs: Parameters<typeof runScript>[1]) {
  const { state } = runScript(
    GRAPH,
    inputs.map((input, at) => ({ ...input, atMs: 1000 + 10 * at })),
  );
  return readNodeTimes(nodeTimesJson(state) ?? null);
}

test('are told by an upstream that names each node', () => {
  const times = timesOf([
    status('running'),
    started('1'),
    finished('1'),
    started('2'),
    progress('2', { step: 1, steps: 2 }),
    finished('2'),
    settled(),
  ]);
  expect(times).toEqual({ 1: [10, 20], 2: [30, 50] });
});

test('are derived where an upstream tells of progress only', () => {
  const inputs = [status('running'), progress('1'), progress('2'), settled()];
  expect(timesOf(inputs)).toEqual({ 1: [10, 20], 2: [20, 30] });
});

test('of the node that failed end with the job', () => {
  const error = { code: 'x', message: 'no', node_id: '2' };
  const inputs = [status('running'), started('2'), settled({ status: 'failed', error })];
  expect(timesOf(inputs)).toEqual({ 2: [10, 20] });
});

test('are not made up for nodes that no event named', () => {
  expect(timesOf([settled({ outputs: [outputOf('a', '3')] })])).toEqual({});
  expect(timesOf([status('running'), finished('1'), settled()])).toEqual({});
});
