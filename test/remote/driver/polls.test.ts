import { describe, expect, test, vi } from 'vitest';
import { fault, output } from '../../support/upstreams/hostile-v2.ts';
import { collect, value, words } from '../../support/app/jobs.ts';
import { CALLER, CANARY, PATIENT, asked, openRemote } from './open.ts';

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const DONE = { status: 'succeeded', outputs: [output()] };

/** An upstream without streams. */
async function openPolled(limits: NonNullable<Parameters<typeof openRemote>[0]>['limits'] = {}) {
  const opened = await openRemote({ limits });
  opened.upstream.always('events', fault.refuse(501, 'not_implemented'));
  return opened;
}

const BEN = { user: 'ben', credential: 'key-of-ben' };

describe('without a stream', () => {
  test('snapshots become the same events', async () => {
    const { upstream, remote } = await openPolled();
    const { id } = upstream.addJob();
    const listening = collect(remote, id, CALLER);
    await asked(upstream, 'get', 2);
    upstream.change(id, {
      status: 'running',
      progress: { value: 0.5, nodes_done: 1, nodes_total: 2 },
    });
    await asked(upstream, 'get', upstream.requests('get').length + 2);
    upstream.change(id, { outputs: [output()] });
    await asked(upstream, 'get', upstream.requests('get').length + 2);
    upstream.change(id, {
      status: 'succeeded',
      outputs: [output(), output({ id: 'o2', node_id: '5' })],
    });
    expect(words(await listening)).toEqual([
      'status queued',
      'status running',
      'progress 1/2 - -',
      'output 9',
      'output 5',
      'status succeeded',
    ]);
  });

  test.each([
    ['500', fault.refuse(500, 'upstream_error')],
    ['a login page', fault.html()],
    ['half an answer', fault.cut(4, { id: 'x' }, 200)],
    ['silence', fault.hang()],
  ])('%s in between says nothing of the job', async (_, hook) => {
    const { upstream, remote } = await openPolled();
    const { id } = upstream.addJob({ status: 'running' });
    const listening = collect(remote, id, CALLER);
    await asked(upstream, 'get', 2);
    upstream.once('get', hook, hook);
    upstream.change(id, DONE);
    expect(words(await listening)).toEqual(['status running', 'output 9', 'status succeeded']);
  });

  test.each([1, 3])(
    'a poll that fails %i times is repeated soon while a client listens',
    async (times) => {
      const { upstream, remote } = await openPolled({ pollMs: slow(600_000), failedReadMs: 30 });
      const { id } = upstream.addJob();
      const failures = Array.from({ length: times }, () => fault.refuse(500, 'upstream_error'));
      upstream.once('get', (exchange) => exchange.honestly(), ...failures);
      const listening = collect(remote, id, CALLER);
      await asked(upstream, 'get', 2);
      upstream.change(id, DONE);
      expect(words(await listening).at(-1)).toBe('status succeeded');
    },
  );

  test('a poll that fails with a Retry-After is not repeated before, nor is a stream opened', async () => {
    const { upstream, remote } = await openRemote({ limits: { pollOnlyMs: 20, failedReadMs: 30 } });
    upstream.always('events', fault.refuse(501, 'not_implemented'));
    const { id } = upstream.addJob();
    const pause = fault.refuse(503, 'upstream_error', { 'Retry-After': '1' });
    upstream.once('get', (exchange) => exchange.honestly(), pause);
    const listening = collect(remote, id, CALLER);
    await asked(upstream, 'get', 3);
    upstream.change(id, DONE);
    await listening;
    const [, refused] = upstream.requests('get');
    const later = upstream.journal.filter(({ atMs }) => atMs > (refused?.atMs ?? 0));
    expect((later[0]?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeGreaterThanOrEqual(280);
  });

  test('the reads of all live jobs stay within the rate of their upstream', async () => {
    const { upstream, remote } = await openPolled({ failedReadMs: 1, readsPerSecond: 40 });
    const ids = Array.from({ length: 30 }, () => upstream.addJob({ status: 'running' }).id);
    const listening = ids.map((id) => collect(remote, id, CALLER));
    // A second read says that the first one was answered: without it the stream ends with an error.
    const isRead = (id: string) =>
      upstream.requests('get').filter(({ path }) => path.includes(id)).length > 1;
    await vi.waitUntil(() => ids.every(isRead), PATIENT);
    upstream.always('get', fault.refuse(500, 'upstream_error'));
    const before = upstream.requests('get').length;
    const sinceMs = performance.now();
    await sleep(1_000);
    // Without the limit there are thousands.
    const seconds = (performance.now() - sinceMs) / 1_000;
    expect(upstream.requests('get').length - before).toBeLessThanOrEqual(2 * 40 * seconds);
    upstream.always('get', (exchange) => exchange.honestly());
    ids.forEach((id) => upstream.change(id, DONE));
    for (const events of await Promise.all(listening))
      expect(words(events).at(-1)).toBe('status succeeded');
  });

  test.each(['polled', 'streamed'] as const)(
    'a job that may not be read, %s, is asked about once in a pause, and the others go on',
    async (how) => {
      const options = { refusedPauseMs: 400 };
      const { upstream, remote } = await (how === 'polled'
        ? openPolled(options)
        : openRemote({ limits: options }));
      const [kept, other] = [1, 2].map(() => upstream.addJob({ status: 'running' }).id) as [
        string,
        string,
      ];
      const listening = [kept, other].map((id) => collect(remote, id, CALLER));
      await asked(upstream, how === 'polled' ? 'get' : 'events', 2);
      for (const route of ['get', 'events'] as const) {
        upstream.always(route, (exchange) =>
          exchange.id === kept ? fault.refuse(403, 'forbidden')(exchange) : exchange.honestly(),
        );
      }
      const count = (id: string): number =>
        upstream.journal.filter(({ path }) => path.includes(id)).length;
      // By then silent streams have been given up too.
      await sleep(600);
      const before = count(kept);
      const sinceMs = performance.now();
      for (let i = 0; i < 10; i++) {
        expect(await remote.get(CALLER, kept)).toMatchObject({ error: { status: 403 } });
        await sleep(100);
      }
      const pauses = (performance.now() - sinceMs) / 400;
      expect(count(kept) - before).toBeLessThanOrEqual(1 + Math.ceil(pauses));
      expect(count(kept) - before).toBeGreaterThan(0);
      expect((await remote.get(CALLER, other)).ok).toBe(true);
      for (const route of ['get', 'events'] as const) {
        upstream.always(route, (exchange) => exchange.honestly());
      }
      for (const id of [kept, other]) upstream.change(id, DONE);
      for (const events of await Promise.all(listening)) {
        expect(words(events).at(-1)).toBe('status succeeded');
      }
    },
  );

  test('403 sso_required pauses all of the account', async () => {
    const { upstream, remote } = await openRemote();
    const ids = [upstream.addJob().id, upstream.addJob().id];
    upstream.always('get', fault.refuse(403, 'sso_required'));
    for (const id of ids) {
      expect(await remote.get(CALLER, id)).toMatchObject({ error: { code: 'sso_required' } });
    }
    expect(upstream.requests('get')).toHaveLength(1);
  });

  test('a refused key is reported at once, and another key is not held back by it', async () => {
    const { upstream, remote } = await openRemote();
    const { id } = upstream.addJob();
    upstream.always('get', (exchange) =>
      exchange.req.headers.authorization === `Bearer ${CANARY}`
        ? fault.refuse(401, 'unauthorized')(exchange)
        : exchange.honestly(),
    );
    for (let i = 0; i < 5; i++) {
      expect(await remote.get(CALLER, id)).toMatchObject({ error: { status: 401 } });
    }
    expect(upstream.requests('get')).toHaveLength(1);
    expect((await remote.get(BEN, id)).ok).toBe(true);
  });
});

describe('an account that has to pause', () => {
  test('429 on one read holds back all of the account, and no other', async () => {
    const { upstream, remote } = await openRemote();
    const ids = [1, 2, 3].map(() => upstream.addJob().id);
    upstream.once('get', fault.refuse(429, 'rate_limited', { 'Retry-After': '1' }));
    const first = remote.get(CALLER, ids[0]!);
    await asked(upstream, 'get', 1);
    await sleep(30);
    const others = [remote.get(CALLER, ids[1]!), remote.get(CALLER, ids[2]!)];
    value(await remote.get(BEN, ids[0]!));
    await Promise.all([first, ...others]);
    const anna = upstream
      .requests('get')
      .filter(({ headers }) => headers['authorization'] === `Bearer ${CANARY}`);
    expect(anna).toHaveLength(4);
    const [refused, ...after] = anna.map(({ atMs }) => atMs);
    expect(Math.min(...after) - (refused ?? 0)).toBeGreaterThanOrEqual(280);
  });

  test('a pause longer than a read waits is reported with its Retry-After', async () => {
    const { upstream, remote } = await openRemote({ limits: { readBudgetMs: 50 } });
    const { id } = upstream.addJob();
    upstream.always('get', fault.refuse(429, 'rate_limited', { 'Retry-After': '9' }));
    expect(await remote.get(CALLER, id)).toMatchObject({
      error: { status: 429, code: 'rate_limited', retryAfterSeconds: 9 },
    });
    expect(upstream.requests('get')).toHaveLength(1);
  });
});

describe('reads', () => {
  test.each([
    ['reset', fault.reset(), 'upstream_unreachable'],
    ['silence', fault.hang(), 'upstream_unreachable'],
    ['a login page', fault.html(), 'bad_upstream_response'],
    ['a 502 page', fault.html(502), 'upstream_error'],
  ])('%s is a value, without anybody else’s words', async (_, hook, code) => {
    const { upstream, remote } = await openRemote();
    upstream.always('get', hook);
    const answer = await remote.get(CALLER, 'any');
    expect(answer).toMatchObject({ ok: false, error: { code } });
    expect(JSON.stringify(answer)).not.toMatch(/127\.0\.0\.1|log in|canary/);
  });

  test('an answer that trickles in is given up', async () => {
    const { upstream, remote } = await openRemote({ limits: { readTimeoutMs: 100 } });
    upstream.always('get', async ({ res }) => {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      for (; !res.destroyed; await sleep(20)) res.write(' ');
    });
    expect(await remote.get(CALLER, 'x')).toMatchObject({
      error: { code: 'upstream_unreachable' },
    });
  });

  test.each(['job_not_found', 'not_found'])('404 %s is not_found', async (code) => {
    const { upstream, remote } = await openRemote();
    upstream.always('get', fault.refuse(404, code));
    expect(await remote.get(CALLER, 'x')).toMatchObject({
      error: { status: 404, code: 'not_found' },
    });
  });

  test('what a server adds to a refusal is kept as details', async () => {
    const { upstream, remote } = await openRemote();
    const body = { error: { code: 'sso_required', message: 'sign in', organization_id: 'o1' } };
    upstream.always('get', ({ json }) => json(403, body));
    expect(await remote.get(CALLER, 'x')).toMatchObject({
      error: { status: 403, code: 'sso_required', details: { organization_id: 'o1' } },
    });
  });

  test('a service without a health route that answers is healthy; one that is gone or hangs is not', async () => {
    const { upstream, remote } = await openRemote({ limits: { readTimeoutMs: 60_000 } });
    upstream.once('health', fault.refuse(404, 'not_found'), fault.reset(), () => {});
    expect((await remote.health()).ok).toBe(true);
    expect(await remote.health()).toMatchObject({ error: { status: 503 } });
    expect(await remote.health()).toMatchObject({ error: { code: 'upstream_unreachable' } });
  });
});

describe('cancelling', () => {
  test('is repeated when it is lost', async () => {
    const { upstream, remote } = await openRemote();
    const { id } = upstream.addJob({ status: 'running' });
    upstream.once('cancel', fault.reset());
    expect(value(await remote.cancel(CALLER, id)).status).toBe('canceled');
  });
});

function slow(ms: number) {
  const pace = { first: ms, last: ms };
  return { watched: pace, unwatched: pace, queued: pace };
}
