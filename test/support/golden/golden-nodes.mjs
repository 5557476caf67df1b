/**
 * The node classes of which the recordings speak, behaving as their README says, beside the whole
 * library. Worker threads load this file as it is, so it is JavaScript and uses the build.
 */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { ALL_NODES as LIBRARY } from '../../../dist/nodes/library.js';
import { NodeFailure } from '../../../dist/nodes/node.js';

/** Loads as CommonJS: as ESM it takes three times as long, in each thread. */
const require = createRequire(import.meta.url);

const node = (name, inputs, run, more) => ({
  name,
  displayName: name,
  description: '',
  category: 'golden',
  pythonModule: 'custom_nodes.golden_test_nodes',
  style: 'legacy',
  required: { image: ['IMAGE'], ...inputs },
  outputs: [{ type: 'IMAGE' }],
  run,
  ...more,
});

const thumbnail = async ({ width, height, channels, data }) => {
  const bytes = Uint8Array.from(data.subarray(0, width * height * channels), (v) => v * 255);
  const picture = require('sharp')(bytes, { raw: { width, height, channels } });
  return new Uint8Array(await picture.resize(64, 64, { fit: 'inside' }).jpeg().toBuffer());
};

/** On the clock of its thread a step takes exactly its delay: by that clock the engine shows one every 100 ms. */
const steps = async ({ image, steps: given, delay_ms: delayMs, preview }, context) => {
  const count = Number(given);
  const begunMs = performance.now();
  try {
    for (let step = 1; step <= count; step++) {
      await sleep(Number(delayMs));
      performance.now = () => begunMs + step * Number(delayMs);
      context.check();
      if (preview) context.preview(await thumbnail(image), 'image/jpeg');
      context.progress(step, count);
    }
    return { outputs: [image] };
  } finally {
    delete performance.now;
  }
};

/** The engine runs these as one node each: it does not expand or block, and runs nothing side by side. */
const expand = ({ image }, context) => {
  const data = image.data.map((value) => 1 - value);
  return steps({ image: { ...image, data }, steps: 2, delay_ms: 20, preview: false }, context);
};

const after = async ({ image, delay_ms: delayMs }) => {
  await sleep(Number(delayMs));
  return { outputs: [image] };
};

const fail = ({ message }) => {
  throw new NodeFailure('ValueError', message);
};

const GOLDEN = [
  node(
    'GoldenSteps',
    {
      steps: ['INT', { default: 3, min: 1, max: 1000 }],
      delay_ms: ['INT', { default: 20, min: 0, max: 10_000 }],
      preview: ['BOOLEAN', { default: false }],
    },
    steps,
  ),
  node('GoldenFail', { message: ['STRING', { default: '' }] }, fail),
  node('GoldenAsync', { delay_ms: ['INT', { default: 100, min: 0, max: 10_000 }] }, after),
  node('GoldenExpand', {}, expand),
  node(
    'GoldenBlock',
    { message: ['STRING', { default: '' }], silent: ['BOOLEAN', { default: false }] },
    ({ image }) => ({ outputs: [image] }),
  ),
  node('GoldenSink', {}, () => ({ outputs: [] }), { outputs: [], outputNode: true }),
];

/** Slower than any interrupt, which on a busy machine came only after the first blur of the recording. */
const blur = LIBRARY.get('ImageBlur');
const slowBlur = {
  ...blur,
  run(inputs, context) {
    for (let times = 0; times < 100; times++) blur.run(inputs, context);
    return blur.run(inputs, context);
  },
};

const OWN = [slowBlur, ...GOLDEN];

export const ALL_NODES = new Map([...LIBRARY, ...OWN.map((def) => [def.name, def])]);
