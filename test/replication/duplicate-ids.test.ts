// A client that names its prompt itself, and sends it again when the answer was lost with a server.
import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Hook, fault } from '../support/upstreams/hostile-v2.ts';
import { prefixOf } from '../support/upstreams/job-scripts.ts';
import { jobsOf } from '../support/processes/invariants.ts';
import { redisMissing } from '../support/processes/redis.ts';
import { type TestUser, createTestUser, useReplicas } from '../support/processes/replicas.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 90_000 });

type Body = { readonly prompt_id: string; readonly prompt: object; readonly client_id: string };

/** A prompt that names itself; its job can be told by the id. */
function bodyOf({ clientId }: TestUser): Body {
  const prompt_id = randomUUID();
  return { prompt: flat({ prefix: prompt_id }), prompt_id, client_id: clientId };
}

/** Far less than a lease has. */
const SOON_MS = 1000;

describe.skipIf(redisMissing() !== '')(`the same prompt_id twice${redisMissing()}`, () => {
  const replicas = useReplicas(2);

  const url = (index: number) => replicas.holdover(index).url;

  /** Numbers and ids of the prompts that have this id. */
  async function listed(who: TestUser, index: number, body: Body): Promise<[number, string][]> {
    const { queue_running, queue_pending } = await who.get(`${url(index)}/queue`);
    const all: [number, string][] = [...queue_running, ...queue_pending];
    return all.filter(([, id]) => id === body.prompt_id).map(([number, id]) => [number, id]);
  }

  /** Prompts of a server that dies once the job of the last one is stored; no call is answered. */
  async function lostTogether(who: TestUser, submits: readonly Hook[]): Promise<Body[]> {
    const dying = await replicas.join({ HOLDOVER_CRASH_AT: 'after-attach' });
    onTestFinished(() => dying.kill9());
    const asked = () => replicas.upstream.requests('submit').length;
    const bodies = submits.map(() => bodyOf(who));
    const lost: Promise<unknown>[] = [];
    for (const [i, submit] of submits.entries()) {
      const before = asked();
      replicas.upstream.once('submit', submit);
      lost.push(expect(postPrompt(dying.url, bodies[i], who)).rejects.toThrow());
      await expect.poll(asked).toBe(before + 1);
    }
    await Promise.all(lost);
    return bodies;
  }

  test('their server died during their submission or after it: another one answers a repeated call, with one job, and another graph at once', async () => {
    const who = createTestUser();
    const isMade: Hook = (exchange) => void exchange.server.makeJob(exchange);
    const isAnswered: Hook = (exchange) => exchange.honestly();
    const submits = [isMade, fault.hang(), isMade, isAnswered];
    const [first, ...repeated] = await lostTogether(who, submits);
    const other = { ...first, prompt: flat({ prefix: 'another graph' }) } as Body;
    await expectAnotherAtOnce(who, other);
    await Promise.all(
      repeated.map(async (body) => {
        const { status, body: answer } = await postPrompt(url(0), body, who);
        expect([status, answer.prompt_id]).toEqual([200, body.prompt_id]);
        const mine = [[answer.number, body.prompt_id]];
        for (const index of [0, 1]) await expect.poll(() => listed(who, index, body)).toEqual(mine);
        await expect.poll(() => jobsOf(replicas.upstream, body.prompt_id)).toHaveLength(1);
      }),
    );
    // The lost one is listed once it is taken over.
    await expect.poll(() => listed(who, 0, other)).toHaveLength(2);
  });

  // A prompt waits behind those of its user that are still taken over: the next users are others.
  test('an id whose prompt was answered can be used again at once', async () => {
    const who = createTestUser('second');
    const body = bodyOf(who);
    expect((await postPrompt(url(1), body, who)).status).toBe(200);
    await expectAnotherAtOnce(who, body);
    expect(await listed(who, 0, body)).toHaveLength(2);
  });

  test('a prompt that another server refused meanwhile is sent again', async () => {
    const who = createTestUser('third');
    const body = bodyOf(who);
    const asked = () => replicas.upstream.requests('submit').length;
    const before = asked();
    replicas.upstream.once('submit', fault.late(500, fault.refuse(422, 'invalid_workflow')));
    const refused = postPrompt(url(1), body, who);
    await expect.poll(asked).toBe(before + 1);
    const again = postPrompt(url(0), body, who);
    expect((await refused).status).toBe(400);
    expect((await again).status).toBe(200);
    expect(await listed(who, 0, body)).toHaveLength(1);
  });

  async function expectAnotherAtOnce(who: TestUser, body: Body): Promise<void> {
    const made = () => jobsOf(replicas.upstream, prefixOf(body.prompt)).length;
    const before = made();
    const startedAtMs = Date.now();
    const { status } = await postPrompt(url(0), body, who);
    expect(status).toBe(200);
    expect(Date.now() - startedAtMs).toBeLessThan(SOON_MS);
    expect(made()).toBe(before + 1);
  }
});
