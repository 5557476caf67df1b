import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { frameSummary } from '../support/golden/golden-frame-summary.ts';
import { type GoldenServer, startGoldenServer } from '../support/golden/golden-server.ts';
import { ownFrame } from '../support/golden/golden-normalize.ts';
import { type GoldenSocket, openGoldenSocket } from '../support/golden/golden-socket.ts';

const SERVER_ARGS = {
  previews: ['--preview-method', 'auto'],
  silent: ['--preview-method', 'none'],
} as const;
const servers = new Map<string, GoldenServer>();

beforeAll(async () => {
  const inputs = new Map([['corrupt.png', Buffer.from('no picture')]]);
  for (const [name, args] of Object.entries(SERVER_ARGS))
    servers.set(name, await startGoldenServer(args, inputs));
});
afterAll(() => Promise.all([...servers.values()].map((server) => server.close())));

/**
 * v1's transcripts write node 1 with two steps before an output node 2; this is ours of that shape.
 * Ours sends previews by time and with the last step: with one step there is exactly one.
 */
const stepped = (seed: number, steps = 2) => ({
  '1': {
    class_type: 'ReactionDiffusion',
    inputs: { width: 64, height: 64, seed, steps, feed: 0.055, kill: 0.062 },
  },
  '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
});

const START = ['S(1)', 'S(1)', 'execution_start', 'execution_cached[]', 'PS{1:r 0/1}', 'X(1)'];
const outputAfter = (steps: number) => [
  `PS{1:f ${steps}/${steps}}`,
  `PS{1:f ${steps}/${steps},2:r 0/1}`,
  'X(2)',
  'executed(2)',
  `PS{1:f ${steps}/${steps},2:f 1/1}`,
];
const END = ['execution_success', 'S(0)', 'X(null)'];
const JPEG = 'binary 1 jpeg tag, jpeg bytes';

describe('a sampler-like node of our own is reported in the order of the v1 transcripts', () => {
  test.each([
    {
      title: 'T2: each step, then the output node, then the end',
      server: 'silent',
      flags: {},
      seed: 1,
      steps: 2,
      told: ['PS{1:r 1/2}', 'P(1 1/2)', 'PS{1:r 2/2}', 'P(1 2/2)'],
    },
    {
      title: 'T7: previews of type 1 after the progress of their step',
      server: 'previews',
      flags: {},
      seed: 2,
      steps: 1,
      told: ['PS{1:r 1/1}', 'P(1 1/1)', JPEG],
    },
    {
      title: 'T8: negotiated previews of type 4 before it',
      server: 'previews',
      flags: { supports_preview_metadata: true },
      seed: 3,
      steps: 1,
      told: ['PS{1:r 1/1}', 'binary 4 jpeg', 'P(1 1/1)'],
    },
  ])('$title', async ({ server, flags, seed, steps, told }) => {
    const frames = await run(server, { prompt: stepped(seed, steps), flags });
    const expected = [...START, ...told, ...outputAfter(steps), ...END];
    expect(frames).toEqual(['S(0)+sid', 'feature_flags', ...expected]);
  });

  test('T3: a rerun names the cached nodes and executes none', async () => {
    await run('silent', { prompt: stepped(4), flags: {} });
    const frames = await run('silent', { prompt: stepped(4), flags: {} });
    const cached = ['execution_cached["1","2"]', 'executed(2)', 'PS{2:f 1/1}'];
    expect(frames).toEqual([
      'S(0)+sid',
      'feature_flags',
      'S(1)',
      'S(1)',
      'execution_start',
      ...cached,
      ...END,
    ]);
  });
});

test('T21: an output made before the failure keeps its executed and its place in history', async () => {
  const prompt = {
    '1': { class_type: 'PreviewAny', inputs: { source: 'made' } },
    '2': { class_type: 'LoadImage', inputs: { image: 'corrupt.png' } },
    '3': { class_type: 'PreviewImage', inputs: { images: ['2', 0] } },
  };
  const frames = await run('silent', { prompt, flags: {}, promptId: 'partly' });
  expect(frames.slice(-4)).toEqual(['X(2)', 'execution_error', 'S(0)', 'X(null)']);
  expect(frames).toContain('executed(1)');
  const response = await fetch(`http://127.0.0.1:${servers.get('silent')?.port}/history/partly`);
  const { partly } = (await response.json()) as { partly: { outputs: unknown; status: object } };
  expect(partly.outputs).toEqual({ '1': { text: ['made'] } });
  expect(partly.status).toMatchObject({ status_str: 'error', completed: false });
});

test('T15: a socket that takes over mid-run hears where the run is and every step the other missed', async () => {
  const port = servers.get('silent')?.port;
  const url = `ws://127.0.0.1:${port}/ws?clientId=back`;
  const first = await openGoldenSocket(url, {});
  const steps = { image: ['1', 0], steps: 20, delay_ms: 20, preview: false };
  const prompt = {
    '1': { class_type: 'EmptyImage', inputs: { width: 8, height: 8, batch_size: 1, color: 0 } },
    '2': { class_type: 'GoldenSteps', inputs: steps },
    '3': { class_type: 'PreviewImage', inputs: { images: ['2', 0] } },
  };
  await post(port, { prompt, client_id: 'back' });
  await until(first, 'P(2 3/20)');
  await first.close();
  const second = await openGoldenSocket(url, {});
  await until(second, 'X(null)');
  const ticks = [...summariesOf(first), ...summariesOf(second)].filter((summary) =>
    summary.startsWith('P(2'),
  );
  expect(ticks).toEqual(Array.from({ length: 20 }, (_, i) => `P(2 ${i + 1}/20)`));
  expect(summariesOf(second).slice(0, 2)).toEqual(['S(1)+sid', 'X(2)']);
  await second.close();
});

async function run(
  name: string,
  order: { readonly prompt: object; readonly flags: object; readonly promptId?: string },
): Promise<string[]> {
  const port = servers.get(name)?.port;
  const socket = await openGoldenSocket(`ws://127.0.0.1:${port}/ws?clientId=order`, {});
  const flags = { type: 'feature_flags', data: order.flags };
  socket.send({ t_ms: 0, socket: 'order', json: flags } as Parameters<GoldenSocket['send']>[0]);
  await until(socket, 'feature_flags');
  const body = {
    prompt: order.prompt,
    client_id: 'order',
    ...(order.promptId && { prompt_id: order.promptId }),
  };
  await post(port, body);
  await until(socket, 'X(null)');
  await socket.settle();
  await socket.close();
  return summariesOf(socket);
}

async function post(port: number | undefined, body: object): Promise<void> {
  const url = `http://127.0.0.1:${port}/prompt`;
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  expect(response.status).toBe(200);
}

async function until(socket: GoldenSocket, summary: string): Promise<void> {
  const deadlineMs = performance.now() + 20_000;
  while (!summariesOf(socket).includes(summary)) {
    if (performance.now() > deadlineMs)
      throw new Error(`no ${summary} in ${summariesOf(socket).join(' ')}`);
    await socket.nextFrame(1000);
  }
}

function summariesOf(socket: GoldenSocket): string[] {
  return socket.frames.map((frame) => frameSummary(ownFrame(frame)));
}
