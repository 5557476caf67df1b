import { describe, expect, test } from 'vitest';
import {
  type ProgressState,
  initialProgress,
} from '../../src/translate/progress/progress-state.ts';
import type { ProgressEffect, ProgressInput } from '../../src/translate/progress/progress-state.ts';
import { idleDueMs, reduceProgress } from '../../src/translate/progress/progress.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { messages, settled, typesOf } from './script.ts';

function graphOf(nodes: number): Graph {
  const ids = Array.from({ length: nodes }, (_, i) => String(i + 1));
  return Object.fromEntries(ids.map((id) => [id, { class_type: 'X', inputs: {} }]));
}

const at = (
  atMs: number,
  nodeId: string,
  phase: 'started' | 'finished',
): Extract<ProgressInput, { kind: 'event' }> => ({
  kind: 'event',
  event: { event: 'x_node', data: { node_id: nodeId, phase } },
  atMs,
});

/** A run whose nodes begin and end at equal distances. */
function runOf(nodes: number, everyMs: number): readonly ProgressInput[] {
  return Array.from({ length: nodes }, (_, i) => [
    at(1000 + 2 * i * everyMs, String(i + 1), 'started'),
    at(1000 + (2 * i + 1) * everyMs, String(i + 1), 'finished'),
  ]).flat();
}

function runScripts(nodes: number, inputs: readonly ProgressInput[]) {
  let state: ProgressState = initialProgress('p', graphOf(nodes));
  const told: { readonly effect: ProgressEffect; readonly atMs: number }[] = [];
  for (const input of inputs) {
    const turn = reduceProgress(state, input);
    state = turn.state;
    told.push(...turn.effects.map((effect) => ({ effect, atMs: input.atMs })));
  }
  return { state, told, effects: told.map(({ effect }) => effect) };
}

const statesIn = (effects: readonly ProgressEffect[]) =>
  messages(effects).flatMap((message) => (message.type === 'progress_state' ? [message.data] : []));

describe('progress_state', () => {
  test('of a large graph is said before the end as things stand then', () => {
    for (const job of [
      { status: 'succeeded' },
      { status: 'failed', error: { code: 'x', message: 'on purpose' } },
      { status: 'canceled' },
    ] as const) {
      const { effects } = runScripts(500, [...runOf(500, 0), settled(job)]);
      expect(typesOf(effects).slice(-3, -2)).toEqual(['progress_state']);
      expect(statesIn(effects).at(-1)?.nodes['500']).toMatchObject({ state: 'finished' });
    }
  });

  test('that was held back is due by itself when nothing else happens', () => {
    const { state } = runScripts(500, runOf(500, 0));
    const dueMs = idleDueMs(state) ?? 0;
    expect(dueMs).toBeGreaterThan(1000);
    expect(statesIn(reduceProgress(state, { kind: 'idle', atMs: dueMs - 1 }).effects)).toEqual([]);
    const { state: later, effects } = reduceProgress(state, { kind: 'idle', atMs: dueMs });
    expect(statesIn(effects)[0]?.nodes['500']).toMatchObject({ state: 'finished' });
    expect(idleDueMs(later)).toBeNull();
  });

  test('does not wait for a clock that was set back', () => {
    const { state } = runScripts(500, runOf(500, 0));
    expect(statesIn(reduceProgress(state, { kind: 'idle', atMs: 10 }).effects)).toHaveLength(1);
  });

  test('steps of a large graph are reported without it in between', () => {
    const begun = [...runOf(500, 0), at(1000, '501', 'started')];
    const steps = Array.from({ length: 40 }, (_, i): ProgressInput => {
      const data = {
        value: 0.5,
        nodes_done: 500,
        nodes_total: 501,
        current_node: '501',
        step: i + 1,
        steps: 40,
      };
      return { kind: 'event', event: { event: 'progress', data }, atMs: 1001 + 10 * i };
    });
    const { effects } = runScripts(501, [...begun, ...steps]);
    const told = effects.filter(({ kind }) => kind === 'step');
    expect(told).toHaveLength(40);
    expect(statesIn(told).length).toBeGreaterThanOrEqual(6);
    expect(statesIn(told).length).toBeLessThanOrEqual(8);
  });
});

test('one more input of a long run costs no copy of what has been', () => {
  const nodes = 2000;
  const { state } = runScripts(nodes, runOf(nodes - 1, 0));
  const { state: next } = reduceProgress(state, at(1000, String(nodes), 'started'));
  for (const name of [
    'runs',
    'executed',
    'sentOutputs',
    'outputs',
    'files',
    'unsentFiles',
  ] as const) {
    expect(next[name]).toBe(state[name]);
  }
});
