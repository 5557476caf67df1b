import { describe, expect, test } from 'vitest';
import type { ProgressInput } from '../../src/translate/progress/progress-state.ts';
import type { Graph, JobError } from '../../src/protocol/v2.ts';
import {
  chain,
  comparable,
  fileRef,
  filesOf,
  finished,
  framesOf,
  jobOf,
  output,
  outputOf,
  runScript,
  preview,
  progress,
  recordedFrames,
  settled,
  started,
  status,
  text,
} from './script.ts';

type Script = {
  readonly scenario: string;
  readonly nth: number;
  readonly graph: Graph;
  readonly inputs: readonly ProgressInput[];
  readonly pictures?: 'binary 4';
};

const run = (node: string): ProgressInput[] => [started(node), progress(node), finished(node)];
const images = (...ids: string[]) => ({ images: ids.map((id) => ({ x_asset: id })) });
const begin = (...cached: string[]): ProgressInput[] => [
  status('queued'),
  status('running'),
  status('running', cached),
  progress(null),
];
const saved = (id: string, node: string, name: string): ProgressInput[] => [
  started(node),
  output(outputOf(id, node, { name }), fileRef(name)),
  finished(node, images(id)),
];
const PLAIN = chain(['1', 'EmptyImage'], ['2', 'ImageInvert'], ['3', 'SaveImage']);
const STEPPED = chain(['1', 'EmptyImage'], ['2', 'GoldenSteps'], ['3', 'PreviewImage']);
const WEBSOCKET = chain(['1', 'EmptyImage'], ['9', 'SaveImageWebsocket']);
const golden = outputOf('a', '3', { name: 'golden_00001_.png' });

const steps: readonly ProgressInput[] = [1, 2, 3].flatMap((at) => [
  preview('2', 'with-step'),
  progress('2', { step: at, steps: 3 }),
]);
const temporary = outputOf('t', '3', { name: 'ComfyUI_temp_abcda_00001_.png', x_temp: true });
const previewRun: readonly ProgressInput[] = [
  ...begin(),
  ...run('1'),
  started('2'),
  ...steps,
  finished('2'),
  started('3'),
  output(temporary, fileRef(temporary.name, 'temp')),
  finished('3', images('t')),
  settled({ outputs: [temporary] }, new Map([['t', fileRef(temporary.name, 'temp')]])),
];

const socketImage = (id: string, at: number, of: number): ProgressInput[] => [
  output({ ...outputOf(id, '9', { x_websocket: true }), x_with_step: true }),
  progress('9', { step: at, steps: of }),
];

const corrupt: JobError = {
  code: 'node_execution_error',
  message: "cannot identify image file '<path>/input/corrupt.png'",
  node_id: '1',
  class_type: 'LoadImage',
  traceback: 'at x\nPIL.UnidentifiedImageError: cannot identify',
  x_exception_type: 'PIL.UnidentifiedImageError',
  x_current_inputs: { image: ['corrupt.png'] },
};
const animated = [
  outputOf('w', '3', { name: 'animw_00001_.webp', content_type: 'image/webp' }),
  outputOf('p', '2', { name: 'anim_00001_.png' }),
  outputOf('m', '5', { name: 'ComfyUI_temp_abcda_00001_.png', x_temp: true }),
];

