import { useEffect, useState } from 'preact/hooks';
import { openSocket } from '../lib/socket.ts';
import { call, getJson, postJson } from '../lib/server.ts';
import { connection, tellError } from '../state.ts';

/** Grows a picture step by step, with previews; it needs no model. */
const SAMPLE = {
  '1': {
    class_type: 'ReactionDiffusion',
    inputs: { width: 320, height: 320, seed: 7, steps: 160, feed: 0.055, kill: 0.062 },
    _meta: { title: 'Grow a pattern' },
  },
  '2': { class_type: 'ImageInvert', inputs: { image: ['1', 0] }, _meta: { title: 'Invert' } },
  '3': {
    class_type: 'ImageBlend',
    inputs: { image1: ['1', 0], image2: ['2', 0], blend_factor: 0.35, blend_mode: 'overlay' },
    _meta: { title: 'Blend both' },
  },
  '4': {
    class_type: 'SaveImage',
    inputs: { images: ['3', 0], filename_prefix: 'sample/pattern' },
    _meta: { title: 'Save' },
  },
};
const CLASSES = Object.values(SAMPLE).map(({ class_type: type }) => type);
const ENDS = new Set(['execution_success', 'execution_error', 'execution_interrupted']);
const CLOSE_AFTER_MS = 120_000;

let isRunnable: Promise<boolean> | undefined;

function canRunSample(): Promise<boolean> {
  isRunnable ??= Promise.all(
    CLASSES.map((type) =>
      getJson<Record<string, unknown>>(`object_info/${type}`).then((info) => type in info),
    ),
  ).then(
    (found) => found.every(Boolean),
    () => {
      isRunnable = undefined;
      return false;
    },
  );
  return isRunnable;
}

/** True when the upstream has the nodes of the sample. */
export function useCanRunSample(): boolean {
  const [can, setCan] = useState(false);
  const isOpen = connection.value.is === 'open';
  useEffect(() => {
    if (isOpen) void canRunSample().then(setCan);
  }, [isOpen]);
  return can;
}

/**
 * Runs the sample as a v1 client does: opens a socket, submits the prompt, and waits for its end.
 * Resolves with the id of the prompt.
 */
export async function runSample(): Promise<string | undefined> {
  const clientId = `sample-${Math.random().toString(36).slice(2, 10)}`;
  // The inspector then has its calls, also when it is opened later.
  await call('holdover/api/traffic').catch(() => {});
  const socket = openSocket({ clientId, sample: '1' });
  try {
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error('The socket of the sample could not be opened.'));
    });
    const seed = Math.floor(Math.random() * 2 ** 32);
    const prompt = { ...SAMPLE, '1': { ...SAMPLE['1'], inputs: { ...SAMPLE['1'].inputs, seed } } };
    const body = {
      prompt,
      client_id: clientId,
      extra_data: {
        extra_pnginfo: { workflow: { name: 'Sample: grow a pattern', nodes: [], links: [] } },
      },
    };
    const response = await postJson('prompt', body, 'sample');
    const { prompt_id: promptId } = (await response.json()) as { prompt_id: string };
    const timer = setTimeout(() => socket.close(), CLOSE_AFTER_MS);
    socket.onmessage = ({ data }) => {
      if (typeof data !== 'string' || !data.includes(promptId)) return;
      const { type } = JSON.parse(data) as { type: string };
      if (!ENDS.has(type)) return;
      clearTimeout(timer);
      socket.close();
    };
    return promptId;
  } catch (error) {
    socket.close();
    tellError(error);
    return undefined;
  }
}
