// The two kinds of sockets on different processes: each receives, at once or later, the frames of its rule.
import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { finish, progressAt } from '../support/upstreams/job-scripts.ts';
import { redisMissing } from '../support/processes/redis.ts';
import { type TestUser, createTestUser, useReplicas } from '../support/processes/replicas.ts';
import { type Recorder, connect } from '../support/clients/v1-client.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 90_000 });

describe.skipIf(redisMissing() !== '')(`three replicas${redisMissing()}`, () => {
  const replicas = useReplicas();

  const url = (index: number) => replicas.holdover(index).url;

  /** A user of its own, with both kinds of sockets. */
  function someone(): TestUser & {
    local(at: number, clientId?: string): Promise<Recorder>;
    hosted(at: number, clientId?: string): Promise<Recorder>;
  } {
    const key = `key-${randomUUID()}`;
    const who = createTestUser(key);
    const open = async (at: number, options: Parameters<typeof connect>[1]) => {
      const recorder = await connect(replicas.holdover(at).wsUrl, options);
      onTestFinished(() => recorder.socket.terminate());
      // The answer comes after everything that is sent to a new socket.
      recorder.send({ type: 'feature_flags', data: {} });
      await recorder.until((frame) => frame.kind === 'text' && frame.type === 'feature_flags');
      return recorder;
    };
    const { headers } = who;
    return {
      ...who,
      local: (at, clientId = who.clientId) => open(at, { clientId, headers }),
      hosted: (at, clientId = 'a-tab') => open(at, { clientId, query: `token=${key}` }),
    };
  }

  async function runToItsEnd(promptId: string): Promise<void> {
    const job = () => replicas.upstream.jobs.get(promptId);
    await expect.poll(job).toBeDefined();
    await expect.poll(() => job()?.status).toBe('running');
    replicas.upstream.emit(promptId, 'progress', progressAt(1, 2));
    const ended = job();
    if (ended) finish(replicas.upstream, ended);
  }

  const isOver = async (who: TestUser): Promise<boolean> => {
    const counts = [0, 1, 2].map(async (at) => (await who.get(`${url(at)}/prompt`)).exec_info);
    return (await Promise.all(counts)).every(({ queue_remaining: left }) => left === 0);
  };

  /** Without asking for its result. */
  async function runWithoutSockets(who: TestUser, more: object = {}): Promise<string> {
    const promptId = await who.post(url(0), more);
    await runToItsEnd(promptId);
    await expect.poll(() => isOver(who)).toBe(true);
    return promptId;
  }

  const ENDS = ['execution_success', 'executing:null'];
  const startsAndEnds = (socket: Recorder, promptId: string): string[] =>
    socket.outline(promptId).filter((name) => name === 'execution_start' || ENDS.includes(name));
  const WHOLE = ['execution_start', ...ENDS];

  test('a local socket at another server gets only the broadcasts of a prompt without client_id', async () => {
    const who = someone();
    const [local, hosted] = [await who.local(1), await who.hosted(2)];
    const promptId = await who.post(url(0), { client_id: undefined });
    await runToItsEnd(promptId);
    await hosted.untilDone(promptId);
    await expect.poll(() => local.outline().at(-1)).toBe('status:0');
    expect(startsAndEnds(local, promptId)).toEqual([]);
    expect(local.outline(promptId)).toContain('progress_state');
  });

  test('frames that a hosted socket received are kept for sockets of its client id at other servers', async () => {
    const who = someone();
    const hosted = await who.hosted(1);
    const promptId = await who.post(url(0));
    await runToItsEnd(promptId);
    await hosted.untilDone(promptId);
    const late = await who.local(2);
    await late.untilDone(promptId);
    expect(startsAndEnds(late, promptId)).toEqual(WHOLE);
    expect(startsAndEnds(await who.local(0), promptId)).toEqual([]);
  });

  test('frames that a socket of the client id received are not sent to a hosted socket at another server', async () => {
    const who = someone();
    const local = await who.local(1);
    const promptId = await who.post(url(0));
    await runToItsEnd(promptId);
    await local.untilDone(promptId);
    for (const at of [0, 1, 2]) {
      expect((await who.hosted(at)).outline(promptId)).toEqual([]);
    }
  });

  test('a late hosted socket gets the last prompt only, once, at any server', async () => {
    const who = someone();
    const [first, last] = [
      await runWithoutSockets(who),
      await runWithoutSockets(who, { client_id: undefined }),
    ];
    const late = await who.hosted(2);
    await late.untilDone(last);
    expect(startsAndEnds(late, last)).toEqual(WHOLE);
    expect(late.outline(first)).toEqual([]);
    const later = await who.hosted(1, 'another-tab');
    expect(later.outline(last)).toEqual([]);
  });

  test('a result that was fetched from one server is sent to no late socket of another', async () => {
    const who = someone();
    const [mine, none] = [
      await runWithoutSockets(who),
      await runWithoutSockets(who, { client_id: undefined }),
    ];
    await who.get(`${url(0)}/history/${mine}`);
    await who.get(`${url(0)}/api/job/${none}/status`);
    for (const at of [1, 2, 0]) {
      expect((await who.local(at)).outline(mine)).toEqual([]);
      expect((await who.hosted(at)).outline(none)).toEqual([]);
    }
  });
});