const SCRIPTS: readonly Script[] = [
  {
    scenario: 'normal-run',
    nth: 0,
    graph: PLAIN,
    inputs: [
      ...begin(),
      ...run('1'),
      ...run('2'),
      ...saved('a', '3', golden.name),
      status('succeeded'),
      settled({ outputs: [golden] }),
    ],
  },
  {
    scenario: 'cached-rerun',
    nth: 1,
    graph: PLAIN,
    inputs: [
      ...begin('1', '2', '3'),
      output(golden, fileRef(golden.name)),
      finished('3', images('a')),
      settled({ outputs: [golden], x_cached_nodes: ['1', '2', '3'], x_ui: { '3': images('a') } }),
    ],
  },
  {
    scenario: 'cached-rerun',
    nth: 2,
    graph: { ...PLAIN, '4': { class_type: 'PreviewAny', inputs: { source: 'x' } } },
    inputs: [
      ...begin('1', '2', '3'),
      output(golden, fileRef(golden.name)),
      finished('3', images('a')),
      started('4'),
      finished('4', { text: ['x'] }),
      settled({ outputs: [golden], x_ui: { '4': { text: ['x'] }, '3': images('a') } }),
    ],
  },
  {
    scenario: 'identical-nodes',
    nth: 0,
    graph: Object.fromEntries(
      ['1', '2', '3', '4', '5'].map((id) => [id, { class_type: 'X', inputs: {} }]),
    ),
    inputs: [
      ...begin(),
      ...run('1'),
      ...saved('s', '5', 'same_00001_.png'),
      finished('3', images('s')),
      finished('2', null),
      finished('4', images('s')),
      settled({
        outputs: [outputOf('s', '5', { name: 'same_00001_.png' })],
        x_ui: { '3': images('s'), '4': images('s'), '5': images('s') },
      }),
    ],
  },
  { scenario: 'preview-type1', nth: 0, graph: STEPPED, inputs: previewRun },
  { scenario: 'preview-type4', nth: 0, graph: STEPPED, inputs: previewRun, pictures: 'binary 4' },
  {
    scenario: 'save-image-websocket',
    nth: 0,
    graph: WEBSOCKET,
    inputs: [
      ...begin(),
      ...run('1'),
      started('9'),
      progress('9'),
      ...socketImage('a', 0, 1),
      finished('9'),
      settled(),
    ],
  },
  {
    scenario: 'save-image-websocket',
    nth: 1,
    graph: WEBSOCKET,
    inputs: [
      ...begin(),
      ...run('1'),
      started('9'),
      ...[0, 1, 2].flatMap((at) => socketImage(`s${at}`, at, 3)),
      finished('9'),
      settled({ outputs: [0, 1, 2].map((at) => outputOf(`s${at}`, '9', { x_websocket: true })) }),
    ],
  },
  {
    scenario: 'fail-corrupt-file',
    nth: 0,
    graph: chain(['1', 'LoadImage'], ['2', 'SaveImage']),
    inputs: [
      ...begin(),
      started('1'),
      progress('1'),
      status('failed'),
      settled({ status: 'failed', error: corrupt }),
    ],
  },
  {
    scenario: 'interrupt-core',
    nth: 0,
    graph: chain(['1', 'EmptyImage'], ['2', 'ImageBlur'], ['3', 'ImageBlur'], ['4', 'SaveImage']),
    inputs: [
      ...begin(),
      ...run('1'),
      started('2'),
      status('canceling'),
      status('canceled'),
      settled({ status: 'canceled' }),
    ],
  },
  {
    scenario: 'text-frame',
    nth: 0,
    graph: chain(['1', 'EmptyImage'], ['node-x', 'GetImageSize'], ['3', 'PreviewAny']),
    inputs: [
      ...begin(),
      ...run('1'),
      started('node-x'),
      text('node-x', 'width: 24, height: 16\n batch size: 3'),
      finished('node-x'),
      started('3'),
      finished('3', { text: ['16'] }),
      settled({ x_ui: { '3': { text: ['16'] } } }),
    ],
  },
  {
    scenario: 'sink-without-ui',
    nth: 0,
    graph: chain(['1', 'EmptyImage'], ['2', 'GoldenSink']),
    inputs: [...begin(), ...run('1'), ...run('2'), settled()],
  },
  {
    scenario: 'sink-without-ui',
    nth: 1,
    graph: chain(['1', 'EmptyImage'], ['2', 'GoldenSink']),
    inputs: [...begin('1', '2'), finished('2', null), settled()],
  },
];

describe("a run's frames are those of the recorded server", () => {
  test.each(SCRIPTS)('$scenario, prompt $nth', ({ scenario, nth, graph, inputs, pictures }) => {
    const { effects } = runScript(graph, inputs);
    const recorded = recordedFrames(scenario, nth);
    expect(recorded.length).toBeGreaterThan(5);
    expect(comparable(framesOf(effects, pictures))).toEqual(comparable(recorded));
  });

  test('animated: lists beside files are kept as the node gave them', () => {
    const graph: Graph = Object.fromEntries(
      ['1', '2', '3', '4', '5'].map((id) => [id, { class_type: 'X', inputs: {} }]),
    );
    const ui = (id: string) => ({ ...images(id), animated: [true] });
    const files = new Map([
      ...filesOf(jobOf({ outputs: animated })),
      ['m', fileRef(animated[2]?.name ?? '', 'temp')],
    ]);
    const { effects } = runScript(graph, [
      ...begin(),
      settled(
        {
          outputs: animated,
          x_ui: { '3': ui('w'), '2': ui('p'), '5': { ...images('m'), animated: [false] } },
        },
        files,
      ),
    ]);
    const executed = (frames: readonly { type: string }[]) =>
      comparable(frames.filter(({ type }) => type === 'executed')).map((frame) =>
        JSON.stringify(frame),
      );
    expect(executed(framesOf(effects)).toSorted()).toEqual(
      executed(recordedFrames('animated', 0)).toSorted(),
    );
  });
});

describe('the fields of a failure come in the recorded order', () => {
  test.each(['fail-corrupt-file', 'fail-test-node'])('%s', (scenario) => {
    const recorded = recordedFrames(scenario, 0).find(({ type }) => type === 'execution_error');
    const { effects } = runScript(chain(['1', 'LoadImage'], ['2', 'SaveImage']), [
      ...begin(),
      started('1'),
      settled({ status: 'failed', error: corrupt }),
    ]);
    const ours = framesOf(effects).find(({ type }) => type === 'execution_error');
    expect(Object.keys(ours?.data ?? {})).toEqual(Object.keys(recorded?.data ?? {}));
  });
});
