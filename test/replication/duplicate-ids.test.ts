// A client that names its prompt itself, and sends it again when the answer was lost with a server.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { staysRunning } from '../support/upstreams/job-scripts.ts';
import { redisMissing } from '../support/processes/redis.ts';
import {
  type TestUser,
  type Replicas,
  createTestUser,
  openReplicas,
} from '../support/processes/replicas.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 90_000 });

/** Far less than a lease has. */
const SOON_MS = 1000;

describe.skipIf(redisMissing() !== '')(`the same prompt_id twice${redisMissing()}`, () => {
  let replicas: Replicas;
  beforeAll(async () => {
    replicas = await openReplicas({ count: 2 });
    replicas.upstream.script(staysRunning);
  });
  afterAll(() => replicas?.close());

  const url = (index: number) => replicas.holdover(index).url;

  async function listed(who: TestUser, index: number): Promise<[number, string][]> {
    const { queue_running, queue_pending } = await who.get(`${url(index)}/queue`);
    return [...queue_running, ...queue_pending].map(([number, id]) => [number, id]);
  }

  async function lostWith(env: NodeJS.ProcessEnv, who: TestUser, body: object): Promise<void> {
    const dying = await replicas.join(env);
    onTestFinished(() => dying.kill9());
    await expect(postPrompt(dying.url, body, who)).rejects.toThrow();
  }

  test.each(['after-intent', 'after-submit', 'after-attach'])(
    'its server died %s: another one answers the repeated call, and there is one job',
    async (moment) => {
      const who = createTestUser();
      const body = { prompt: flat(), prompt_id: randomUUID(), client_id: who.clientId };
      const before = replicas.upstream.jobs.size;
      await lostWith({ HOLDOVER_CRASH_AT: moment }, who, body);
      const { status, body: answer } = await postPrompt(url(0), body, who);
      expect([status, answer.prompt_id]).toEqual([200, body.prompt_id]);
      const mine = [[answer.number, body.prompt_id]];
      for (const index of [0, 1]) {
        await expect.poll(() => listed(who, index)).toEqual(expect.arrayContaining(mine));
        expect((await listed(who, index)).filter(([, id]) => id === body.prompt_id)).toEqual(mine);
      }
      await expect.poll(() => replicas.upstream.jobs.size - before).toBe(1);
    },
  );

  test('another graph under the id of a lost one is another prompt, at once', async () => {
    const who = createTestUser();
    const body = { prompt: flat({ prefix: 'one' }), prompt_id: randomUUID() };
    await lostWith({ HOLDOVER_CRASH_AT: 'after-attach' }, who, body);
    const again = { ...body, prompt: flat({ prefix: 'other' }) };
    await expectAnotherAtOnce(who, again);
  });

  test('an id whose prompt was answered can be used again at once', async () => {
    const who = createTestUser();
    const body = { prompt: flat(), prompt_id: randomUUID() };
    expect((await postPrompt(url(1), body, who)).status).toBe(200);
    await expectAnotherAtOnce(who, body);
  });

  test('a prompt that another server refused meanwhile is sent again', async () => {
    const who = createTestUser();
    const body = { prompt: flat(), prompt_id: randomUUID() };
    const asked = () => replicas.upstream.requests('submit').length;
    const before = asked();
    replicas.upstream.once('submit', fault.late(500, fault.refuse(422, 'invalid_workflow')));
    const refused = postPrompt(url(1), body, who);
    await expect.poll(asked).toBe(before + 1);
    const again = postPrompt(url(0), body, who);
    expect((await refused).status).toBe(400);
    expect((await again).status).toBe(200);
    const ids = (await listed(who, 0)).map(([, id]) => id);
    expect(ids.filter((id) => id === body.prompt_id)).toHaveLength(1);
  });

  async function expectAnotherAtOnce(who: TestUser, body: { prompt_id: string }): Promise<void> {
    const before = replicas.upstream.jobs.size;
    const startedAtMs = Date.now();
    const { status } = await postPrompt(url(0), body, who);
    expect(status).toBe(200);
    expect(Date.now() - startedAtMs).toBeLessThan(SOON_MS);
    expect(replicas.upstream.jobs.size - before).toBe(1);
    const ids = (await listed(who, 0)).map(([, id]) => id);
    expect(ids.filter((id) => id === body.prompt_id)).toHaveLength(2);
  }
});
