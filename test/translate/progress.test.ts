import { describe, expect, test } from 'vitest';
import { initialProgress } from '../../src/translate/progress/progress-state.ts';
import { idleDueMs, reduceProgress } from '../../src/translate/progress/progress.ts';
import type { ProgressInput } from '../../src/translate/progress/progress-state.ts';
import { stringifyJson, type Json } from '../../src/protocol/json.ts';
import type { JobError } from '../../src/protocol/v2.ts';
import {
  JPEG,
  chain,
  fileRef,
  finished,
  framesOf,
  idle,
  messageOf,
  messages,
  output,
  outputOf,
  runScript,
  preview,
  progress,
  settled,
  snapshot,
  started,
  status,
  text,
  typesOf,
} from './script.ts';

const GRAPH = chain(['1', 'Load'], ['2', 'Sample'], ['3', 'Save']);
const executed = (effects: ReturnType<typeof runScript>['effects']) =>
  messages(effects).flatMap((message) => (message.type === 'executed' ? [message.data] : []));

describe('an upstream that tells of progress only', () => {
  test('nodes are derived from current_node, and left when the next one begins', () => {
    const { effects } = runScript(GRAPH, [
      status('running'),
      progress('1'),
      progress('2'),
      progress('2', { step: 1, steps: 2 }),
      progress('2', { step: 1, steps: 2 }),
      progress('2', { step: 2, steps: 2 }),
      progress('3'),
      output(outputOf('a', '3')),
      status('succeeded'),
      settled({ outputs: [outputOf('a', '3')] }),
    ]);
    expect(typesOf(effects).join(' ')).toBe(
      [
        'execution_start execution_cached',
        'progress_state executing progress_state',
        'progress_state executing progress_state progress progress_state progress progress_state',
        'progress_state executing executed progress_state',
        'execution_success executing',
      ].join(' '),
    );
    expect(executed(effects)).toEqual([
      {
        node: '3',
        display_node: '3',
        output: { images: [fileRef('a.png')] },
        prompt_id: 'prompt-1',
      },
    ]);
  });

  test('all-zero progress is no sign of life', () => {
    const stub = {
      value: 0,
      nodes_done: 0,
      nodes_total: 0,
      current_node: null,
      step: null,
      steps: null,
    };
    const { effects } = runScript(GRAPH, [
      { kind: 'event', event: { event: 'progress', data: stub }, atMs: 1 },
      snapshot({ status: 'queued', progress: stub, started_at: null }),
    ]);
    expect(effects).toEqual([]);
  });

  test('stale progress neither turns a bar back nor brings a left node back', () => {
    const { effects } = runScript(GRAPH, [
      progress('2', { step: 3, steps: 4 }),
      progress('2', { step: 1, steps: 4 }),
      progress('3'),
      progress('2', { step: 4, steps: 4 }),
    ]);
    expect(messages(effects).filter(({ type }) => type === 'progress')).toHaveLength(1);
    expect(messages(effects).at(-1)).toMatchObject({ type: 'executing', data: { node: '3' } });
  });

  test('a step past the end is clamped', () => {
    const { effects } = runScript(GRAPH, [progress('2', { step: 9, steps: 4 })]);
    expect(messageOf(effects, 'progress')).toMatchObject({ value: 4, max: 4 });
  });

  test('a finish that comes after its files were sent does not send them twice', () => {
    const ui = { images: [{ x_asset: 'a' }] };
    const { effects } = runScript(GRAPH, [
      progress('3'),
      output(outputOf('a', '3'), fileRef('a'), 1000),
      idle(1800),
      finished('3', ui),
      settled({ outputs: [outputOf('a', '3')] }, new Map([['a', fileRef('a')]])),
    ]);
    expect(executed(effects).map(({ output: said }) => said)).toEqual([{ images: [fileRef('a')] }]);
  });

  test('more outputs of a node already sent are sent again, with the ones before', () => {
    const { effects } = runScript(GRAPH, [
      progress('3'),
      output(outputOf('a', '3'), fileRef('a'), 1000),
      idle(1800),
      output(outputOf('b', '3'), fileRef('b'), 1900),
      output(outputOf('b', '3'), fileRef('b'), 1950),
      settled(
        { outputs: [outputOf('a', '3'), outputOf('b', '3')] },
        new Map([
          ['a', fileRef('a')],
          ['b', fileRef('b')],
        ]),
      ),
    ]);
    expect(executed(effects).map(({ output: said }) => said)).toEqual([
      { images: [fileRef('a')] },
      { images: [fileRef('a'), fileRef('b')] },
    ]);
  });

  test.each([
    ['of the node at work', '2', 1749, 0],
    ['of the node at work', '2', 1750, 1],
    ['of a node left', '1', 1249, 0],
    ['of a node left', '1', 1250, 1],
  ])('files %s (%s) are told of after a while (%i)', (_, node, atMs, times) => {
    const before = [progress('1'), progress('2'), output(outputOf('a', node), fileRef('a'), 1000)];
    const { state } = runScript(GRAPH, before);
    expect(executed(runScript(GRAPH, [...before, idle(atMs)]).effects)).toHaveLength(times);
    expect(idleDueMs(state)).toBe(node === '2' ? 1750 : 1250);
  });

  test('nodes made while running show as the node that was submitted', () => {
    const { effects } = runScript(GRAPH, [progress('2.0.0.1', { step: 1, steps: 2 })]);
    expect(messageOf(effects, 'executing')).toMatchObject({ node: '2.0.0.1', display_node: '2' });
    expect(messageOf(effects, 'progress_state')?.nodes['2.0.0.1']).toMatchObject({
      display_node_id: '2',
      parent_node_id: '2',
      real_node_id: '2',
    });
  });

  test('a node that was not submitted is never named', () => {
    const { effects } = runScript(GRAPH, [
      progress('ghost', { step: 1, steps: 2 }),
      started('toString'),
      finished('ghost', null),
    ]);
    expect(typesOf(effects).filter((type) => !type.startsWith('execution_'))).toEqual([]);
  });
});

