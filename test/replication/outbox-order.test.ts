// Whose turn it is, is the same at every server, also among equal numbers.
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { nameOf } from '../support/upstreams/job-scripts.ts';
import { redisMissing } from '../support/processes/redis.ts';
import {
  type TestUser,
  type Replicas,
  createTestUser,
  openReplicas,
} from '../support/processes/replicas.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 90_000 });

const ROUNDS = 4;
const REPLICAS = [0, 1, 2];

describe.skipIf(redisMissing() !== '')(`three replicas${redisMissing()}`, () => {
  let replicas: Replicas;
  beforeAll(async () => void (replicas = await openReplicas()));
  afterAll(() => replicas?.close());

  const url = (index: number) => replicas.holdover(index % 3).url;

  /** Twelve at the same time, four at each. */
  async function postTwelve(who: TestUser, more: object): Promise<void> {
    await Promise.all([...Array(12).keys()].map((i) => who.post(url(i), more)));
  }

  type Shown = { readonly runs: string[]; readonly waits: string[] };

  async function shownAt(who: TestUser, index: number): Promise<Shown> {
    const { queue_running, queue_pending } = await who.get(`${url(index)}/queue`);
    const ids = (items: [number, string][]) => items.map(([, id]) => id);
    return { runs: ids(queue_running), waits: ids(queue_pending) };
  }

  async function call(index: number, path: string, body: object): Promise<void> {
    const headers = { 'Content-Type': 'application/json' };
    await fetch(url(index) + path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  test.each([
    { title: 'equal numbers', more: { number: 50 } },
    { title: 'numbers of their own', more: {} },
  ])(
    '$title: all servers show the same queue, and each can end the prompts of the others',
    async ({ more }) => {
      for (let round = 0; round < ROUNDS; round++) {
        const who = createTestUser();
        await postTwelve(who, more);
        const [one, ...others] = await Promise.all(REPLICAS.map((index) => shownAt(who, index)));
        expect(one?.runs).toHaveLength(1);
        expect(one?.waits).toHaveLength(11);
        for (const other of others) expect(other).toEqual(one);
        await call(1, '/interrupt', {});
        expect(Object.keys(await who.get(`${url(2)}/history`))).toEqual(one?.runs);
        await call(0, '/queue', { clear: true });
        await call(0, '/history', { clear: true });
      }
    },
  );

  test('prompts of equal numbers in the outboxes of several servers are submitted in the order of their arrival', async () => {
    const who = createTestUser();
    replicas.upstream.always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '0' }));
    const admit = () => replicas.upstream.always('submit', (exchange) => exchange.honestly());
    onTestFinished(admit);
    const before = replicas.upstream.jobs.size;
    const names = [...Array(9).keys()].map((i) => `came${i}`);
    for (const [i, prefix] of names.entries()) {
      await who.post(url(i), { prompt: flat({ prefix }), number: 7 });
    }
    admit();
    const made = () => [...replicas.upstream.jobs.values()].slice(before).map(nameOf);
    await expect.poll(made, { timeout: 20_000 }).toHaveLength(names.length);
    expect(made()).toEqual(names.map((name) => `${name}_00001_.png`));
  });
});
