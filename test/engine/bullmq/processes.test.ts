// Real processes on one Redis: a server that only takes prompts, and workers that run them.
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openRedis } from '../../../src/redis/redis.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { QueueKeys } from '../../../src/engine/bullmq/redis-keys.ts';
import { type Holdover, startHoldover } from '../../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../../support/processes/redis.ts';
import {
  type Received,
  type Recorder,
  connect,
  getJson,
  postPrompt,
} from '../../support/clients/v1-client.ts';
import { type WorkerProcess, startWorker } from '../../support/processes/worker.ts';
import { endless, flat, growing, lasting, streaming } from '../../support/graphs/workflows.ts';
import { runFolder } from '../../support/graphs/v1-folders.ts';

// Each starts several processes.
vi.setConfig({ testTimeout: 150_000, hookTimeout: 60_000 });

/** A worker that is silent for so long is dead. */
const SOON = { lockMs: 3000, checkMs: 1000 };
const NEVER = { lockMs: 600_000, checkMs: 1000 };

describe.skipIf(redisMissing() !== '')(`workers on one Redis${redisMissing()}`, () => {
  let redis: RedisServer;
  let dataDir: string;
  let front: Holdover;
  /** Of one test. */
  const others: { dispose(): Promise<unknown> }[] = [];

  beforeAll(async () => {
    dataDir = await runFolder('workers');
    redis = await startRedis();
    front = await startFront();
  });
  afterEach(() => Promise.all(others.splice(0).map((process) => process.dispose())));
  afterAll(async () => {
    await front.dispose();
    await redis.dispose();
  });

  function startFront(port = 0): Promise<Holdover> {
    const args = ['--ledger', redis.url, '--concurrency', '0'];
    return startHoldover({ dataDir, port, args, upstream: 'embedded' });
  }

  async function worker(limits: object = SOON): Promise<WorkerProcess> {
    const args = ['--limits', JSON.stringify({ workers: limits })];
    const started = await startWorker({ ledger: redis.url, dataDir, args });
    others.push(started);
    return started;
  }

  async function listen(clientId = 'one', server = front): Promise<Recorder> {
    const recorder = await connect(server.wsUrl, { clientId });
    others.push({ dispose: async () => recorder.socket.terminate() });
    return recorder;
  }

  async function send(prompt: object, clientId = 'one', server = front): Promise<string> {
    const { status, body } = await postPrompt(server.url, { client_id: clientId, prompt });
    expect(status).toBe(200);
    return body.prompt_id;
  }

  const inTheMiddle = (promptId: string) => (frame: Received) =>
    frame.kind === 'text' && frame.type === 'progress' && frame.data.prompt_id === promptId;

  async function historyOf(promptId: string, server = front) {
    return (await getJson(`${server.url}/history/${promptId}`))[promptId];
  }

  function ends(socket: Recorder, promptId: string): readonly string[] {
    return socket
      .outline(promptId)
      .filter((word) => /^execution_(success|error|interrupted)$|^executing:null$/.test(word));
  }

  async function expectOneEnd(socket: Recorder, promptId: string): Promise<void> {
    await socket.untilDone(promptId, 90_000);
    expect(ends(socket, promptId)).toEqual(['execution_success', 'executing:null']);
    const once = socket
      .outline(promptId)
      .filter((word) => /^execution_start|^executed:/.test(word));
    expect(once).toEqual([...new Set(once)]);
    const entry = await historyOf(promptId);
    expect(entry.status.status_str).toBe('success');
    expect(entry.outputs['9'].images).toHaveLength(1);
    const image = new URLSearchParams(entry.outputs['9'].images[0]);
    expect((await fetch(`${front.url}/view?${image}`)).status).toBe(200);
  }

  describe('with a worker that stays', () => {
    let staying: WorkerProcess;
    beforeAll(async () => {
      staying = await worker();
      others.pop();
    });
    afterAll(() => staying.dispose());

    test('prompts give the frames they give in a single process', async () => {
      const single = await startHoldover({ upstream: 'embedded' });
      others.push(single);
      const prompts = [growing(), flat({ class_type: 'PreviewImage' }), streaming()];
      const outlines: unknown[] = [];
      for (const server of [single, front]) {
        const socket = await listen('one', server);
        const heard: unknown[] = [];
        for (const prompt of prompts) {
          const id = await send(prompt, 'one', server);
          await socket.untilDone(id, 60_000);
          // Previews may be dropped, and steps between the first and the last; nothing else.
          const words = socket.outline(id).filter((word) => !/^(binary|progress)/.test(word));
          heard.push(words);
        }
        expect(socket.frames.some((frame) => frame.kind === 'binary')).toBe(true);
        outlines.push(heard);
      }
      expect(outlines[1]).toEqual(outlines[0]);
    });

    test('two workers run two prompts at a time, a third waits, and all can be cancelled', async () => {
      await worker();
      const socket = await listen();
      const running: string[] = [];
      // The second worker might begin its prompt before the first one.
      for (const seed of [1, 2]) {
        const id = await send(endless({ seed }));
        running.push(id);
        await socket.until(inTheMiddle(id), 60_000);
      }
      const waiting = await send(flat());
      const { jobs } = await getJson(`${front.url}/api/jobs?status=in_progress`);
      expect(jobs.map(({ id }: { id: string }) => id).toSorted()).toEqual(running.toSorted());
      // v1's own list: the original runs one at a time.
      const queue = await getJson(`${front.url}/queue`);
      expect(queue.queue_running.map((item: unknown[]) => item[1])).toEqual(running.slice(0, 1));
      const after = [...running.slice(1), waiting];
      expect(queue.queue_pending.map((item: unknown[]) => item[1])).toEqual(after);
      const post = (path: string, body: object) =>
        fetch(`${front.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
      await post('/queue', { delete: [waiting] });
      for (const id of running) await post('/interrupt', { prompt_id: id });
      for (const id of running) await socket.untilDone(id, 60_000);
      for (const id of running) {
        expect(ends(socket, id)).toEqual(['execution_interrupted', 'executing:null']);
      }
      expect(await getJson(`${front.url}/queue`)).toEqual({ queue_running: [], queue_pending: [] });
    });

    test('a server that was killed finds the prompt that a worker has run meanwhile', async () => {
      const socket = await listen();
      const id = await send(lasting({ prefix: 'alone' }));
      await socket.until(inTheMiddle(id), 60_000);
      const { port } = front;
      await front.kill9();
      front = await startFront(port);
      const again = await listen();
      await expectOneEnd(again, id);
    });
  });

  test('a job of a killed worker is taken over within seconds, one of a worker that gets SIGTERM at once', async () => {
    const dying = await worker({});
    const socket = await listen();
    const id = await send(lasting({ prefix: 'soon' }));
    await socket.until(inTheMiddle(id), 60_000);
    const links = openRedis(redis.url, { log: silentLogger() });
    onTestFinished(() => links.close());
    const keys = new QueueKeys(links);
    const tries = () => links.commands.hget(keys.run(id), 'attempts');
    expect(await tries()).toBe('1');
    const second = await worker(NEVER);
    await dying.kill9();
    await expect.poll(tries, { timeout: 9000 }).toBe('2');
    // Its lock outlives the test: what is taken over now was returned.
    await worker(NEVER);
    expect(await second.terminate()).toBe(0);
    await expectOneEnd(socket, id);
  });

  test('a worker that was paused longer than its lock writes nothing for the job that another took over, and the prompt of one that was killed can be ended while there is no other', async () => {
    const asleep = await worker();
    const socket = await listen();
    const id = await send(lasting({ prefix: 'slept' }));
    await socket.until(inTheMiddle(id), 60_000);
    asleep.pause();
    const dying = await worker();
    await expectOneEnd(socket, id);
    const heard = socket.outline(id).length;
    asleep.resume();
    await expect.poll(() => asleep.log(), { timeout: 60_000 }).toContain('job.lease_lost');
    // It is awake, and works on.
    const next = await send(flat({ prefix: 'next' }));
    await socket.untilDone(next, 60_000);
    expect(socket.outline(id)).toHaveLength(heard);
    expect((await historyOf(id)).outputs['9'].images).toHaveLength(1);

    await asleep.kill9();
    const last = await send(endless({ seed: 3 }));
    await socket.until(inTheMiddle(last), 60_000);
    await dying.kill9();
    // Its lock runs out.
    await new Promise((resolve) => setTimeout(resolve, 3500));
    const body = JSON.stringify({ prompt_id: last });
    await fetch(`${front.url}/interrupt`, { method: 'POST', body });
    await socket.untilDone(last, 30_000);
    await worker();
    await socket.untilDone(await send(flat({ prefix: 'again' })), 60_000);
    expect(await getJson(`${front.url}/queue`)).toEqual({ queue_running: [], queue_pending: [] });
  });
});
