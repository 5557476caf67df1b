// Data of an older commit, as processes killed by kill -9 left it, open and finish under this build.
// `make.mjs` says how the fixtures were made.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { redisMissing, startRedis } from '../support/processes/redis.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { startWorker } from '../support/processes/worker.ts';
import { flat } from '../support/graphs/workflows.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const HERE = fileURLToPath(new URL('./', import.meta.url));
/** As the fixtures were made, so that nothing in them has expired. */
const KEEP = ['--retention-days', '36500'];
/** The time that has passed between the kill and the start of this build. */
const PASSED_MS = 5000;
const HEADERS: { readonly [user: string]: Record<string, string> } = {
  local: {},
  alice: { 'X-API-Key': 'alice' },
};

type Image = { filename: string; subfolder: string; type: string };
type PromptOf = { readonly user: string; readonly id: string; readonly number: number };
type Entry = {
  readonly prompt: [number, string, ...unknown[]];
  readonly outputs: { readonly [node: string]: { readonly images?: readonly Image[] } };
  readonly status: { readonly status_str: string; readonly completed: boolean };
};
type History = { readonly [promptId: string]: Entry };
type Expected = {
  readonly uploads: readonly (PromptOf & Image & { name: string; sha256: string })[];
  readonly running: PromptOf;
  readonly waiting: readonly PromptOf[];
  readonly v2Ended: PromptOf;
  readonly v2Waiting: PromptOf;
  readonly users: {
    readonly [user: string]: {
      readonly history: History;
      readonly outputs: readonly { readonly image: Image; readonly sha256: string }[];
      readonly settings: object;
      readonly userdata: readonly { readonly path: string; readonly size: number }[];
      readonly texts: { readonly [path: string]: string };
      readonly inputs: readonly string[];
    };
  };
};

/** The queue in Redis was BullMQ's at `5bba0ab`, tickets and scripts at `6dcbb72`. */
const STORED = [
  ['5bba0ab', 'sqlite', ''],
  ['5bba0ab', 'redis', redisMissing()],
  ['6dcbb72', 'redis', redisMissing()],
] as const;

type Opened = {
  readonly expected: Expected;
  readonly server: Holdover;
  readonly client: Recorder;
  close(): Promise<void>;
};

/** All are opened at once: their prompts run while those of another one are looked at. */
const opened = new Map<string, Opened>();
beforeAll(async () => {
  const here = STORED.filter(([, , missing]) => !missing);
  await Promise.all(
    here.map(async ([commit, ledger]) =>
      opened.set(`${commit}-${ledger}`, await open(commit, ledger)),
    ),
  );
});
afterAll(() => Promise.all([...opened.values()].map((one) => one.close())));