describe('an upstream that tells of each node', () => {
  test('execution_cached waits for the cached nodes', () => {
    const first = runScript(GRAPH, [status('queued'), status('running')]);
    expect(typesOf(first.effects)).toEqual(['execution_start']);
    const { effects } = runScript(GRAPH, [
      status('queued'),
      status('running'),
      status('running', ['1']),
    ]);
    expect(messageOf(effects, 'execution_cached')?.nodes).toEqual(['1']);
  });

  test('a node that waited for lazy inputs is named again once they have run, and only then', () => {
    const first = [started('2'), started('1'), started('2')];
    const then = [finished('1'), started('2'), started('1'), started('2')];
    const { effects } = runScript(GRAPH, [...first, ...then]);
    const named = messages(effects).flatMap((m) => (m.type === 'executing' ? [m.data.node] : []));
    expect(named).toEqual(['2', '1', '2']);
  });

  const stepsOf = (...inputs: readonly ProgressInput[]): string[] =>
    messages(runScript(GRAPH, inputs).effects).flatMap((message) =>
      message.type === 'progress' ? [`${message.data.value}/${message.data.max}`] : [],
    );

  test('a list item counting its steps anew is passed on', () => {
    const steps = [2, 1].map((step) => progress('2', { step, steps: 2 }));
    expect(stepsOf(started('2'), ...steps)).toEqual(['2/2', '1/2']);
  });

  test.each([
    ['a poll', { x_polled: true }],
    ['an event that comes late', {}],
  ])('%s takes no bar back', (_which, more) => {
    const at = (step: number, steps: number, value = 0.5) =>
      progress('2', { step, steps, value, ...more });
    const shown = stepsOf(
      started('2'),
      progress('2', { step: 7, steps: 8 }),
      at(6, 8),
      progress('2', { step: 1, steps: 5 }),
      at(8, 8),
      progress('2', { step: 5, steps: 5, value: 0.6 }),
      at(1, 5),
      progress('2', { step: 1, steps: 3, value: 0.6 }),
    );
    expect(shown).toEqual(['7/8', '1/5', '5/5', '1/3']);
  });

  test('a pass as long as an earlier one is passed on from its first step', () => {
    const passes = [4, 2, 4, 2].map((steps) => progress('2', { step: 1, steps }));
    expect(stepsOf(started('2'), ...passes)).toEqual(['1/4', '1/2', '1/4', '1/2']);
  });

  test('executed waits for names of its files, the node is finished all the same', () => {
    const { effects } = runScript(GRAPH, [
      started('3'),
      finished('3', { images: [{ x_asset: 'a' }] }),
      output(outputOf('a', '3'), fileRef('a')),
      finished('3', { images: [{ x_asset: 'a' }] }),
    ]);
    expect(typesOf(effects).slice(-3)).toEqual(['executing', 'progress_state', 'executed']);
  });

  test('what the stream lost is reported from the job', () => {
    const x_ui = { '1': { text: ['t'] }, '3': { images: [{ x_asset: 'a' }] } };
    const { effects } = runScript(GRAPH, [
      status('running', ['1']),
      snapshot({ x_ui: { '1': { text: ['t'] } }, x_cached_nodes: ['1'] }),
      settled({ outputs: [outputOf('a', '3')], x_ui }),
    ]);
    expect(executed(effects).map(({ node }) => node)).toEqual(['1', '3']);
  });

  test('a late joiner learns the node at work from the progress it is shown first', () => {
    const { effects } = runScript(GRAPH, [
      status('running', []),
      progress('2', { step: 3, steps: 9 }),
      preview('2'),
    ]);
    expect(typesOf(effects).slice(2)).toEqual([
      'progress_state',
      'executing',
      'progress_state',
      'progress',
      'binary 1',
    ]);
  });
});

