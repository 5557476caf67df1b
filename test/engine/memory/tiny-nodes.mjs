/**
 * Node classes for engine tests. Worker threads load this file as it is, so it is JavaScript
 * and takes its classes from the build.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { NodeFailure } from '../../../dist/nodes/node.js';

const neverNotified = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread as a computation does, without its processor time. */
const block = (ms) => void Atomics.wait(neverNotified, 0, 0, ms);

const image = (value, side = 2) => ({
  kind: 'image',
  batch: 1,
  height: side,
  width: side,
  channels: 3,
  data: new Float32Array(side * side * 3).fill(value),
});

const node = (name, required, outputs, run, more) => ({
  name,
  displayName: name,
  description: '',
  category: 'test',
  pythonModule: 'test',
  style: 'legacy',
  required,
  outputs,
  run,
  ...more,
});

const save = async (context, text, more = {}) => {
  const start = `${more.prefix ?? 'tiny'}_`;
  const file = {
    bytes: Buffer.from(text),
    name: { series: start, start, end: '_.txt' },
    subfolder: '',
    contentType: 'text/plain',
    temp: false,
  };
  return await context.save({ ...file, ...more.file });
};

const NODES = [
  node('Number', { value: ['INT', {}] }, [{ type: 'INT' }], ({ value }) => ({ outputs: [value] })),
  node('Add', { a: ['INT', {}], b: ['INT', {}] }, [{ type: 'INT' }], ({ a, b }) => ({
    outputs: [a + b],
  })),
  node(
    'Show',
    { value: ['*'] },
    [],
    ({ value }) => ({ outputs: [], ui: { text: [String(value)] } }),
    {
      outputNode: true,
    },
  ),
  node(
    'Glance',
    { value: ['*'] },
    [{ type: 'INT' }],
    ({ value }) => ({ outputs: [value], ui: { text: [String(value)] } }),
    { hasIntermediateOutput: true },
  ),
  node('Sink', { value: ['*'] }, [], () => ({ outputs: [] }), { outputNode: true }),
  node(
    'Save',
    { value: ['*'], prefix: ['STRING', {}] },
    [],
    async ({ value, prefix }, context) => ({
      outputs: [],
      ui: { files: [await save(context, String(value), { prefix })] },
    }),
    { outputNode: true },
  ),
  node(
    'Meta',
    { value: ['*'] },
    [],
    async (_, context) => ({
      outputs: [],
      ui: { prompt: [context.promptText], extra: [context.extraPngInfo] },
    }),
    { outputNode: true },
  ),
  node(
    'Socket',
    { value: ['*'] },
    [],
    async ({ value }, context) => {
      await save(context, String(value), { file: { temp: true, websocket: true } });
      context.progress(0, 1);
      return { outputs: [] };
    },
    { outputNode: true, alwaysRuns: true },
  ),
  node(
    'Steps',
    { value: ['INT', {}], steps: ['INT', {}] },
    [{ type: 'INT' }],
    ({ value, steps }, context) => {
      for (let step = 1; step <= steps; step++) {
        context.preview(Uint8Array.of(step), 'image/jpeg');
        context.progress(step, steps);
      }
      return { outputs: [value] };
    },
  ),
  node('Spin', { seed: ['INT', {}] }, [{ type: 'INT' }], (_, context) => {
    context.progress(1, 2);
    for (;;) {
      context.check();
      block(1);
    }
  }),
  node('Deaf', { seed: ['INT', {}] }, [{ type: 'INT' }], (_, context) => {
    context.progress(1, 2);
    for (;;);
  }),
  node('Busy', { ms: ['INT', {}] }, [{ type: 'INT' }], ({ ms }) => {
    block(ms);
    return { outputs: [ms] };
  }),
  node('Gate', { path: ['STRING', {}] }, [{ type: 'INT' }], async ({ path }, context) => {
    const { existsSync } = await import('node:fs');
    context.progress(1, 2);
    while (!existsSync(path)) {
      context.check();
      await sleep(5);
    }
    return { outputs: [1] };
  }),
  node('Image', { value: ['FLOAT', {}] }, [{ type: 'IMAGE' }], ({ value }) => ({
    outputs: [image(value)],
  })),
  node('Hungry', { bytes: ['INT', {}] }, [{ type: 'INT' }], ({ bytes }, context) => {
    context.reserve(bytes);
    return { outputs: [1] };
  }),
  node('Fail', { image: ['*'], message: ['STRING', {}] }, [{ type: 'INT' }], ({ message }) => {
    throw new NodeFailure('ValueError', message);
  }),
  node('Bug', { seed: ['INT', {}] }, [{ type: 'INT' }], () => undefined.nothing),
  node('Crash', { seed: ['INT', {}] }, [{ type: 'INT' }], () => process.exit(7)),
  node('Always', { value: ['INT', {}] }, [{ type: 'INT' }], ({ value }) => ({ outputs: [value] }), {
    alwaysRuns: true,
  }),
  node(
    'Load',
    { file: [[], { image_upload: true }] },
    [{ type: 'STRING' }],
    async ({ file }, context) => ({
      outputs: [Buffer.from(await context.readFile(file)).toString()],
    }),
    { fileInputs: ['file'] },
  ),
];

export const ALL_NODES = new Map(NODES.map((def) => [def.name, def]));
