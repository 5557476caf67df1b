import { expect, test } from 'vitest';
import { endedRuns, liveRuns, jobNodesOf } from '../../src/console/job-nodes.ts';
import type { NodeStateWord } from '../../src/console/api-types.ts';
import type { LivePrompt } from '../../src/prompts/live-prompt.ts';
import { parseJson } from '../../src/protocol/json.ts';
import type { HistoryEntry } from '../../src/protocol/v1.ts';
import type { Graph } from '../../src/protocol/v2.ts';

const GRAPH = parseJson(`{
  "1": {"class_type": "Load", "inputs": {"name": "a.png", "seed": 12345678901234567890}},
  "2": {"class_type": "Blur", "inputs": {"image": ["1", 0], "size": [3, 4], "gone": ["7", 0]}},
  "3": {"class_type": "Save", "inputs": {"image": ["2", 0]}, "_meta": {"title": "The end"}}
}`) as Graph;

type Shown = readonly (readonly [NodeStateWord, number | null])[];

const shown = (runs: Parameters<typeof jobNodesOf>[1]): Shown =>
  jobNodesOf(GRAPH, runs).map(({ state, ran_ms: ranMs }) => [state, ranMs]);

const entryWith = (completed: boolean, messages: readonly unknown[]) =>
  ({ outputs: {}, status: { completed, messages } }) as unknown as HistoryEntry;

test('links are told from values, and numbers keep their digits', () => {
  const [load, blur, save] = jobNodesOf(GRAPH, liveRuns({} as LivePrompt, 0));
  expect(load?.values).toEqual([
    { input: 'name', text: 'a.png' },
    { input: 'seed', text: '12345678901234567890' },
  ]);
  expect(blur?.links).toEqual([{ input: 'image', from: '1', slot: 0 }]);
  expect(blur?.values.map(({ text }) => text)).toEqual(['[3,4]', '["7",0]']);
  expect(save?.title).toBe('The end');
});

test('a long text is cut', () => {
  const graph = { 1: { class_type: 'Text', inputs: { text: 'x'.repeat(100_000) } } } as Graph;
  const [node] = jobNodesOf(graph, liveRuns({} as LivePrompt, 0));
  expect(node?.values[0]?.text.length).toBeLessThan(400);
});

test('while it runs, the running node has its time so far', () => {
  const step = { value: 1, max: 2, hasReported: true };
  const started = new Map([
    ['1', { ...step, state: 'finished', startedAtMs: 1000, endedAtMs: 1400 } as const],
    ['2', { ...step, state: 'running', startedAtMs: 1400, endedAtMs: null } as const],
  ]);
  const runs = liveRuns({ progress: { runs: started } } as unknown as LivePrompt, 2000);
  expect(shown(runs)).toEqual([
    ['done', 400],
    ['running', 600],
    ['waiting', null],
  ]);
});

test('after its end, states come from history and times from the record', () => {
  const cached = ['execution_cached', { nodes: ['1'] }];
  const runs = endedRuns('{"2":[5,25]}', entryWith(true, [cached]));
  expect(shown(runs)).toEqual([
    ['cached', null],
    ['done', 20],
    ['done', null],
  ]);
});

test.each([
  ['execution_error', 'failed'],
  ['execution_interrupted', 'stopped'],
] as const)('%s names the node that has %s', (type, state) => {
  const message = [type, { node_id: '2', executed: ['1'] }];
  const runs = endedRuns(null, entryWith(false, [message]));
  expect(shown(runs)).toEqual([
    ['done', null],
    [state, null],
    ['waiting', null],
  ]);
});
