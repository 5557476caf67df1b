import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { v1OutputsOf } from '../../src/translate/outputs.ts';
import type { ProgressEffect } from '../../src/translate/progress/progress-state.ts';
import { stringifyJson } from '../../src/protocol/json.ts';
import { type LegalRun, legalRuns } from './legal-runs.ts';
import {
  PROMPT_ID,
  type Frame,
  filesOf,
  framesOf,
  historyEntry,
  messages,
  runScript,
  typesOf,
} from './script.ts';

const ENDS = ['execution_success', 'execution_error', 'execution_interrupted'];
const RUNS = { numRuns: 600, seed: Date.now() };
const told = ({ graph, inputs }: LegalRun) => runScript(graph, inputs).effects;
/** Every promise is checked on the same runs. */
const SAMPLE = fc.sample(legalRuns, RUNS).map((run) => ({ run, effects: told(run) }));

function always(promise: (run: LegalRun, effects: readonly ProgressEffect[]) => void): void {
  try {
    for (const { run, effects } of SAMPLE) promise(run, effects);
  } catch {
    // Makes the run that fails smaller.
    fc.assert(
      fc.property(legalRuns, (run) => promise(run, told(run))),
      RUNS,
    );
  }
}

function nodesIn({ data }: Frame): string[] {
  const { node, display_node, nodes } = data as {
    node?: string | null;
    display_node?: string;
    nodes?: object;
  };
  const named = [node, display_node].filter((id): id is string => typeof id === 'string');
  return Array.isArray(nodes)
    ? [...named, ...(nodes as string[])]
    : [...named, ...Object.keys(nodes ?? {})];
}

type Step = { readonly value: number; readonly max: number };

function stepsIn(effects: readonly ProgressEffect[]): (Step & { readonly node: string })[] {
  return messages(effects).flatMap((message) =>
    message.type === 'progress' ? [message.data as Step & { node: string }] : [],
  );
}

