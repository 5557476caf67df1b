// Whose turn it is, is the same at every server, also among equal numbers.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { redisMissing } from '../support/processes/redis.ts';
import {
  type TestUser,
  type Replicas,
  createTestUser,
  openReplicas,
} from '../support/processes/replicas.ts';

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
});
