// The system's clock is set while the server runs: nothing is lost, doubled, swept early, or hangs.
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { interrupt, untilRunning, uploadInput } from '../support/clients/client-helpers.ts';
import {
  type SettableClock,
  faketimeMissing,
  settableClock,
} from '../support/processes/faketime.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { redisMissing, startRedis } from '../support/processes/redis.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';
import { endless, flat, growing } from '../support/graphs/workflows.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 120_000 });

const missing = faketimeMissing();

type Started = {
  readonly server: Holdover;
  /** The same on what it has stored, after a kill. */
  readonly again: () => Promise<Holdover>;
  readonly clock: SettableClock;
  /** Where the bytes of files are. */
  readonly filesDir: string;
};

async function started(args: readonly string[], filesDir?: string): Promise<Started> {
  const clock = await settableClock();
  const dataDir = await tempFolder('data');
  const open = async (): Promise<Holdover> => {
    const server = await startHoldover({ dataDir, args, env: clock.env, upstream: 'embedded' });
    onTestFinished(() => server.dispose());
    return server;
  };
  return { server: await open(), again: open, clock, filesDir: filesDir ?? dataDir };
}

const UPSTREAMS = {
  'its own engine': () => started([]),
  'an engine elsewhere, whose clock is right': async () => {
    const engine = await startHoldover({ upstream: 'embedded' });
    onTestFinished(() => engine.dispose());
    return started(['--upstream', engine.url], engine.dataDir);
  },
  'a ledger in Redis': async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.dispose());
    return started(['--ledger', redis.url]);
  },
} satisfies Record<string, () => Promise<Started>>;

const CASES = [
  ['its own engine', '+1d'],
  ['an engine elsewhere, whose clock is right', '-1h'],
  ...(redisMissing() === '' ? ([['a ledger in Redis', '-1h']] as const) : []),
] as const;
const PATIENTLY = { timeout: 30_000 };

const blobsIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(join(folder, 'blobs'), { recursive: true })).toSorted();

async function view(url: string, filename: string, type: string): Promise<number> {
  const answer = await fetch(`${url}/view?${new URLSearchParams({ filename, type })}`);
  await answer.arrayBuffer();
  return answer.status;
}

describe.skipIf(missing !== '')(`a clock that is set${missing}`, () => {
  test.each(CASES)('with %s, by %s', async (name, jump) => {
    const { server, again, clock, filesDir } = await UPSTREAMS[name]();
    const { url } = server;
    await uploadInput(url, { bytes: randomBytes(3000), name: 'before.bin' });
    const socket = await connect(server.wsUrl, { clientId: 'watch' });
    const post = async (prompt_id: string, prompt: object) =>
      expect(await postPrompt(url, { prompt, prompt_id, client_id: 'watch' })).toMatchObject({
        status: 200,
      });
    await post('done', flat({ prefix: 'done' }));
    await socket.untilDone('done');
    const ids = ['runs', 'waits'];
    await post('runs', growing({ steps: 60, prefix: 'runs' }));
    await post('waits', growing({ prefix: 'waits' }));
    await untilRunning(url);

    await clock.set(jump);
    ids.push('after');
    await post('after', flat({ prefix: 'after' }));
    for (const id of ids) await socket.untilDone(id);
    ids.unshift('done');
    for (const id of ids) {
      const [starts, ends] = ['execution_start', 'execution_success'].map(
        (type) => socket.outline(id).filter((each) => each === type).length,
      );
      expect([id, starts, ends]).toEqual([id, 1, 1]);
    }
    // A cancel ends the job, and the queue becomes empty.
    await post('endless', endless());
    await untilRunning(url);
    await interrupt(url);
    await socket.untilDone('endless');
    const left = async () => (await getJson(`${url}/prompt`)).exec_info.queue_remaining;
    await expect.poll(left, PATIENTLY).toBe(0);
    await socket.close();
    const blobs = await blobsIn(filesDir);
    const history = await getJson(`${url}/history`);
    expect(Object.keys(history).toSorted()).toEqual([...ids, 'endless'].toSorted());

    // The first sweep comes with a start, and sweeps what is old by its clock; then the clock is put right again.
    let current = server;
    if (jump.startsWith('+')) await restart();
    await clock.set('+0');
    await check(current.url);
    await restart();

    async function restart(): Promise<void> {
      await current.kill9();
      current = await again();
      await check(current.url);
    }

    async function check(at: string): Promise<void> {
      expect(await getJson(`${at}/history`)).toEqual(history);
      expect(await view(at, 'before.bin', 'input')).toBe(200);
      for (const id of ids)
        expect([id, await view(at, `${id}_00001_.png`, 'output')]).toEqual([id, 200]);
      const { status, body } = await postPrompt(at, { prompt: flat({ prefix: 'more' }) });
      expect(status).toBe(200);
      const isOver = async () => (await getJson(`${at}/history/${body.prompt_id}`))[body.prompt_id];
      await expect.poll(isOver, PATIENTLY).toMatchObject({ status: { completed: true } });
      history[body.prompt_id] = await isOver();
      expect(await blobsIn(filesDir)).toEqual(expect.arrayContaining([...blobs]));
    }
  });
});
