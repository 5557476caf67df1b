// A server on a ledger in Redis: whichever of the two dies, nothing a client was told is lost.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Redis } from 'ioredis';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat, lasting } from '../support/graphs/workflows.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 60_000 });

const missing = redisMissing();

describe.skipIf(missing !== '')(`with a ledger in Redis${missing}`, () => {
  let dataDir: string;
  let redis: RedisServer;
  let server: Holdover | undefined;

  const start = async (ledger = redis.url): Promise<Holdover> =>
    (server = await startHoldover({
      dataDir,
      upstream: 'embedded',
      env: { HOLDOVER_LEDGER: ledger },
    }));
  const spoolsLeft = () => readdir(join(dataDir, 'spool'));

  beforeEach(async () => {
    dataDir = await tempFolder('redis-test');
    redis = await startRedis();
  });
  afterEach(async () => {
    await server?.dispose();
    server = undefined;
    await redis.dispose();
  });

  test('history, files, numbers and users are there after a kill -9, which leaves its spool folder, and its password is shown nowhere', async () => {
    const admin = new Redis(redis.url);
    onTestFinished(() => admin.disconnect());
    await admin.config('SET', 'requirepass', 'canary');
    const ledger = redis.url.replace('//', '//:canary@');
    const first = await start(ledger);
    const headers = { 'X-API-Key': 'ann' };
    const socket = await connect(first.wsUrl, { headers });
    const { body } = await postPrompt(
      first.url,
      { prompt: flat({ prefix: 'kept' }), client_id: 'test-client' },
      { headers },
    );
    await socket.untilDone(body.prompt_id);
    await socket.close();
    const before = await getJson(`${first.url}/history`, headers);

    const [spool] = await spoolsLeft();
    await first.kill9();
    const second = await start(ledger);
    expect(await getJson(`${second.url}/history`, headers)).toEqual(before);
    expect(await getJson(`${second.url}/history`)).toEqual({});
    const picture = `${second.url}/view?filename=kept_00001_.png&type=output`;
    expect((await fetch(picture, { headers })).status).toBe(200);
    const next = await postPrompt(second.url, { prompt: flat() }, { headers });
    expect(next.body.number).toBe(body.number + 1);
    expect(await readdir(dataDir)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/\.db|secret/)]),
    );

    const told = ['/system_stats', '/', '/internal/logs', '/api/settings'].map(async (path) =>
      (await fetch(second.url + path)).text(),
    );
    expect((await Promise.all(told)).join()).not.toContain('canary');

    // A stop in good order leaves none.
    expect(await spoolsLeft()).toContain(spool);
    expect(await second.terminate()).toBe(0);
    expect(first.log() + second.log()).not.toContain('canary');
    expect(await spoolsLeft()).toEqual([spool]);
    expect(await readFile(join(dataDir, 'ledger.id'), 'utf8')).toMatch(/^[\w-]{36}$/);
  });

  test('a replica that takes over at the address of a dead Redis costs no client anything', async () => {
    const replica = await startRedis();
    const [primary, promoted] = [new Redis(redis.url), new Redis(replica.url)];
    onTestFinished(async () => {
      for (const admin of [primary, promoted]) admin.disconnect();
      await replica.dispose();
    });
    primary.on('error', () => {});
    // `WAIT` is about the writes of its own connection.
    const replicate = async () => {
      await primary.set('replicated', 'yes');
      expect(await primary.wait(1, 10_000)).toBe(1);
    };
    // The first copy is made before the prompt: its end must not be written just before the death.
    await primary.config('SET', 'repl-diskless-sync-delay', '0');
    await promoted.replicaof('127.0.0.1', redis.port);
    await replicate();
    const { url, wsUrl } = await start();
    const socket = await connect(wsUrl);
    const client_id = 'test-client';
    await postPrompt(url, { prompt: lasting(), client_id, prompt_id: 'runs' });
    await socket.until((frame) => frame.kind === 'text' && frame.type === 'progress');
    await replicate();
    await redis.kill9();
    const accepting = postPrompt(url, { prompt: flat(), client_id, prompt_id: 'next' });
    await promoted.replicaof('NO', 'ONE');
    await promoted.config('SET', 'port', redis.port);
    expect(await accepting).toMatchObject({ status: 200, body: { prompt_id: 'next' } });
    for (const id of ['runs', 'next']) {
      await socket.untilDone(id);
      const history = await getJson(`${url}/history/${id}`);
      expect(history).toMatchObject({ [id]: { status: { status_str: 'success' } } });
    }
    await socket.close();
  });

  test('a Redis that cannot be reached ends the start with one line', async () => {
    await redis.kill9();
    const url = redis.url.replace('//', '//ann:canary@');
    const { code, stderr } = await runHoldover(['--port', '0', '--data-dir', dataDir], {
      HOLDOVER_LEDGER: url,
      HOLDOVER_LOG_LEVEL: 'error',
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the ledger redis:\/\/127[^\n]* ECONNREFUSED [^\n]*\n$/);
    expect(stderr).not.toContain('canary');
  });
});
