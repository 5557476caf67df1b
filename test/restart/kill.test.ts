// kill -9 at any moment: what was acknowledged is there afterwards, once, and whole.
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createHash } from 'blake3';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
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

async function untilIdle(): Promise<void> {
  const left = async () => (await getJson(`${server.url}/prompt`)).exec_info.queue_remaining;
  await expect.poll(left, { timeout: 30_000, interval: 50 }).toBe(0);
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

test('amid a stream of prompts, six times: each acknowledged one ends once, with its picture', async () => {
  const random = randomFrom(41);
  const acknowledged: string[] = [];
  for (let round = 0; round < 6; round++) {
    let alive = true;
    const stream = async (lane: number): Promise<void> => {
      for (let i = 0; alive; i++) {
        const prompt = flat({ prefix: `r${round}l${lane}n${i}`, color: round * 1000 + i });
        const answer = await postPrompt(server.url, { prompt }).catch(() => undefined);
        if (answer?.status === 200) acknowledged.push(answer.body.prompt_id);
      }
    };
    const before = acknowledged.length;
    const lanes = [stream(0), stream(1)];
    await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(before), 30_000);
    await new Promise((resolve) => setTimeout(resolve, random() * 250));
    alive = false;
    await restart();
    await Promise.all(lanes);
  }
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
  await untilIdle();

  const done = await history();
  expect(Object.keys(done)).toEqual(expect.arrayContaining(acknowledged));
  const names = Object.values(done).flatMap((entry) =>
    imagesOf(entry).map(({ filename }) => filename),
  );
  expect(new Set(names).size).toBe(names.length);
  // A job in which the process died three times is given up, with an error; none is run twice.
  for (const entry of Object.values(done)) {
    expect(imagesOf(entry)).toHaveLength(entry.status.status_str === 'success' ? 1 : 0);
    for (const image of imagesOf(entry)) expect(await view(image)).toBe(200);
  }
  const files: string[] = await getJson(`${server.url}/internal/files/output`);
  expect(files.map((name) => name.replace(/ \[output\]$/, '')).toSorted()).toEqual(
    names.toSorted(),
  );
  expect(await damagedBlobs()).toEqual([]);
  expect(server.log()).not.toMatch(/"level":[56]0/);
});

test('right after an upload was answered: the file is there, byte for byte', async () => {
  for (let round = 0; round < 2; round++) {
    const bytes = await pngOf({ r: round, g: 1, b: 2 });
    const [kept] = await Promise.all([
      uploadInput(server.url, { name: `kept-${round}.png`, bytes }),
      uploadInput(server.url, {
        name: `cut-${round}.bin`,
        bytes: Buffer.alloc(8 << 20, round),
      }).catch(() => {}),
    ]);
    await restart();
    const query = new URLSearchParams(kept);
    query.set('filename', kept.name);
    const seen = await fetch(`${server.url}/view?${query}`);
    expect(Buffer.from(await seen.arrayBuffer())).toEqual(bytes);
  }
  expect(await damagedBlobs()).toEqual([]);
  expect(await readdir(join(dataDir, 'spool'))).toEqual([]);
});

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
