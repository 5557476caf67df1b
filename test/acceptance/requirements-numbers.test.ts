import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { interrupt, pngText, untilRunning } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Recorder, connect } from '../support/clients/v1-client.ts';
import { growing } from '../support/graphs/workflows.ts';

// Numbers survive to the digit from the POST to everything a client reads afterwards. Answers are
// compared as text: JSON.parse would round them.

const LARGEST_SEED = '18446744073709551615';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const holdover = useHoldover();
let socket: Recorder;

beforeAll(async () => {
  socket = await connect(holdover.wsUrl);
});
afterAll(() => socket.close());

const textOf = async (path: string): Promise<string> => (await fetch(holdover.url + path)).text();

/** Posts a growing workflow whose seed and extra data are these very digits. */
async function post(options: {
  seed: string;
  steps?: number;
  note?: string;
  prefix?: string;
}): Promise<string> {
  const { seed, steps = 2, note = '0.1', prefix = 'digits' } = options;
  const graph = JSON.stringify(growing({ seed: 123454321, steps, prefix })).replace(
    '123454321',
    seed,
  );
  const workflow = `{"nodes":[{"id":1,"widgets_values":[${note}]}]}`;
  const extra = `{"extra_pnginfo":{"workflow":${workflow}},"note":${note}}`;
  const body = `{"prompt":${graph},"client_id":"test-client","extra_data":${extra}}`;
  const response = await fetch(`${holdover.url}/prompt`, { method: 'POST', body });
  expect(response.status).toBe(200);
  return ((await response.json()) as { prompt_id: string }).prompt_id;
}

async function pictureOf(prefix: string): Promise<Buffer> {
  const response = await fetch(`${holdover.url}/view?filename=${prefix}_00001_.png`);
  return Buffer.from(await response.arrayBuffer());
}

test.each(['18446744073709551615', '9007199254740993', '0'])(
  'seed %s is the same in /queue, /history, /api/jobs and the PNG’s prompt',
  async (seed) => {
    const running = await post({ seed, steps: 10_000 });
    await untilRunning(holdover.url);
    expect(await textOf('/queue')).toMatch(new RegExp(`"seed": ?${seed}[,}]`));
    await interrupt(holdover.url);
    await socket.untilDone(running);
    const prefix = `seed-${seed}`;
    const id = await post({ seed, prefix });
    await socket.untilDone(id);
    for (const path of [
      `/history/${id}`,
      '/history?max_items=1',
      `/api/jobs/${id}`,
      `/api/history_v2/${id}`,
    ]) {
      expect(await textOf(path)).toMatch(new RegExp(`"seed": ?${seed}[,}]`));
    }
    expect(pngText(await pictureOf(prefix), 'prompt')).toContain(`"seed": ${seed}`);
  },
);

test('prompts far back in the queue show, and run, what was sent', async () => {
  const first = await post({ seed: '1', steps: 10_000 });
  await untilRunning(holdover.url);
  const seeds = Array.from({ length: 24 }, (_, i) => String(18446744073709551615n - BigInt(i)));
  const ids: string[] = [];
  for (const [i, seed] of seeds.entries()) {
    ids.push(await post({ seed, note: '1e400', prefix: `far-${i}` }));
  }
  const queue = JSON.parse(await textOf('/queue')) as { queue_pending: unknown[][] };
  expect(queue.queue_pending.map(([, id]) => id)).toEqual(ids);
  expect(queue.queue_pending.at(-1)).toHaveLength(5);
  const shown = [...(await textOf('/queue')).matchAll(/"seed": ?(\d{18,})/g)];
  expect(shown.map(([, seed]) => seed)).toEqual(seeds);
  expect(await textOf(`/api/jobs/${ids.at(-1)}`)).toContain('1e400');
  await interrupt(holdover.url);
  for (const id of [first, ...ids]) await socket.untilDone(id);
  for (const [i, seed] of seeds.entries()) {
    expect(await textOf(`/history/${ids[i]}`)).toMatch(new RegExp(`"seed": ?${seed}[,}]`));
  }
  expect(pngText(await pictureOf('far-23'), 'prompt')).toContain(`"seed": ${seeds[23]}`);
});

describe.each([
  ['0.1', /0\.1/],
  ['5.0', /5(\.0)?/],
  ['1e400', /1e400/i],
  ['0.30000000000000004', /0\.30000000000000004/],
  ['-0.0625', /-0\.0625/],
  [LARGEST_SEED, new RegExp(LARGEST_SEED)],
])('a client’s own %s in extra_data', (note, expected) => {
  test('stays what it was in /history and in the PNG’s workflow', async () => {
    const prefix = `note-${note.replaceAll('.', '_')}`;
    const id = await post({ seed: '5', note, prefix });
    await socket.untilDone(id);
    const whole = new RegExp(`[:\\[] ?${expected.source}[,}\\]]`, expected.flags);
    expect(await textOf(`/history/${id}`)).toMatch(whole);
    expect(pngText(await pictureOf(prefix), 'workflow')).toMatch(whole);
  });
});