describe('whatever gets lost, comes twice or is only polled', () => {
  test('execution_start comes once and first, unless the job never ran', () => {
    always((run, effects) => {
      const types = typesOf(effects);
      const starts = types.filter((type) => type === 'execution_start').length;
      expect(starts).toBe(types[0] === 'execution_interrupted' ? 0 : 1);
      expect(types[0]).toMatch(/^execution_(start|interrupted)$/);
      expect(run.ending === 'canceled' || starts === 1).toBe(true);
    });
  });

  test('execution_cached comes once and second', () => {
    always((_, effects) => {
      const types = typesOf(effects);
      const expected = types[0] === 'execution_start' ? [1] : [];
      expect(types.flatMap((type, i) => (type === 'execution_cached' ? [i] : []))).toEqual(
        expected,
      );
    });
  });

  test('a node is announced by executing once, before its progress and its pictures', () => {
    always((_, effects) => {
      const announced = new Set<string>();
      const tooEarly: Frame[] = [];
      for (const frame of framesOf(effects)) {
        const node = frame.node ?? (frame.data as { node?: string | null }).node;
        if (frame.type === 'executing' && node) announced.add(node);
        const needsIt = frame.type === 'progress' || frame.type === 'binary 1';
        if (needsIt && !announced.has(node ?? '')) tooEarly.push(frame);
      }
      expect(tooEarly).toEqual([]);
    });
  });

  test('pictures without an id fall on the node that executing named last', () => {
    always((_, effects) => {
      let current: string | null | undefined;
      const misplaced: Frame[] = [];
      for (const frame of framesOf(effects)) {
        if (frame.type === 'executing') current = (frame.data as { node: string | null }).node;
        if (frame.type === 'binary 1' && frame.node !== current) misplaced.push(frame);
      }
      expect(misplaced).toEqual([]);
    });
  });

  test('no two executed of a node say the same, and in a reported run there is one per node', () => {
    always((run, effects) => {
      const executed = messages(effects).filter(({ type }) => type === 'executed');
      const texts = executed.map((message) => JSON.stringify(message));
      expect(new Set(texts).size).toBe(texts.length);
      const nodes = executed.map((message) => (message.data as { node: string }).node);
      expect(run.upstream === 'derived' || new Set(nodes).size === nodes.length).toBe(true);
    });
  });

  test('there is exactly one end, everything else is said before it, executing null is last', () => {
    always((_, effects) => {
      const types = typesOf(effects);
      const ends = types.flatMap((type, i) => (ENDS.includes(type) ? [i] : []));
      expect(ends).toEqual([types.length - 2]);
      expect(effects.filter(({ kind }) => kind === 'end')).toEqual([effects.at(-1)]);
      expect(messages(effects).at(-1)?.data).toEqual({ node: null, prompt_id: PROMPT_ID });
    });
  });

  test('only nodes of the submitted graph are named', () => {
    always((run, effects) => {
      const named = new Set(messages(effects).flatMap(nodesIn));
      expect([...named].filter((id) => !Object.hasOwn(run.graph, id))).toEqual([]);
    });
  });

  test('a finished node never runs again, and no bar is more than full', () => {
    always((_, effects) => {
      const done = new Set<string>();
      const wrong: unknown[] = [];
      for (const message of messages(effects)) {
        if (message.type !== 'progress_state') continue;
        for (const [id, node] of Object.entries(message.data.nodes)) {
          if (node.value > node.max || (done.has(id) && node.state !== 'finished'))
            wrong.push(node);
          if (node.state === 'finished') done.add(id);
        }
      }
      expect(wrong).toEqual([]);
    });
  });

  test('a bar never goes back within a pass of its node', () => {
    always(({ nodes, upstream }, effects) => {
      const bars = new Map<string, Step>();
      const back: Step[] = [];
      for (const { node, value, max } of stepsIn(effects)) {
        const bar = bars.get(node) ?? { value: 0, max };
        const { passes = [] } = nodes[Number(node) - 1] ?? {};
        const isNewPass = upstream === 'exact' && bar.value === bar.max && value === 1;
        const mayBegin = passes.filter((steps) => steps === max).length > 1 && isNewPass;
        if (bar.max === max && value < bar.value && !mayBegin) back.push(bar, { value, max });
        bars.set(node, { value, max });
      }
      expect(back).toEqual([]);
    });
  });

  test('every output of a job that was read at its end is in executed and in history, but those of a node that is known to have failed', () => {
    always((run, effects) => {
      const { state } = runScript(run.graph, run.inputs);
      const entry = historyEntry(state, {
        number: 0,
        promptId: PROMPT_ID,
        graph: run.graph,
        extraData: {},
        targets: [],
      });
      const wasRead = run.ending !== 'lost';
      const { x_ui: finished } = run.job;
      const isShown = (id: string): boolean =>
        run.ending === 'succeeded' || !finished || Object.hasOwn(finished, id);
      const made = [...v1OutputsOf(run.job, filesOf(run.job), run.graph)];
      const expected = wasRead
        ? Object.fromEntries(made.filter(([id]) => isShown(id)))
        : entry.outputs;
      expect(entry.outputs).toEqual(expected);
      const announced = messages(effects).flatMap((m) =>
        m.type === 'executed' ? [[m.data.node, m.data.output]] : [],
      );
      const lastWords = Object.entries(Object.fromEntries(announced) as object).filter(
        ([, said]) => said !== null,
      );
      expect(Object.fromEntries(lastWords)).toEqual(entry.outputs);
    });
  });

  test('an image for the socket only is delivered exactly once', () => {
    always((run, effects) => {
      const sent = effects.flatMap((effect) => {
        const picture =
          effect.kind === 'picture' || effect.kind === 'step' ? effect.picture : undefined;
        return picture && 'assetId' in picture ? [picture.assetId] : [];
      });
      const made = run.job.outputs.filter(({ x_websocket }) => x_websocket).map(({ id }) => id);
      expect(new Set(sent).size).toBe(sent.length);
      expect(run.ending === 'lost' ? [] : made.filter((id) => !sent.includes(id))).toEqual([]);
    });
  });

  test('every message is one line of JSON that starts with its type', () => {
    always((_, effects) => {
      const texts = messages(effects).map((message) => stringifyJson(message as never));
      expect(texts.filter((text) => !text.startsWith('{"type":') || text.includes('\n'))).toEqual(
        [],
      );
    });
  });
});
