// kill -9 at any moment: what was acknowledged is there afterwards, once, and whole.
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createHash } from 'blake3';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { LASTING_STEPS, flat, lasting } from '../support/graphs/workflows.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 60_000 });

let dataDir: string;
let server: Holdover;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'holdover-kill-'));
  server = await startHoldover({ dataDir });
});
afterEach(async () => {
  await server.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

async function restart(): Promise<void> {
  await server.kill9();
  server = await startHoldover({ dataDir });
}

/** Names of blobs whose bytes are not what their name says. */
async function damagedBlobs(): Promise<string[]> {
  const dir = join(dataDir, 'blobs');
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const paths = entries.filter((entry) => entry.isFile()).map((e) => join(e.parentPath, e.name));
  const damaged = [];
  for (const path of paths) {
    const hash = createHash()
      .update(await readFile(path))
      .digest('hex');
    if (hash !== basename(path)) damaged.push(basename(path));
  }
  return damaged;
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

async function view(image: { filename: string; subfolder: string; type: string }): Promise<number> {
  const answer = await fetch(`${server.url}/view?${new URLSearchParams(image)}`);
  await answer.arrayBuffer();
  return answer.status;
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
  const second = await send({ prompt: flat({ prefix: 'second' }), prompt_id: 'second' });
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

function endsOf(recorder: Recorder): string[] {
  return recorder.frames.flatMap((frame) =>
    frame.kind === 'text' && frame.type === 'executing' && frame.data.node === null
      ? [frame.data.prompt_id]
      : [],
  );
}

/** Always the same numbers, so that a failure can be seen twice. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test('amid uploads: none is half there, whatever was said', async () => {
  const random = randomFrom(7);
  for (let round = 0; round < 3; round++) {
    const uploads = Array.from({ length: 5 }, (_, i) => {
      const name = `big-${round}-${i}.bin`;
      const bytes = Buffer.alloc(3 << 20, `${round}${i}`);
      return uploadInput(server.url, { name, bytes }).then(
        () => ({ name, bytes }),
        () => undefined,
      );
    });
    await new Promise((resolve) => setTimeout(resolve, 20 + random() * 120));
    await restart();
    for (const told of await Promise.all(uploads)) {
      if (told === undefined) continue;
      const seen = await fetch(`${server.url}/view?type=input&filename=${told.name}`);
      expect(Buffer.compare(Buffer.from(await seen.arrayBuffer()), told.bytes)).toBe(0);
    }
    expect(await damagedBlobs()).toEqual([]);
    expect(await readdir(join(dataDir, 'spool'))).toEqual([]);
  }
  const names: string[] = await getJson(`${server.url}/internal/files/input`);
  for (const name of names) {
    const filename = name.replace(/ \[input\]$/, '');
    expect(await view({ filename, subfolder: '', type: 'input' })).toBe(200);
  }
});
