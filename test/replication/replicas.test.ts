// Three servers on one Redis behind one address: a v1 client receives the frames of each job once and in order.
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { type WireJob, fault, output } from '../support/upstreams/hostile-v2.ts';
import { startInFront } from '../support/processes/holdover-before-hostile.ts';
import { finish, nameOf, preview, progressAt } from '../support/upstreams/job-scripts.ts';
import { markerOf } from '../support/processes/invariants.ts';
import { redisMissing } from '../support/processes/redis.ts';
import {
  type TestUser,
  PREVIEWS,
  frameText,
  createTestUser,
  useReplicas,
} from '../support/processes/replicas.ts';
import type { Recorder } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 90_000 });

const STEPS = 6;
const START = ['execution_start', 'execution_cached', 'progress_state', 'executing:1'];

describe.skipIf(redisMissing() !== '')(`three replicas${redisMissing()}`, () => {
  const replicas = useReplicas();
  beforeEach(() => replicas.restartKilled());

  const url = (index: number) => replicas.holdover(index).url;
  const wsUrl = (index: number) => replicas.holdover(index).wsUrl;

  async function jobOf(promptId: string): Promise<WireJob> {
    const job = () => replicas.upstream.jobs.get(promptId);
    await expect.poll(() => job()?.status, { timeout: 10_000 }).toBe('running');
    return job() as WireJob;
  }

  function step(promptId: string, at: number): void {
    replicas.upstream.emit(promptId, 'preview', picture(at));
    replicas.upstream.emit(promptId, 'progress', progressAt(at, STEPS));
  }

  async function heardStep(recorder: Recorder, promptId: string, at: number): Promise<void> {
    const isIt = (data: any) => data.prompt_id === promptId && data.value === at;
    await recorder.until((f) => f.kind === 'text' && f.type === 'progress' && isIt(f.data));
  }

  /** Steps, in their order, and nothing twice. */
  function steps(recorder: Recorder, promptId: string): string[] {
    return recorder.outline(promptId).filter((name) => name.startsWith('progress:'));
  }

  const stepsUpTo = (last: number, first = 1) =>
    Array.from({ length: last - first + 1 }, (_, i) => `progress:${first + i}/${STEPS}`);

  async function end(promptId: string): Promise<void> {
    finish(replicas.upstream, await jobOf(promptId));
  }

  function expectEndOnce(recorder: Recorder, promptId: string): void {
    const heard = recorder.outline(promptId).filter((name) => !name.startsWith('binary'));
    expect(heard.filter((name) => name === 'execution_success')).toHaveLength(1);
    expect(heard.filter((name) => name === 'executed:9')).toHaveLength(1);
    expect(heard.at(-1)).toBe('executing:null');
  }

  async function begun(who: TestUser, at: number, listener: number) {
    const recorder = await who.listen(wsUrl(listener));
    const promptId = await who.post(url(at), { prompt: flat({ prefix: who.clientId }) });
    await jobOf(promptId);
    step(promptId, 1);
    await heardStep(recorder, promptId, 1);
    return { recorder, promptId };
  }

  /** The rest of a run that has made its first step: all frames arrive, once and in order. */
  async function heardToItsEnd(recorder: Recorder, promptId: string): Promise<void> {
    for (let at = 2; at <= STEPS; at++) step(promptId, at);
    await end(promptId);
    await recorder.untilDone(promptId);
    expect(recorder.outline(promptId).slice(0, 4)).toEqual(START);
    expect(steps(recorder, promptId)).toEqual(stepsUpTo(STEPS));
    expectEndOnce(recorder, promptId);
  }

  test('frames of a prompt posted at one replica are received at another, and the third knows the prompt', async () => {
    const who = createTestUser();
    const { recorder, promptId } = await begun(who, 0, 1);
    const queue = await who.get(`${url(2)}/queue`);
    expect(queue.queue_running.map(([, id]: [number, string]) => id)).toContain(promptId);
    await heardToItsEnd(recorder, promptId);
    const history = await who.get(`${url(2)}/history/${promptId}`);
    expect(history[promptId].status.status_str).toBe('success');
  });

  test('frames are byte for byte those of a single process, previews included', async () => {
    const alone = await startInFront(replicas.upstream, { args: PREVIEWS });
    onTestFinished(() => alone.dispose());
    const run = async (prefix: string, post: string, ws: string): Promise<string[]> => {
      const who = createTestUser();
      const recorder = await who.listen(ws);
      // A first status that leaves with the answer counts the prompt.
      await recorder.until((frame) => frame.kind === 'text' && frame.type === 'status');
      const promptId = await who.post(post, { prompt: flat({ prefix }) });
      await jobOf(promptId);
      await recorder.until((frame) => frame.kind === 'text' && frame.type === 'execution_start');
      for (let at = 1; at <= STEPS; at++) {
        step(promptId, at);
        await heardStep(recorder, promptId, at);
      }
      await end(promptId);
      await recorder.untilDone(promptId);
      await recorder.close();
      return recorder.frames.map((frame) =>
        frameText(frame, promptId)
          .replaceAll(prefix, 'PREFIX')
          .replace(/"id": "[\da-f-]{36}"/, '"id": "OF THE USER"'),
      );
    };
    const expected = await run('alone', alone.url, alone.wsUrl);
    expect(expected.filter((frame) => frame.startsWith('binary'))).toHaveLength(STEPS);
    expect(await run('apart', url(0), wsUrl(1))).toEqual(expected);
    expect(await run('together', url(2), wsUrl(2))).toEqual(expected);
  });

  test('a late socket behind the balancer gets the missed frames, and no socket gets a frame twice', async () => {
    const who = createTestUser();
    const promptId = await who.post(url(0));
    await jobOf(promptId);
    step(promptId, 1);
    const first = await who.listen(wsUrl(1));
    await heardStep(first, promptId, 1);
    step(promptId, 2);
    await heardStep(first, promptId, 2);
    await first.close();
    step(promptId, 3);
    await untilApplied(promptId, 3);
    const second = await who.listen(wsUrl(2));
    await heardStep(second, promptId, 3);
    await end(promptId);
    await second.untilDone(promptId);
    expect(first.outline(promptId).slice(0, 4)).toEqual(START);
    expect(steps(first, promptId)).toEqual(stepsUpTo(2));
    expect(steps(second, promptId)).toEqual(stepsUpTo(3, 3));
    expectEndOnce(second, promptId);
    const third = await who.listen(wsUrl(0));
    expect(steps(third, promptId)).toEqual([]);
    expect(third.outline(promptId)).toEqual([]);
  });

  test('the replica that follows jobs is stopped by SIGTERM: another one continues, and each client gets the rest of its frames once', async () => {
    const continues = await followedByFirst();
    expect(await replicas.holdover(0).terminate()).toBe(0);
    await continues();
  });

  test('a replica is killed: others continue with jobs and waiting prompts, and with jobs of keys once their users call', async () => {
    const awaitsItsUser = await followedForKey();
    const continues = await followedByFirst();
    const areSubmitted = await waitingForRoom();
    await replicas.holdover(0).kill9();
    const takenOver = delay(7000);
    await areSubmitted();
    await continues();
    await takenOver;
    await awaitsItsUser();
  });

  /** Jobs that the first replica follows. Returns a check that another one continues with them. */
  async function followedByFirst(): Promise<() => Promise<void>> {
    const [away, there] = [createTestUser(), createTestUser()];
    const { recorder, promptId } = await begun(away, 0, 1);
    const lost = await begun(there, 0, 0);
    return async () => {
      await expect.poll(() => lost.recorder.socket.readyState).toBe(lost.recorder.socket.CLOSED);
      const again = await there.listen(replicas.balancer.wsUrl);
      await Promise.all([promptId, lost.promptId].map(followedAgain));
      await heardToItsEnd(recorder, promptId);
      for (let at = 2; at <= STEPS; at++) step(lost.promptId, at);
      await end(lost.promptId);
      await again.untilDone(lost.promptId);
      expect(steps(again, lost.promptId)).toEqual(stepsUpTo(STEPS, 2));
      expect(again.outline(lost.promptId)).not.toContain('execution_start');
      expectEndOnce(again, lost.promptId);
      const submits = replicas.upstream.requests('submit').map(markerOf);
      for (const { clientId } of [away, there])
        expect(submits.filter((marker) => marker === clientId)).toHaveLength(1);
    };
  }

  /** A job of a user with a key, which is in no ledger. Returns a check that a replica continues when the user calls it. */
  async function followedForKey(): Promise<() => Promise<void>> {
    const carla = createTestUser('key-of-carla');
    const { promptId } = await begun(carla, 0, 0);
    return async () => {
      expect(asked(promptId)).toBe(1);
      const again = await carla.listen(wsUrl(2));
      await followedAgain(promptId);
      for (let at = 2; at <= STEPS; at++) step(promptId, at);
      await end(promptId);
      await again.untilDone(promptId);
      expect(steps(again, promptId)).toEqual(stepsUpTo(STEPS, 2));
      expectEndOnce(again, promptId);
      expect(await replicas.redis.everything()).not.toMatch(/key-of-carla/);
    };
  }

  /** Prompts of one user at all replicas. Returns a check that they are submitted once, in their order. */
  async function waitingForRoom(): Promise<() => Promise<void>> {
    const who = createTestUser();
    const names = [0, 1, 2].map((at) => `${who.clientId}-${at}`);
    const admit = await crowd();
    const ids: string[] = [];
    for (const [at, prefix] of names.entries())
      ids.push(await who.post(url(at), { prompt: flat({ prefix }) }));
    return async () => {
      admit();
      const jobs = () => [...replicas.upstream.jobs.values()].map(nameOf);
      const made = () => jobs().filter((name) => name.startsWith(who.clientId));
      await expect.poll(made, { timeout: 20_000 }).toHaveLength(3);
      expect(made()).toEqual(names.map((name) => `${name}_00001_.png`));
      const left = await waiting(who);
      for (const promptId of ids) expect(left).toContain(promptId);
    };
  }

  test('a replica that was paused writes nothing more for prompts that others took over', async () => {
    const who = createTestUser();
    const { recorder, promptId } = await begun(who, 0, 0);
    const other = await who.listen(wsUrl(1));
    process.kill(replicas.holdover(0).pid, 'SIGSTOP');
    onTestFinished(() => void process.kill(replicas.holdover(0).pid, 'SIGCONT'));
    await followedAgain(promptId);
    step(promptId, 2);
    await heardStep(other, promptId, 2);
    process.kill(replicas.holdover(0).pid, 'SIGCONT');
    for (let at = 3; at <= STEPS; at++) step(promptId, at);
    await end(promptId);
    await Promise.all([recorder.untilDone(promptId), other.untilDone(promptId)]);
    expect(steps(recorder, promptId)).toEqual(stepsUpTo(STEPS));
    expect(steps(other, promptId)).toEqual(stepsUpTo(STEPS, 2));
    for (const heard of [recorder, other]) expectEndOnce(heard, promptId);
  });

  test.each([
    { title: 'in history', forget: false },
    { title: 'deleted from it', forget: true },
  ])(
    'a replica that was disconnected until all entries expired sees that the prompt has ended, $title',
    async ({ forget }) => {
      const who = createTestUser();
      const promptId = await who.post(url(0));
      await jobOf(promptId);
      const { key, prefix, links } = await storedAt(promptId);
      const { commands: redis } = links;
      const idsAt = async (index: number) => {
        const { queue_running, queue_pending } = await who.get(`${url(index)}/queue`);
        return [...queue_running, ...queue_pending].map(([, id]: [number, string]) => id);
      };
      expect(await idsAt(2)).toContain(promptId);
      const { pid } = replicas.holdover(2);
      process.kill(pid, 'SIGSTOP');
      onTestFinished(() => void process.kill(pid, 'SIGCONT'));
      await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await end(promptId);
      await expect.poll(() => idsAt(0), { timeout: 10_000 }).not.toContain(promptId);
      await redis.del(`${prefix}entries:${key}`);
      if (forget) await redis.del(`${prefix}prompt:${key}`);
      process.kill(pid, 'SIGCONT');
      await expect.poll(() => idsAt(2), { timeout: 20_000 }).not.toContain(promptId);
    },
  );

  test.each([
    { title: 'killed and started again', away: () => replicas.redis.restart() },
    { title: 'silent for longer than any lease', away: pause },
  ])('Redis is $title during a run: the run continues, once and in order', async ({ away }) => {
    const who = createTestUser();
    const { recorder, promptId } = await begun(who, 0, 1);
    const gone = away();
    step(promptId, 2);
    await gone;
    await heardStep(recorder, promptId, 2);
    for (let at = 3; at <= STEPS; at++) step(promptId, at);
    await end(promptId);
    await recorder.untilDone(promptId);
    expect(steps(recorder, promptId)).toEqual(stepsUpTo(STEPS));
    expectEndOnce(recorder, promptId);
    expect(await who.post(url(2))).toBeTruthy();
  });

  test('a picture that is a result is kept at all replicas for a late socket', async () => {
    const who = createTestUser('key-of-dora');
    const promptId = await who.post(url(0));
    await jobOf(promptId);
    const bytes = Buffer.from([0xff, 0xd8, 0xff, ...Buffer.from('the result and nothing else')]);
    replicas.upstream.contents.set('shown', bytes);
    const made = output({ id: 'shown', name: 'shown.jpg', x_websocket: true });
    Object.assign(await jobOf(promptId), { outputs: [made] });
    replicas.upstream.emit(promptId, 'output', made);
    await end(promptId);
    // Not by asking for its result: one that was fetched waits no longer.
    const left = async (at: number) => (await who.get(`${url(at)}/prompt`)).exec_info;
    for (const at of [0, 1, 2]) {
      await expect.poll(() => left(at), { timeout: 10_000 }).toEqual({ queue_remaining: 0 });
    }
    const late = await who.listen(wsUrl(2));
    await late.untilDone(promptId);
    const pictures = late.frames.flatMap((one) => (one.kind === 'binary' ? [one.bytes] : []));
    expect(pictures.map((one) => one.subarray(8).toString())).toEqual([bytes.toString()]);
    expectEndOnce(late, promptId);
    const later = await who.listen(wsUrl(1));
    expect(later.frames.filter(({ kind }) => kind === 'binary')).toEqual([]);
  });

  test.each([0, 2])(
    'a cancel at %s that the service does not accept yet is known to all replicas at once',
    async (index) => {
      const who = createTestUser();
      const promptId = await who.post(url(0));
      const jobUrl = (at: number) => `${url(at)}/api/job/${promptId}/status`;
      for (const at of [0, 1, 2])
        await expect.poll(async () => (await who.get(jobUrl(at))).status).toMatch(/prep|exec/);
      replicas.upstream.always('cancel', fault.refuse(503, 'upstream_unreachable'));
      onTestFinished(() => replicas.upstream.always('cancel', (exchange) => exchange.honestly()));
      await cancelAt(url(index), promptId);
      const words = [0, 1, 2].map(async (at) => (await who.get(jobUrl(at))).status);
      expect(await Promise.all(words)).toEqual(Array(3).fill('cancel_requested'));
    },
  );

  test('a prompt in the outbox of one is cancelled at another', async () => {
    const who = createTestUser();
    await crowd();
    const recorder = await who.listen(wsUrl(1));
    const promptId = await who.post(url(0));
    expect(await waiting(who)).toContain(promptId);
    await cancelAt(url(2), promptId);
    expect(await waiting(who)).not.toContain(promptId);
    await recorder.untilDone(promptId);
    expect(recorder.outline(promptId)).toContain('execution_interrupted');
  });

  /** The service has no room until the returned function is called. */
  async function crowd(): Promise<() => void> {
    replicas.upstream.always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '0' }));
    const admit = () => replicas.upstream.always('submit', (exchange) => exchange.honestly());
    onTestFinished(admit);
    return admit;
  }

  test('users with keys of their own get no frames or records of each other, at any replica', async () => {
    const anna = createTestUser('key-of-anna');
    const ben = createTestUser('key-of-ben');
    const { promptId } = await begun(anna, 0, 1);
    const nosy = await ben.listen(`${wsUrl(1)}`);
    step(promptId, 2);
    await end(promptId);
    await expect
      .poll(() => anna.get(`${url(2)}/history/${promptId}`), { timeout: 10_000 })
      .not.toEqual({});
    expect(nosy.outline(promptId)).toEqual([]);
    expect(await ben.get(`${url(2)}/history`)).toEqual({});
    expect(await ben.get(`${url(2)}/queue`)).toEqual({ queue_running: [], queue_pending: [] });
    expect(await replicas.redis.everything()).not.toMatch(/key-of-(anna|ben)/);
  });

  async function pause(): Promise<void> {
    replicas.redis.pause();
    await delay(7000);
    replicas.redis.resume();
  }

  async function waiting(who: TestUser): Promise<string[]> {
    const { queue_running, queue_pending } = await who.get(`${url(1)}/queue`);
    return [...queue_running, ...queue_pending].map(([, id]: [number, string]) => id);
  }

  /** A second one has opened the job's stream. */
  async function followedAgain(promptId: string): Promise<void> {
    await expect.poll(() => asked(promptId), { timeout: 15_000 }).toBeGreaterThan(1);
  }

  function asked(promptId: string): number {
    return replicas.upstream.requests('events').filter(({ path }) => path.includes(promptId))
      .length;
  }

  /** The third replica has read it as well. */
  async function untilApplied(promptId: string, at: number): Promise<void> {
    const { key, prefix, links } = await storedAt(promptId);
    const steps = async () =>
      (await links.commands.xrange(`${prefix}entries:${key}`, '-', '+')).filter(
        ([, [, text = '']]) => text.includes(`"step":${at},`),
      );
    await expect.poll(steps, { timeout: 10_000 }).not.toEqual([]);
    await createTestUser().get(`${url(2)}/queue`);
  }

  /** Where a live prompt is stored; the connections are closed with the test. */
  async function storedAt(promptId: string) {
    const links = openRedis(replicas.redis.url, { log: silentLogger() });
    onTestFinished(() => links.close());
    const { commands, prefix } = links;
    for (const key of await commands.zrange(`${prefix}leases`, 0, '-1')) {
      const id = await commands.hget(`${prefix}prompt:${key}`, 'promptId');
      if (id === promptId) return { prefix, key, links };
    }
    throw new Error('no server leads that prompt');
  }
});

async function cancelAt(url: string, promptId: string): Promise<void> {
  const body = JSON.stringify({ delete: [promptId] });
  const headers = { 'Content-Type': 'application/json', 'X-API-Key': '' };
  const { status } = await fetch(`${url}/api/queue`, { method: 'POST', headers, body });
  expect(status).toBe(200);
}

/** Bytes that look like a picture of that step. */
function picture(at: number): object {
  return preview(Buffer.from([0xff, 0xd8, 0xff, ...Buffer.from(`the picture of step ${at}`)]));
}
