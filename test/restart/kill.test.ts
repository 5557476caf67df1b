// kill -9 at any moment: what was acknowledged is there afterwards, once, and whole.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { LASTING_STEPS, flat, lasting } from '../support/graphs/workflows.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 60_000 });

let dataDir: string;
let server: Holdover;

beforeEach(async () => {
  dataDir = await tempFolder('kill');
  server = await startHoldover({ dataDir });
});
afterEach(() => server.dispose());

async function restart(): Promise<void> {
  await server.kill9();
  server = await startHoldover({ dataDir });
}

type Entry = {
  prompt: [number, string];
  outputs: { [node: string]: { images?: { filename: string; subfolder: string; type: string }[] } };
  status: { status_str: string; completed: boolean };
};

function history(): Promise<{ [promptId: string]: Entry }> {
  return getJson(`${server.url}/history`);
}

function imagesOf(entry: Entry | undefined) {
  return Object.values(entry?.outputs ?? {}).flatMap(({ images = [] }) => images);
}

test('one that ran and those that waited run to their end, in their order, under their numbers', async () => {
  const before = await connect(server.wsUrl, { clientId: 'patient' });
  const send = async (body: object) =>
    (await postPrompt(server.url, { client_id: 'patient', ...body })).body;
  const runs = await send({
    prompt: lasting({ prefix: 'runs' }),
    prompt_id: 'runs',
  });
  const third = await send({ prompt: flat({ prefix: 'third' }), number: 7.5 });
  // The recorded graph has the number that the text is coerced to.
  const secondBody = { prompt: withTextColor(flat({ prefix: 'second' })), prompt_id: 'second' };
  const second = await send(secondBody);
  const first = await send({ prompt: flat({ prefix: 'first' }), front: true });
  await before.until((frame) => frame.kind === 'text' && frame.type === 'progress');
  const told = new Map([runs, third, second, first].map((each) => [each.prompt_id, each.number]));
  const queueBefore = await getJson(`${server.url}/queue`);

  await restart();
  const after = await connect(server.wsUrl, { clientId: 'patient' });
  const queue = await getJson(`${server.url}/queue`);
  expect([...queue.queue_running, ...queue.queue_pending]).toEqual(
    expect.arrayContaining([...queueBefore.queue_running, ...queueBefore.queue_pending]),
  );
  expect((await send(secondBody)).number).toBe(second.number);
  for (const promptId of told.keys()) await after.untilDone(promptId, 40_000);
  const ends = endsOf(after);
  expect(ends.filter((id) => id !== 'runs')).toEqual(
    [first, second, third].map((each) => each.prompt_id),
  );
  expect(after.outline('runs')).toEqual(
    expect.arrayContaining([
      'execution_start',
      `progress:${LASTING_STEPS}/${LASTING_STEPS}`,
      'executed:9',
    ]),
  );

  const done = await history();
  for (const [promptId, number] of told) {
    expect(done[promptId]?.prompt.slice(0, 2)).toEqual([number, promptId]);
    expect(done[promptId]?.status).toMatchObject({ status_str: 'success', completed: true });
    expect(imagesOf(done[promptId])).toHaveLength(1);
  }
  const next = await send({ prompt: flat() });
  expect(next.number).toBeGreaterThan(Math.max(...told.values()));
  await after.close();
});

function withTextColor(graph: Graph): Graph {
  const node = graph['1'];
  return { ...graph, '1': { ...node, inputs: { ...node?.inputs, color: '255' } } } as Graph;
}

function endsOf(recorder: Recorder): string[] {
  return recorder.frames.flatMap((frame) =>
    frame.kind === 'text' && frame.type === 'executing' && frame.data.node === null
      ? [frame.data.prompt_id]
      : [],
  );
}