describe('pictures', () => {
  test('a picture goes with the next step of its node', () => {
    const { effects } = runScript(GRAPH, [
      started('2'),
      preview('2', 'with-step'),
      progress('2', { step: 1, steps: 2 }),
    ]);
    expect(typesOf(effects).slice(-3)).toEqual(['progress_state', 'progress', 'binary 1']);
    expect(
      framesOf(effects, 'binary 4')
        .map(({ type }) => type)
        .slice(-3),
    ).toEqual(['progress_state', 'binary 4', 'progress']);
  });

  test('a step that does not come is not waited for', () => {
    const inputs = [started('2'), preview('2', 'with-step', 1000)];
    const { state } = runScript(GRAPH, inputs);
    expect(idleDueMs(state)).toBe(1250);
    expect(typesOf(runScript(GRAPH, [...inputs, idle(1249)]).effects)).not.toContain('binary 1');
    expect(typesOf(runScript(GRAPH, [...inputs, idle(1250)]).effects).at(-1)).toBe('binary 1');
    // A clock that was set back: not once more until it is as late as before.
    expect(typesOf(runScript(GRAPH, [...inputs, idle(10)]).effects).at(-1)).toBe('binary 1');
    expect(typesOf(runScript(GRAPH, [...inputs, finished('2')]).effects).slice(-2)).toEqual([
      'binary 1',
      'progress_state',
    ]);
  });

  test.each([
    ['of a node not yet announced', [started('1'), preview('2')]],
    ['of a node that is done', [started('1'), finished('1'), preview('1')]],
    ['of an unknown node while none runs', [status('running'), preview('ghost')]],
    ['after the end', [started('1'), settled(), preview('1')]],
  ])('%s are dropped', (_, inputs) => {
    expect(typesOf(runScript(GRAPH, inputs).effects)).not.toContain('binary 1');
  });

  test('a picture without a known node is shown on the node at work', () => {
    expect(framesOf(runScript(GRAPH, [started('1'), preview('ghost')]).effects).at(-1)).toEqual({
      type: 'binary 1',
      node: '1',
    });
  });

  test('a picture v1 has no tag for is dropped, whatever its label says', () => {
    const webp = {
      node_id: '1',
      content_type: 'image/jpeg',
      bytes: Uint8Array.of(0x52, 0x49, 0x46, 0x46),
    };
    const { effects } = runScript(GRAPH, [
      started('1'),
      { kind: 'event', event: { event: 'preview', data: webp }, atMs: 1 },
    ]);
    expect(typesOf(effects)).not.toContain('binary 1');
  });

  test('previews carry their bytes and are droppable, socket images name their asset and are not', () => {
    const { effects } = runScript(GRAPH, [
      started('2'),
      preview('2'),
      output(outputOf('a', '2', { x_websocket: true })),
    ]);
    const pictures = effects.flatMap((effect) =>
      effect.kind === 'picture' ? [effect.picture] : [],
    );
    expect(pictures).toEqual([
      { nodeId: '2', displayNodeId: '2', kind: 'unmarked', mime: 'image/jpeg', bytes: JPEG },
      { nodeId: '2', displayNodeId: '2', kind: 'result', assetId: 'a', contentType: 'image/png' },
    ]);
  });

  test('the previews of SaveImageWebsocket are results, also before the node is announced', () => {
    const graph = { ...GRAPH, '4': { class_type: 'SaveImageWebsocket', inputs: {} } };
    const { effects } = runScript(graph, [status('running'), progress('2'), preview('4')]);
    const pictures = effects.flatMap((effect) =>
      effect.kind === 'picture' ? [effect.picture] : [],
    );
    expect(pictures).toMatchObject([{ nodeId: '4', kind: 'result' }]);
  });

  test('texts name their node', () => {
    expect(framesOf(runScript(GRAPH, [started('1'), text('1', 'hi')]).effects).at(-1)).toEqual({
      type: 'binary 3',
      node: '1',
      data: 'hi',
    });
  });
});

