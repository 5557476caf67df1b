// A server that stands still in the middle of a submission finds it taken over when it goes on.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type RedisConnections, openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { type Exchange, type Hook, type WireJob, fault } from '../support/upstreams/hostile-v2.ts';
import { finish, nameOf, progressAt } from '../support/upstreams/job-scripts.ts';
import { redisMissing } from '../support/processes/redis.ts';
import { type TestUser, createTestUser, useReplicas } from '../support/processes/replicas.ts';
import { type Recorder, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 90_000 });

const STEPS = 3;

describe.skipIf(redisMissing() !== '')(`two replicas${redisMissing()}`, () => {
  const replicas = useReplicas(2);
  let redis: RedisConnections;
  beforeAll(() => void (redis = openRedis(replicas.redis.url, { log: silentLogger() })));
  afterAll(() => redis?.close());

  const url = (index: number) => replicas.holdover(index).url;

  /** The first replica stands still as soon as the service has its submission. */
  function standsStill(heard: Hook): { wakes(said: Hook): Promise<void> } {
    const { pid } = replicas.holdover(0);
    const calls: Exchange[] = [];
    replicas.upstream.once('submit', (exchange) => {
      process.kill(pid, 'SIGSTOP');
      calls.push(exchange);
      return heard(exchange);
    });
    onTestFinished(() => void process.kill(pid, 'SIGCONT'));
    return {
      async wakes(said) {
        for (const exchange of calls) await said(exchange);
        process.kill(pid, 'SIGCONT');
      },
    };
  }

  const jobsOf = async (who: TestUser, index: number): Promise<string[]> => {
    const { queue_running, queue_pending } = await who.get(`${url(index)}/queue`);
    return [...queue_running, ...queue_pending].map(([, id]: [number, string]) => id);
  };

  async function takenOver(who: TestUser): Promise<WireJob> {
    const running = async () => (await who.get(`${url(1)}/queue`)).queue_running;
    // Seconds later, when a lease expires.
    await expect.poll(running, { timeout: 20_000, interval: 250 }).toHaveLength(1);
    const job = () => [...replicas.upstream.jobs.values()].at(-1);
    await expect.poll(() => job()?.status).toBe('running');
    return job() as WireJob;
  }

  async function heardStart(recorder: Recorder, promptId: string): Promise<void> {
    await recorder.until(() => recorder.outline(promptId).includes('execution_start'));
  }

  function runToItsEnd(job: WireJob): void {
    for (let at = 1; at <= STEPS; at++) {
      replicas.upstream.emit(job.id, 'progress', progressAt(at, STEPS));
    }
    finish(replicas.upstream, job);
  }

  function expectFrameOnce(recorder: Recorder, promptId: string): void {
    const heard = recorder.outline(promptId);
    expect(
      heard.filter((name) => name.startsWith('progress:')),
      heard.join(' '),
    ).toEqual(Array.from({ length: STEPS }, (_, i) => `progress:${i + 1}/${STEPS}`));
    for (const word of ['execution_start', 'execution_success', 'executing:null']) {
      expect(heard.filter((name) => name === word)).toHaveLength(1);
    }
    const ids = recorder.frames.flatMap((f) => (f.kind === 'text' ? [f.data.prompt_id] : []));
    expect([...new Set(ids)].filter(Boolean)).toEqual([promptId]);
  }

  const nothing: Hook = () => {};

  const honestly: Hook = (exchange) => exchange.honestly();

  test.each<{ title: string; heard?: Hook; said?: Hook; status: number; at: number }>([
    { title: 'took it, of a client elsewhere', heard: honestly, status: 200, at: 1 },
    { title: 'refused it', said: fault.refuse(422, 'invalid_workflow'), status: 400, at: 0 },
    {
      title: 'had no room for it',
      said: fault.refuse(429, 'queue_full', { 'Retry-After': '0' }),
      status: 200,
      at: 0,
    },
    { title: 'broke off', said: fault.reset(), status: 200, at: 0 },
  ])(
    'the service $title, which a stalled server learns late: the result is that of the other server',
    async ({ heard = nothing, said = nothing, status, at }) => {
      const who = createTestUser(`key-${randomUUID()}`);
      const socket = await who.listen(replicas.holdover(at).wsUrl);
      const still = standsStill(heard);
      const body = { prompt: flat(), client_id: who.clientId };
      const call = postPrompt(url(0), body, { headers: who.headers });
      const job = await takenOver(who);
      const [promptId = ''] = await jobsOf(who, 1);
      await still.wakes(said);
      const answer = await call;
      expect(answer.status, JSON.stringify(answer.body)).toBe(status);
      expect([promptId, undefined]).toContain(answer.body.prompt_id);
      const row = await redis.commands.hgetall(`${redis.prefix}prompt:${promptId}`);
      expect(row).toMatchObject({ promptId, state: 'live', jobId: job.id });
      await expect.poll(() => jobsOf(who, 0)).toEqual([promptId]);
      await heardStart(socket, promptId);
      runToItsEnd(job);
      await socket.untilDone(promptId);
      expectFrameOnce(socket, promptId);
      for (const index of [0, 1]) {
        const history = await who.get(`${url(index)}/history`);
        expect(history[promptId].status.status_str).toBe('success');
        expect(await jobsOf(who, index)).toEqual([]);
      }
      await goesOn(who);
      expect(replicas.holdover(0).log()).not.toContain('"level":50');
    },
  );

  test('an outbox continues after it sent a prompt that another server took over meanwhile', async () => {
    const who = createTestUser(`key-${randomUUID()}`);
    const socket = await who.listen(replicas.holdover(0).wsUrl);
    const full = fault.refuse(429, 'queue_full', { 'Retry-After': '0' });
    replicas.upstream.once('submit', full, full);
    const posted = await who.post(url(0));
    const still = standsStill(honestly);
    const job = await takenOver(who);
    await still.wakes(nothing);
    await heardStart(socket, posted);
    runToItsEnd(job);
    await socket.untilDone(posted);
    expectFrameOnce(socket, posted);
    await goesOn(who);
    expect(replicas.holdover(0).log()).not.toContain('"level":50');
  });

  /** The one that stood still takes prompts, and tells what becomes of them. */
  async function goesOn(who: TestUser): Promise<void> {
    const socket = await who.listen(replicas.holdover(0).wsUrl);
    const next = await who.post(url(0), { prompt: flat({ prefix: 'next' }) });
    const job = () => [...replicas.upstream.jobs.values()].at(-1) as WireJob;
    await expect
      .poll(() => [nameOf(job()), job().status], { timeout: 10_000 })
      .toEqual(['next_00001_.png', 'running']);
    runToItsEnd(job());
    await socket.untilDone(next);
  }
});