async function open(commit: string, ledger: 'sqlite' | 'redis'): Promise<Opened> {
  const files = join(HERE, `${commit}-${ledger}`);
  const expected: Expected = JSON.parse(await readFile(`${files}.json`, 'utf8'));
  const dataDir = await unpacked(files);
  const shared = ledger === 'redis' ? await shareRedis(files, dataDir) : undefined;
  const args = [...(shared?.args ?? []), ...KEEP];
  const server = await startHoldover({ dataDir, args, upstream: 'embedded' });
  const worker = await shared?.startWorker();
  const client = await connect(server.wsUrl, { clientId: 'patient' });
  return {
    expected,
    server,
    client,
    async close() {
      await client.close();
      await worker?.dispose();
      await server.dispose();
      await shared?.redis.dispose();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function shareRedis(files: string, dataDir: string) {
  const redis = await startRedis();
  await restore(files, redis.url);
  return {
    redis,
    args: ['--ledger', redis.url, '--concurrency', '0'],
    startWorker: () => startWorker({ ledger: redis.url, dataDir, args: KEEP }),
  };
}

describe.each(STORED)('data of %s in %s%s', (commit, ledger, missing) => {
  let expected: Expected;
  let server: Holdover;
  let client: Recorder;
  beforeAll(() => {
    if (!missing) ({ expected, server, client } = opened.get(`${commit}-${ledger}`) as Opened);
  });

  const get = (user: string, path: string): Promise<any> =>
    getJson(`${server.url}${path}`, HEADERS[user]);
  const usersOf = () => Object.entries(expected.users);
  const liveOf = (user: string): readonly PromptOf[] =>
    [expected.running, ...expected.waiting].filter((one) => one.user === user);

  async function sha256(user: string, image: Image): Promise<string> {
    const { filename, subfolder, type } = image;
    const query = new URLSearchParams({ filename, subfolder, type });
    const answer = await fetch(`${server.url}/view?${query}`, { headers: HEADERS[user] ?? {} });
    expect([image, answer.status]).toEqual([image, 200]);
    return createHash('sha256')
      .update(Buffer.from(await answer.arrayBuffer()))
      .digest('hex');
  }

  /** The queue of both users is empty. */
  async function untilIdle(): Promise<void> {
    const left = async () => {
      const queues = await Promise.all(usersOf().map(([user]) => get(user, '/queue')));
      return queues.flatMap((queue) => [...queue.queue_running, ...queue.queue_pending]).length;
    };
    await expect.poll(left, { timeout: 45_000, interval: 100 }).toBe(0);
  }

  test.skipIf(missing)('holds the settings, the saved files and the uploads', async () => {
    for (const [user, { settings, userdata, texts, inputs }] of usersOf()) {
      expect(await get(user, '/settings')).toEqual(settings);
      const listed = await get(user, '/userdata?dir=workflows&recurse=true&full_info=true');
      expect(listed.map(pathAndSize)).toEqual(userdata.map(pathAndSize));
      for (const [path, text] of Object.entries(texts)) {
        const url = `${server.url}/userdata/${encodeURIComponent(path)}`;
        expect(await (await fetch(url, { headers: HEADERS[user] ?? {} })).text()).toBe(text);
      }
      expect(await get(user, '/internal/files/input')).toEqual(expect.arrayContaining([...inputs]));
    }
    for (const upload of expected.uploads) {
      const image = { ...upload, filename: upload.name };
      expect(await sha256(upload.user, image)).toBe(upload.sha256);
    }
  });

  test.skipIf(missing)('shows the ended prompts as before, with their files', async () => {
    for (const [user, { history, outputs }] of usersOf()) {
      expect(await get(user, '/history')).toMatchObject(history);
      for (const { image, sha256: before } of outputs)
        expect(await sha256(user, image)).toBe(before);
    }
    const ended = expected.v2Ended;
    expect(await get(ended.user, `/api/v2/jobs/${ended.id}`)).toMatchObject({
      status: 'succeeded',
    });
  });

  test.skipIf(missing)('runs the running and the waiting prompts to their end, once', async () => {
    await client.untilDone(expected.running.id, 40_000);
    await untilIdle();
    for (const [user, before] of usersOf()) {
      const history: History = await get(user, '/history');
      const live = liveOf(user);
      const seen = Object.keys(history).filter((id) => id !== expected.v2Waiting.id);
      const known = [...Object.keys(before.history), ...live.map(({ id }) => id)];
      expect(seen.toSorted()).toEqual(known.toSorted());
      for (const { id, number } of live) {
        expect(history[id]?.prompt.slice(0, 2)).toEqual([number, id]);
        expect(history[id]?.status).toMatchObject({ status_str: 'success', completed: true });
        expect(imagesOf(history[id])).toHaveLength(1);
        for (const image of imagesOf(history[id])) await sha256(user, image);
      }
      const names = Object.values(history).flatMap(imagesOf).map(pathOf);
      expect(names.toSorted()).toEqual([...new Set(names)].toSorted());
    }
    const { user, id } = expected.v2Waiting;
    const { status, outputs } = await get(user, `/api/v2/jobs/${id}`);
    expect([status, outputs.length]).toEqual(['succeeded', 1]);
  });

  test.skipIf(missing)('numbers new prompts and new files on from there', async () => {
    const prompt = flat({ prefix: 'flat' });
    const { body } = await postPrompt(server.url, { prompt, client_id: 'patient' });
    expect(body.number).toBeGreaterThan(Math.max(...liveOf('local').map(({ number }) => number)));
    await client.untilDone(body.prompt_id);
    const entry = (await get('local', '/history'))[body.prompt_id];
    expect(imagesOf(entry).map(({ filename }) => filename)).toEqual(['flat_00003_.png']);
  });
});

function imagesOf(entry: Entry | undefined): readonly Image[] {
  return Object.values(entry?.outputs ?? {}).flatMap(({ images = [] }) => images);
}

/** The archive keeps times to the second only. */
function pathAndSize({ path, size }: { readonly path: string; readonly size: number }) {
  return { path, size };
}

function pathOf({ type, subfolder, filename }: Image): string {
  return [type, subfolder, filename].join('/');
}

async function unpacked(files: string): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdover-upgrade-'));
  execFileSync('tar', ['-xzf', `${files}.tar.gz`, '-C', dataDir]);
  return dataDir;
}

type Part = string | number | { readonly b64: string };

async function restore(files: string, url: string): Promise<void> {
  const packed = await readFile(`${files}.jsonl.gz`);
  const lines = gunzipSync(packed).toString().trimEnd().split('\n');
  const redis = new Redis(url);
  const answers = await Promise.all(
    lines.map((line) => {
      const [name = '', ...args] = (JSON.parse(line) as Part[]).map(bytesOf);
      if (String(name) === 'PEXPIRE') args[1] = String(Math.max(Number(args[1]) - PASSED_MS, 1));
      return redis.call(String(name), ...args);
    }),
  );
  expect(answers).toHaveLength(lines.length);
  redis.disconnect();
}

function bytesOf(part: Part): string | Buffer {
  return typeof part === 'object' ? Buffer.from(part.b64, 'base64') : String(part);
}