describe('the end', () => {
  test.each(['succeeded', 'failed', 'canceled', 'expired'] as const)(
    'a status event %s is only a hint',
    (word) => {
      const { state } = runScript(GRAPH, [started('1'), status(word)]);
      expect(state.phase).toBe('started');
    },
  );

  test('a settled job that goes on is a poll', () => {
    expect(runScript(GRAPH, [settled({ status: 'running' })]).state.phase).toBe('started');
  });

  test.each([
    [
      'taken out of the queue',
      [status('queued'), settled({ status: 'canceled', started_at: null })],
    ],
    [
      'after canceling without running',
      [status('canceling'), settled({ status: 'canceled', started_at: null })],
    ],
  ])('cancelled before its start (%s): interrupted without a start', (_, inputs) => {
    const { effects } = runScript(GRAPH, inputs);
    expect(typesOf(effects)).toEqual(['execution_interrupted', 'executing']);
    expect(messageOf(effects, 'execution_interrupted')).toMatchObject({
      node_id: '',
      node_type: '',
      executed: [],
    });
  });

  test('interrupted names the submitted node when one that it made was at work', () => {
    const { effects } = runScript(GRAPH, [
      progress('2.0.0.1', { step: 1, steps: 2 }),
      settled({ status: 'canceled' }),
    ]);
    const { class_type } = GRAPH['2']!;
    expect(messageOf(effects, 'execution_interrupted')).toMatchObject({
      node_id: '2',
      node_type: class_type,
    });
  });

  test('interrupted names the node at work and the computed ones, not the cached ones', () => {
    const { effects } = runScript(GRAPH, [
      status('running', ['1']),
      finished('1', null),
      started('2'),
      finished('2'),
      started('3'),
      settled({ status: 'canceled' }),
    ]);
    expect(messageOf(effects, 'execution_interrupted')).toMatchObject({
      node_id: '3',
      node_type: 'Save',
      executed: ['2'],
    });
  });

  test.each([
    ['lost', { kind: 'lost', reason: 'gone', atMs: 9 } as const],
    ['expired', settled({ status: 'expired' })],
  ])('%s is an error that says so', (_, input) => {
    const { state, effects } = runScript(GRAPH, [input]);
    expect(typesOf(effects)).toEqual([
      'execution_start',
      'execution_cached',
      'execution_error',
      'executing',
    ]);
    expect(messageOf(effects, 'execution_error')).toMatchObject({ exception_type: 'ServiceError' });
    expect(messageOf(effects, 'execution_error')?.exception_message).toMatch(/^job lost: .*\n$/);
    expect(state.outcome).toBe('lost');
  });

  test('a failure names its node, the computed nodes, all nodes, and the literal inputs as submitted', () => {
    const graph = { ...GRAPH, '2': { class_type: 'Sample', inputs: { image: ['1', 0], seed: 7 } } };
    const error: JobError = {
      code: 'node_execution_error',
      message: 'no\n\n',
      node_id: '2.0.0.1',
      traceback: 'a\nValueError: no',
    };
    const { effects } = runScript(graph, [
      started('1'),
      finished('1'),
      started('2'),
      settled({ status: 'failed', error }),
    ]);
    expect(messageOf(effects, 'execution_error')).toEqual({
      prompt_id: 'prompt-1',
      node_id: '2',
      node_type: 'Sample',
      executed: ['1'],
      exception_message: 'no\n',
      exception_type: 'ValueError',
      traceback: ['a\n', 'ValueError: no\n'],
      current_inputs: { seed: [7] },
      current_outputs: ['1', '2', '3'],
      timestamp: 100,
    });
  });

  test('a failure without an error is reported all the same', () => {
    const { effects } = runScript(GRAPH, [started('2'), settled({ status: 'failed' })]);
    expect(messageOf(effects, 'execution_error')).toMatchObject({
      node_id: '2',
      exception_type: 'RuntimeError',
    });
  });
});

