// A backup moves a ledger from SQLite to Redis and its files from a folder to a bucket, and back; killed at each step.
import { randomUUID } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { untilRunning } from '../../support/clients/client-helpers.ts';
import { getJson, postPrompt } from '../../support/clients/v1-client.ts';
import { flat, growing } from '../../support/graphs/workflows.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';
import {
  type BucketServer,
  bucketMissing,
  startBucketServer,
} from '../../support/processes/bucket-server.ts';
import { type Holdover, runHoldover } from '../../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../../support/processes/redis.ts';
import * as own from './open.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const missing = bucketMissing() || redisMissing();

/** The setting has characters that end a line for the reader of lines in Node 24. */
const SETTINGS = { 'Odd.Text': 'a\u2028b\u2029c\r\nd', 'Odd.Number': 1e21 };
/** Longer than the texts that SQLite stores in parts. */
const LONG_TEXT = 'long '.repeat(300_000);

describe.skipIf(missing !== '')(`to another ledger and another place of files${missing}`, () => {
  let bucket: BucketServer;
  let redis: RedisServer;
  beforeAll(async () => {
    [bucket, redis] = await Promise.all([startBucketServer(), startRedis()]);
  });
  afterAll(async () => {
    await Promise.all([bucket?.dispose(), redis?.dispose()]);
  });

  async function isDone({ url }: Holdover, id: string): Promise<void> {
    await expect
      .poll(async () => (await getJson(`${url}/history/${id}`))[id]?.status.status_str, {
        timeout: 40_000,
      })
      .toBe('success');
  }

  const historyOf = async ({ url }: Holdover) => {
    const history = await getJson(`${url}/history`);
    return ['run', 'second', 'third'].map((id) => history[id]);
  };

  test('from a database and a folder to Redis and a bucket, and back', async () => {
    const first = await own.serve(await tempFolder('data'));
    await own.fillServer(first);
    for (const [i, prompt_id] of ['second', 'third'].entries()) {
      const extra_data = { text: i === 0 ? LONG_TEXT : '', seed: 1 };
      await postPrompt(first.url, { prompt: flat({ color: i }), prompt_id, extra_data });
      await isDone(first, prompt_id);
    }
    await fetch(`${first.url}/settings`, { method: 'POST', body: JSON.stringify(SETTINGS) });
    await postPrompt(first.url, { prompt: growing({ steps: 60, side: 64 }), prompt_id: 'runs' });
    await postPrompt(first.url, { prompt: flat({ color: 7 }), prompt_id: 'waits' });
    await untilRunning(first.url);
    await first.kill9();
    const into = await tempFolder('backups');
    expect(await own.backup(first.dataDir, into)).toMatchObject({ code: 0 });
    expect(await readFile(join(into, 'records.jsonl'), 'utf8')).not.toMatch(/[\u2028\u2029]/);
    // What a client sees before the unfinished prompts go on is in the folder that was backed up.
    const expected = await own.serve(first.dataDir);
    const [state, history] = [await own.serverStateOf(expected), await historyOf(expected)];
    const settings = await getJson(`${expected.url}/settings`);
    await expected.terminate();

    const url = `s3://files/${randomUUID()}`;
    const place = ['--files', url, '--s3-endpoint', bucket.endpoint, '--ledger', redis.url];
    const dataDir = await tempFolder('moved');
    for (const crashAt of ['restore-file:2', 'restore-record:14']) {
      const env = { ...bucket.credentials, HOLDOVER_CRASH_AT: crashAt };
      expect((await own.restore(into, dataDir, { args: place, env })).code).toBeNull();
      const flags = ['--data-dir', dataDir, '--port', '0', ...place];
      expect((await runHoldover(flags, bucket.credentials)).stderr).toMatch(/interrupted: run/);
    }
    const options = { args: place, env: bucket.credentials };
    expect(await own.restore(into, dataDir, options)).toMatchObject({ code: 0 });
    const shared = await own.serve(dataDir, { args: place, env: bucket.credentials });
    expect(await historyOf(shared)).toEqual(history);
    expect(await getJson(`${shared.url}/settings`)).toEqual(settings);
    for (const id of ['runs', 'waits']) await isDone(shared, id);
    expect((await own.serverStateOf(shared)).pictures).toEqual(state.pictures);
    expect(await readdir(dataDir)).not.toContain('blobs');
    const files = { args: place.slice(0, 4), env: bucket.credentials };
    expect(await own.restore(into, await tempFolder('other'), files)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${url} is not empty`),
    });

    const back = await tempFolder('backups');
    const saved = await own.backup(dataDir, back, { args: place, env: bucket.credentials });
    expect(saved.code).toBe(0);
    const alone = await tempFolder('alone');
    expect(await own.restore(back, alone)).toMatchObject({ code: 0 });
    const again = await own.serve(alone);
    expect(await historyOf(again)).toEqual(history);
    expect(await getJson(`${again.url}/history`)).toEqual(await getJson(`${shared.url}/history`));
    expect(await getJson(`${again.url}/settings`)).toEqual(settings);
    expect((await own.serverStateOf(again)).pictures).toEqual(state.pictures);
    await again.terminate();
    expect(await own.check(alone)).toMatchObject({ code: 0 });
    expect(await readdir(join(alone, 'userdata'), { recursive: true })).toContain(
      'local/workflows/w.json',
    );
  });
});
