// Two users on real workers: neither holds up the other, nor a worker.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Holdover, startHoldover } from '../../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../../support/processes/redis.ts';
import { shown } from '../../support/graphs/text-graphs.ts';
import { type Recorder, connect, getJson, postPrompt } from '../../support/clients/v1-client.ts';
import { type WorkerProcess, startWorker } from '../../support/processes/worker.ts';
import { endless, flat } from '../../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 150_000, hookTimeout: 60_000 });

const ALICE = { 'X-API-Key': 'alice-key' };
const BOB = { 'X-API-Key': 'bob-key' };
type User = typeof ALICE;
const MANY = 12;
const SOON = ['--limits', '{"workers":{"lockMs":3000,"checkMs":1000}}'];

describe.skipIf(redisMissing() !== '')(`two workers on one Redis${redisMissing()}`, () => {
  let redis: RedisServer;
  let dataDir: string;
  let front: Holdover;
  let workers: WorkerProcess[];
  let alice: Recorder;
  let bob: Recorder;

  const addWorker = () => startWorker({ ledger: redis.url, dataDir, args: SOON });

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'holdover-shared-'));
    redis = await startRedis();
    const args = ['--ledger', redis.url, '--concurrency', '0', '--queue-limit', String(MANY)];
    front = await startHoldover({ dataDir, args, upstream: 'embedded' });
    workers = await Promise.all([addWorker(), addWorker()]);
    [alice, bob] = await Promise.all([
      connect(front.wsUrl, { clientId: null, query: `token=${ALICE['X-API-Key']}` }),
      connect(front.wsUrl, { clientId: null, query: `token=${BOB['X-API-Key']}` }),
    ]);
  });
  afterAll(async () => {
    for (const { socket } of [alice, bob]) socket.terminate();
    await Promise.all(workers.map((worker) => worker.dispose()));
    await front.dispose();
    await redis.dispose();
    await rm(dataDir, { recursive: true, force: true });
  });

  async function send(prompt: object, headers: User): Promise<string> {
    const { status, body } = await postPrompt(front.url, { prompt }, { headers });
    expect(status).toBe(200);
    return body.prompt_id;
  }

  const interrupt = (prompt_id: string, headers: User) =>
    fetch(`${front.url}/interrupt`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ prompt_id }),
    });

  const isRunning = (id: string) => (frame: Recorder['frames'][number]) =>
    frame.kind === 'text' && frame.type === 'progress' && frame.data.prompt_id === id;

  async function startsOf(headers: User): Promise<readonly string[]> {
    const { jobs } = await getJson(`${front.url}/api/v2/jobs?limit=100`, headers);
    const all = await Promise.all(
      jobs.map(({ id }: { id: string }) => getJson(`${front.url}/api/v2/jobs/${id}`, headers)),
    );
    return all.map((job) => String(job.started_at)).toSorted();
  }

  test('run the one prompt of a user next, although the queue is full of another’s', async () => {
    // The second one is sent when the first one runs: v1 shows the one that began first.
    const running: string[] = [];
    for (const seed of [1, 2]) {
      const id = await send(endless({ seed }), ALICE);
      running.push(id);
      await alice.until(isRunning(id), 60_000);
    }
    const waiting: string[] = [];
    for (let i = 0; i < MANY; i++) waiting.push(await send(flat({ color: i }), ALICE));
    const one = await send(flat({ prefix: 'one' }), BOB);
    const { queue_pending: pending } = await getJson(`${front.url}/queue`, ALICE);
    // v1 shows one that runs: the other one is the first of those that wait.
    const after = [running[1], ...waiting];
    expect(pending.map(([, id]: [number, string]) => id)).toEqual(after);
    await interrupt(running[0]!, ALICE);
    await bob.untilDone(one, 60_000);
    await alice.untilDone(waiting.at(-1)!, 60_000);
    const [bobs = ''] = await startsOf(BOB);
    expect((await startsOf(ALICE)).filter((at) => at < bobs)).toHaveLength(running.length);
    await interrupt(running[1]!, ALICE);
    await alice.untilDone(running[1]!, 60_000);
  });

  test('a prompt of a worker that was killed can be ended while there is no other', async () => {
    const id = await send(endless({ seed: 3 }), BOB);
    await bob.until(isRunning(id), 60_000);
    await Promise.all(workers.map((worker) => worker.kill9()));
    // Its lock runs out.
    await new Promise((resolve) => setTimeout(resolve, 3500));
    await interrupt(id, BOB);
    await bob.untilDone(id, 30_000);
    workers.push(await addWorker());
    await bob.untilDone(await send(shown('again'), BOB), 60_000);
    expect(await getJson(`${front.url}/queue`, BOB)).toEqual({
      queue_running: [],
      queue_pending: [],
    });
  });
});