describe('frames stay below 1 MiB', () => {
  const MIB = 2 ** 20;
  const longest = (effects: ReturnType<typeof runScript>['effects']) =>
    Math.max(
      ...messages(effects).map((message) =>
        Buffer.byteLength(stringifyJson(message as unknown as Json)),
      ),
    );

  test.each(['x', 'é', '\n', '\u{1f600}'])(
    'a failure of a huge graph with endless texts of %j',
    (letter) => {
      const classes = Array.from({ length: 20_000 }, (_, i) => [`node-${i}`, 'X'] as const);
      const huge = letter.repeat(3_000_000);
      const error: JobError = {
        code: 'x',
        message: huge,
        node_id: 'node-1',
        traceback: `${huge}\n`.repeat(2),
        x_current_inputs: { a: [huge, 5, [huge]], b: [huge], [huge.slice(0, 100_000)]: [1] },
      };
      const { effects } = runScript(chain(...classes), [
        status(
          'running',
          classes.map(([id]) => id),
        ),
        started('node-1'),
        finished('node-2', { text: [huge] }),
        settled({ status: 'failed', error }),
      ]);
      expect(typesOf(effects)).toContain('execution_error');
      expect(longest(effects)).toBeLessThan(MIB);
    },
  );

  test('progress_state of a huge graph keeps the newest nodes', () => {
    const ids = Array.from({ length: 6000 }, (_, i) => `n${i}`);
    let state = initialProgress('prompt-1', chain(...ids.map((id) => [id, 'X'] as const)));
    const finished = {
      value: 1,
      max: 1,
      state: 'finished',
      hasReported: false,
      earlierMaxes: [],
    } as const;
    const runs = ids
      .slice(0, -1)
      .map((id) => [id, { ...finished, startedAtMs: 1, endedAtMs: 2 }] as const);
    state = { ...state, phase: 'started', cachedSent: true, runs: new Map(runs) };
    const { effects } = reduceProgress(state, started('n5999'));
    expect(longest(effects)).toBeLessThan(MIB);
    expect(messageOf(effects, 'progress_state')?.nodes).toHaveProperty('n5999');
    expect(messageOf(effects, 'progress_state')?.nodes).not.toHaveProperty('n0');
  });

  test('ordinary texts are not touched', () => {
    const text_ = 'line é\n'.repeat(500);
    const { effects } = runScript(GRAPH, [
      finished('1', { text: [text_] }),
      settled({
        status: 'failed',
        error: { code: 'x', message: text_, x_current_inputs: { a: [text_] } },
      }),
    ]);
    expect(executed(effects)[0]?.output).toEqual({ text: [text_] });
    expect(messageOf(effects, 'execution_error')).toMatchObject({
      exception_message: text_,
      current_inputs: { a: [text_] },
    });
  });
});
