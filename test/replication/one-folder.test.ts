// Servers that run jobs themselves, on one Redis and with one folder.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { runFolder, tempFolder } from '../support/graphs/v1-folders.ts';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import { type Received, type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 60_000 });

describe.skipIf(redisMissing() !== '')(`replicas with one folder${redisMissing()}`, () => {
  let redis: RedisServer;
  let dataDir: string;
  const replicas: Holdover[] = [];

  const start = async (): Promise<Holdover> => {
    const args = ['--ledger', redis.url];
    const started = await startHoldover({ upstream: 'embedded', dataDir, args });
    replicas.push(started);
    return started;
  };

  beforeAll(async () => {
    redis = await startRedis();
    dataDir = await runFolder('logs');
    await Promise.all([start(), start()]);
  });
  afterAll(async () => {
    await Promise.all(replicas.map((replica) => replica.dispose()));
    await redis.dispose();
  });

  const url = (at: number): string => replicas[at]?.url ?? '';
  const withKey = (key: string) => ({ 'X-API-Key': key });

  test('an output link and a view link of one replica open at the other, without a key', async () => {
    const ann = withKey('ann');
    const client = v2Client(url(0), ann);
    const { body: job } = await client.submit(flat({ color: 6 }));
    await client.events(job.id);
    const [made] = (await client.job(job.id)).body.outputs;
    const { pathname, search } = new URL(made.url);
    expect((await call(url(1), pathname)).status).toBe(404);
    expect((await call(url(1), pathname + search)).status).toBe(200);

    const history = await vi.waitFor(async () => {
      const told = JSON.parse((await call(url(0), `/history/${job.id}`, { headers: ann })).text);
      expect(told[job.id]?.outputs).toBeDefined();
      return told[job.id];
    });
    const [{ images }]: any[] = Object.values(history.outputs);
    const asked = `/api/view?${new URLSearchParams(images[0])}`;
    const { location = '' } = (await call(url(0), asked, { headers: ann })).headers;
    const link = new URL(location);
    expect((await call(url(1), link.pathname + link.search)).status).toBe(200);
  });

  test.each([
    ['another server', ['--port', '0']],
    ['a worker', ['worker']],
  ])('%s with another folder does not start', async (_, words) => {
    const otherFolder = await tempFolder('elsewhere');
    const args = [...words, '--ledger', redis.url, '--data-dir', otherFolder];
    expect(await runHoldover(args)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `error: --data-dir ${otherFolder} is not the folder that other processes of this --ledger use: give all of them the same one\n`,
    });
  });

  describe('v1’s log: whichever is asked, all of them are meant', () => {
    async function subscribe(at: number, key: string, enabled: boolean): Promise<void> {
      const body = JSON.stringify({ clientId: key, enabled });
      const options = { method: 'PATCH', headers: withKey(key), body };
      expect((await call(url(at), '/internal/logs/subscribe', options)).status).toBe(200);
    }

    const listen = (at: number, key: string): Promise<Recorder> =>
      connect(replicas[at]?.wsUrl ?? '', { clientId: key, headers: withKey(key) });

    async function run(at: number, key: string, socket: Recorder): Promise<void> {
      const prompt = { prompt: flat(), client_id: key };
      const { body } = await postPrompt(url(at), prompt, { headers: withKey(key) });
      await socket.untilDone(body.prompt_id);
    }

    const isLog = (frame: Received): boolean => frame.kind === 'text' && frame.type === 'logs';
    const linesOf = (socket: Recorder): string[] =>
      socket.frames
        .filter(isLog)
        .flatMap((frame) => (frame.kind === 'text' ? frame.data.entries : []))
        .map(({ m }: { m: string }) => m);

    test('a socket at one replica gets the lines of all, whichever replica got its subscription', async () => {
      const [socket, others] = [await listen(1, 'far'), await listen(1, 'someone else')];
      await subscribe(0, 'far', true);
      await run(0, 'far', socket);
      await run(1, 'far', socket);
      const got = () => linesOf(socket).filter((line) => line === 'got prompt\n');
      await expect.poll(got).toHaveLength(2);
      expect(linesOf(others)).toEqual([]);
      await subscribe(1, 'far', false);
      socket.frames.length = 0;
      await run(0, 'far', socket);
      const { entries } = await raw(1, 'far');
      expect(entries.filter(({ m }) => m === 'got prompt\n')).toHaveLength(3);
      expect(linesOf(socket)).toEqual([]);
    });

    test('a replica that starts later knows the subscriptions', async () => {
      await subscribe(0, 'early', true);
      await start();
      const socket = await listen(2, 'early');
      await run(0, 'early', socket);
      await expect.poll(() => linesOf(socket)).toContain('got prompt\n');
    });

    async function raw(at: number, key: string): Promise<{ entries: { t: string; m: string }[] }> {
      const answer = await call(url(at), '/internal/logs/raw', { headers: withKey(key) });
      return JSON.parse(answer.text);
    }

    test('every replica shows the lines of all, in order', async () => {
      const socket = await listen(0, 'reader');
      for (const at of [0, 1]) await run(at, 'reader', socket);
      for (const at of [0, 1]) {
        const { entries } = await raw(at, 'reader');
        expect(entries.filter(({ m }) => m === 'got prompt\n')).toHaveLength(2);
        expect(entries).toEqual(entries.toSorted((a, b) => (a.t < b.t ? -1 : 1)));
        const text = await call(url(at), '/internal/logs', { headers: withKey('reader') });
        expect(JSON.parse(text.text)).toBe(entries.map(({ t, m }) => `${t} - ${m}`).join(''));
      }
      const strangers = (await raw(0, 'unknown')).entries;
      expect(strangers.filter(({ m }) => !/^Holdover \S+ started\n$/.test(m))).toEqual([]);
    });

    test('a call does not wait long for a replica that does not answer', async () => {
      const silent = new Redis(redis.url);
      onTestFinished(() => silent.disconnect());
      await silent.subscribe('holdover:logs');
      const askedAtMs = Date.now();
      const { entries } = await raw(0, 'reader');
      expect(entries.some(({ m }) => m === 'got prompt\n')).toBe(true);
      expect(Date.now() - askedAtMs).toBeLessThan(5000);
    });
  });
});
