// All servers show the same queue. A prompt taken out of it at one server is out of it at all others when the call is
// answered.
import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Hook, fault } from '../support/upstreams/hostile-v2.ts';
import { staysRunning } from '../support/upstreams/job-scripts.ts';
import { redisMissing } from '../support/processes/redis.ts';
import { type TestUser, createTestUser, useReplicas } from '../support/processes/replicas.ts';

vi.setConfig({ testTimeout: 40_000, hookTimeout: 90_000 });

/** The server that follows a prompt learns so late how its job ended. */
const LATE_MS = 200;

const hosted = (promptId: string) => ['/api/queue', { delete: [promptId] }] as const;
const CALLS: { title: string; call: (id: string) => readonly [string, object]; runs: boolean }[] = [
  { title: 'POST /queue, delete', call: (id) => ['/queue', { delete: [id] }], runs: false },
  { title: 'POST /queue, clear', call: () => ['/queue', { clear: true }], runs: false },
  { title: 'POST /api/queue, delete', call: hosted, runs: true },
  { title: 'POST /interrupt', call: (id) => ['/interrupt', { prompt_id: id }], runs: true },
  { title: 'POST /api/jobs/:id/cancel', call: (id) => [`/api/jobs/${id}/cancel`, {}], runs: true },
  {
    title: 'POST /api/jobs/cancel',
    call: (id) => ['/api/jobs/cancel', { job_ids: [id] }],
    runs: true,
  },
];

describe.skipIf(redisMissing() !== '')(`three replicas${redisMissing()}`, () => {
  const replicas = useReplicas();

  const url = (index: number) => replicas.holdover(index % 3).url;

  async function call(
    at: number,
    [path, body]: readonly [string, object],
    // In hosted form: there a delete cancels a prompt that runs.
    key: Record<string, string> = { 'X-API-Key': '' },
  ): Promise<number> {
    const headers = { 'Content-Type': 'application/json', ...key };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const startedAtMs = Date.now();
    expect((await fetch(url(at) + path, init)).status).toBe(200);
    return Date.now() - startedAtMs;
  }

  async function posted(who: TestUser, at: number, runs: boolean): Promise<string> {
    replicas.upstream.script(runs ? staysRunning : undefined);
    const promptId = await who.post(url(at));
    const shown = async () => (await who.get(`${url(at)}/api/jobs/${promptId}`)).status;
    await expect.poll(shown).toBe(runs ? 'in_progress' : 'pending');
    return promptId;
  }

  function answering(route: 'get' | 'cancel', hook: Hook): void {
    replicas.upstream.always(route, hook);
    onTestFinished(() => replicas.upstream.always(route, (exchange) => exchange.honestly()));
  }

  // Each server follows some of the prompts.
  test.each(CALLS.map((one, at) => ({ ...one, at })))(
    '$title: it is in history and nowhere else',
    async ({ call: asked, runs, at }) => {
      const who = createTestUser();
      answering('get', fault.late(LATE_MS));
      const promptId = await posted(who, at, runs);
      await call(at + 1, asked(promptId));
      const [queue, left, history] = await Promise.all([
        who.get(`${url(at + 2)}/queue`),
        who.get(`${url(at + 2)}/prompt`),
        who.get(`${url(at + 2)}/history/${promptId}`),
      ]);
      expect(queue).toEqual({ queue_running: [], queue_pending: [] });
      expect(left.exec_info.queue_remaining).toBe(0);
      expect(history).toHaveProperty(promptId);
    },
  );

  test('a call does not wait for a job that stops slowly', async () => {
    const who = createTestUser();
    answering('cancel', ({ id, server, json }) => json(200, server.jobs.get(id)));
    const promptId = await posted(who, 0, true);
    expect(await call(1, hosted(promptId))).toBeLessThan(500);
    replicas.upstream.change(promptId, { status: 'canceled' });
  });

  test('a call waits two seconds for a service that reports an end and never shows it', async () => {
    const who = createTestUser();
    const promptId = await posted(who, 0, true);
    answering('get', fault.hang());
    expect(await call(0, hosted(promptId))).toBeLessThan(3000);
  });

  // Whose turn it is, is the same at every server, also among equal numbers.
  test.each([
    { title: 'equal numbers', more: { number: 50 } },
    { title: 'numbers of their own', more: {} },
  ])(
    '$title: all servers show the same queue, and each can end the prompts of the others',
    async ({ more }) => {
      replicas.upstream.script(undefined);
      const who = createTestUser(randomUUID());
      // At the same time, four at each.
      await Promise.all([...Array(12).keys()].map((i) => who.post(url(i), more)));
      const [one, ...others] = await Promise.all([0, 1, 2].map((at) => shownAt(who, at)));
      expect(one?.runs).toHaveLength(1);
      expect(one?.waits).toHaveLength(11);
      for (const other of others) expect(other).toEqual(one);
      await call(1, ['/interrupt', {}], who.headers);
      expect(Object.keys(await who.get(`${url(2)}/history`))).toEqual(one?.runs);
      await call(0, ['/queue', { clear: true }], who.headers);
    },
  );

  async function shownAt(who: TestUser, at: number) {
    const { queue_running, queue_pending } = await who.get(`${url(at)}/queue`);
    const ids = (items: [number, string][]) => items.map(([, id]) => id);
    return { runs: ids(queue_running), waits: ids(queue_pending) };
  }
});
