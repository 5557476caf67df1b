// `holdover migrate` between real ledgers of real servers, killed and resumed.
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { pngOf, untilRunning, uploadInput } from '../support/clients/client-helpers.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat, growing } from '../support/graphs/workflows.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, startRedis } from '../support/processes/redis.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let redis: RedisServer;
let dataDir: string;
let server: Holdover | undefined;

beforeAll(async () => {
  redis = await startRedis();
  dataDir = await mkdtemp(join(tmpdir(), 'holdover-migrate-'));
});
afterAll(async () => {
  await server?.dispose();
  await redis.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

const startOnDatabase = async () =>
  (server = await startHoldover({ upstream: 'embedded', dataDir }));
const startOnRedis = async () =>
  (server = await startHoldover({
    upstream: 'embedded',
    dataDir,
    env: { HOLDOVER_LEDGER: redis.url },
  }));
const migrate = (from: string, to: string, crashAt?: string, folder = dataDir) =>
  runHoldover(
    ['migrate', '--from', from, '--to', to, '--data-dir', folder],
    crashAt === undefined ? {} : { HOLDOVER_CRASH_AT: crashAt },
  );
const fingerprint = async () => {
  const names = ['holdover.db', 'holdover.db-wal'];
  const files = await Promise.all(
    names.map((name) => readFile(join(dataDir, name)).catch(() => '')),
  );
  return files.map((bytes) => createHash('sha256').update(bytes).digest('hex'));
};
const ended = async (id: string): Promise<any> => {
  const url = `${server!.url}/history/${id}`;
  await expect.poll(() => getJson(url), { timeout: 40_000 }).toHaveProperty([id]);
  return (await getJson(url))[id];
};
const historyIds = async () => Object.keys(await getJson(`${server!.url}/history`));

async function runToEnd(promptId: string, prompt: object): Promise<void> {
  const socket = await connect(server!.wsUrl, { clientId: promptId });
  await postPrompt(server!.url, { prompt, prompt_id: promptId, client_id: promptId });
  await socket.untilDone(promptId);
  await socket.close();
}

const DONE = ['first', 'second', 'third'];
const WAITING = ['runs', 'waits1', 'waits2'];
let historyBefore: any;
let settingsBefore: any;

describe.sequential('from SQLite to Redis and back', () => {
  test('a database with ended, running and waiting prompts, files and settings', async () => {
    await startOnDatabase();
    for (const [i, id] of DONE.entries()) await runToEnd(id, flat({ color: i }));
    await uploadInput(server!.url, { bytes: await pngOf(), name: 'kept.png' });
    await fetch(`${server!.url}/settings`, {
      method: 'POST',
      body: JSON.stringify({ 'Comfy.Theme': 'dark', 'Comfy.Count': 3 }),
    });
    await postPrompt(server!.url, { prompt: growing({ steps: 60, side: 64 }), prompt_id: 'runs' });
    await postPrompt(server!.url, { prompt: flat({ color: 7 }), prompt_id: 'waits1' });
    await postPrompt(server!.url, { prompt: flat({ color: 8 }), prompt_id: 'waits2', front: true });
    await untilRunning(server!.url);
    historyBefore = await getJson(`${server!.url}/history`);
    settingsBefore = await getJson(`${server!.url}/settings`);
    expect(Object.keys(historyBefore)).toEqual(DONE);
  });

  test('is refused while a server has it open', async () => {
    const { code, stderr } = await migrate('sqlite', redis.url);
    expect([code, stderr]).toEqual([1, expect.stringContaining('in use by another Holdover')]);
    await server!.kill9();
  });

  test('goes on after kill -9 at any record, and leaves the source as it is', async () => {
    const before = await fingerprint();
    for (const crashAt of [
      'migrate-row:1',
      'migrate-row:9',
      'migrate-row:14',
      'migrate-verified',
    ]) {
      const { code } = await migrate('sqlite', redis.url, crashAt);
      expect(code).toBeNull();
      const started = await runHoldover([
        '--data-dir',
        dataDir,
        '--ledger',
        redis.url,
        '--port',
        '0',
      ]);
      expect(started.stderr).toContain('has a migration that was interrupted');
    }
    expect((await migrate('sqlite', redis.url, 'migrate-placed')).code).toBeNull();
    const { code, stdout, stderr } = await migrate('sqlite', redis.url);
    expect([code, stderr.includes('error')]).toEqual([0, false]);
    expect(stdout).toMatch(
      /^Copied and verified \d+ records\. Start the servers with --ledger redis/,
    );
    expect(await fingerprint()).toEqual(before);
    const left = (await readdir(dataDir)).filter((name) => name.includes('migrat'));
    expect(left).toEqual([]);
  });

  test('the old database is refused beside the files, and a second migration into the ledger too', async () => {
    const started = await runHoldover(['--data-dir', dataDir, '--port', '0']);
    expect(started.stderr).toContain('belong to another --ledger');
    const again = await migrate('sqlite', redis.url);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('--to is not empty');
  });

  test('a server on Redis shows the history and goes on with what waits', async () => {
    await startOnRedis();
    const history = await getJson(`${server!.url}/history`);
    expect(DONE.map((id) => history[id])).toEqual(DONE.map((id) => historyBefore[id]));
    expect(await getJson(`${server!.url}/settings`)).toEqual(settingsBefore);
    for (const id of WAITING) expect((await ended(id)).status.status_str).toBe('success');
    const [image] = Object.values<any>(history['first'].outputs)[0].images;
    const query = new URLSearchParams(image).toString();
    expect((await fetch(`${server!.url}/view?${query}`)).status).toBe(200);
    expect((await fetch(`${server!.url}/view?filename=kept.png&type=input`)).status).toBe(200);
    expect((await historyIds()).slice(0, 3)).toEqual(DONE);
  });

  test('a Redis that servers use is refused, and so is a database that is there', async () => {
    await rename(join(dataDir, 'holdover.db'), join(dataDir, 'old.db'));
    for (const end of ['-wal', '-shm'])
      await rm(join(dataDir, `holdover.db${end}`), { force: true });
    const inUse = await migrate(redis.url, 'sqlite');
    expect([inUse.code, inUse.stderr]).toEqual([1, expect.stringContaining('is in use')]);
    await postPrompt(server!.url, { prompt: growing({ steps: 60, side: 64 }), prompt_id: 'runs2' });
    await postPrompt(server!.url, { prompt: flat({ color: 9 }), prompt_id: 'waits3' });
    await untilRunning(server!.url);
    historyBefore = await getJson(`${server!.url}/history`);
    await server!.kill9();
  });

  test('goes back in the same way', async () => {
    for (const crashAt of ['migrate-row:5', 'migrate-verified', 'migrate-placed']) {
      expect((await migrate(redis.url, 'sqlite', crashAt)).code).toBeNull();
    }
    const { code, stderr, stdout } = await migrate(redis.url, 'sqlite');
    expect([code, stderr.includes('error'), stdout]).toEqual([
      0,
      false,
      expect.stringContaining('sqlite'),
    ]);
    await startOnDatabase();
    const history = await getJson(`${server!.url}/history`);
    const ids = Object.keys(historyBefore);
    expect(ids.map((id) => history[id])).toEqual(ids.map((id) => historyBefore[id]));
    for (const id of ['runs2', 'waits3'])
      expect((await ended(id)).status.status_str).toBe('success');
    expect((await historyIds()).slice(0, ids.length)).toEqual(ids);
    expect(await getJson(`${server!.url}/settings`)).toEqual(settingsBefore);
  });
});

describe('is refused', () => {
  test.each([
    ['sqlite', 'sqlite'],
    ['redis://127.0.0.1:1', 'redis://127.0.0.1:2'],
  ])('from %s to %s', async (from, to) => {
    expect((await migrate(from, to)).code).toBe(2);
  });

  test('without a source', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdover-migrate-none-'));
    const { code, stderr } = await migrate('sqlite', redis.url, undefined, folder);
    expect([code, stderr]).toEqual([1, expect.stringContaining('there is no ledger')]);
    await rm(folder, { recursive: true });
  });

  test('with the folder of another ledger', async () => {
    const other = await startHoldover({ upstream: 'embedded' });
    await other.terminate();
    await rm(join(other.dataDir, 'holdover.db'));
    const { code, stderr } = await migrate(redis.url, 'sqlite', undefined, other.dataDir);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/another (ledger|folder) than/)]);
    await other.dispose();
  });
});
