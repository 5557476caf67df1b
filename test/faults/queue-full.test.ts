// Matrix B: an upstream without room. v1 clients expect surplus prompts to queue by themselves, so
// each of them is accepted; what the upstream makes of that is its own pace, never v1's 429.
import { describe, expect, onTestFinished, test } from 'vitest';
import { error, fault } from '../support/upstreams/hostile-v2.ts';
import { keyOf } from '../support/processes/invariants.ts';
import { finish, nameOf, staysRunning } from '../support/upstreams/job-scripts.ts';
import { type Client, testOneServer, useSharedSetup } from './open.ts';

const setup = useSharedSetup();

const theirs = (client: Client) => setup.upstream.of(client.key);
const FULL = ['queue_full', 'deployment_not_ready', 'rate_limited'] as const;

describe('no room for more', () => {
  test.each(FULL)(
    'F20 %s: accepted, pending as submitted, and run as soon as there is room',
    async (code) => {
      const client = await setup.client();
      const full = theirs(client);
      full.always('submit', fault.refuse(429, code, { 'Retry-After': '1' }));
      const { status, promptId, marker, json } = await client.post();
      expect([status, json.node_errors]).toEqual([200, {}]);
      const { running, pending } = await client.queue();
      expect([...running, ...pending]).toEqual([promptId]);
      expect(await client.word(promptId)).toBe('submitted');
      expect(await client.history(promptId)).toBeUndefined();
      full.always('submit', (exchange) => exchange.honestly());
      expect((await client.ended(promptId)).status.status_str).toBe('success');
      expect(client.jobs(marker)).toHaveLength(1);
      expect(new Set(full.requests('submit').map(keyOf)).size).toBe(1);
      expect(client.outline(promptId).at(0)).toBe('execution_start');
      await expect.poll(() => client.outline(promptId).at(-1)).toBe('executing:null');
    },
  );

  test('F20 the v2 id of a prompt that waited leads to it, too', async () => {
    const client = await setup.client();
    theirs(client).once('submit', fault.refuse(429, 'queue_full'));
    const { promptId, marker } = await client.post();
    await client.ended(promptId);
    const [job] = client.jobs(marker);
    expect(job?.id).not.toBe(promptId);
    expect(await client.word(job?.id ?? '')).toBe('success');
    expect(await client.history(job?.id ?? '')).toBeDefined();
  });

  test('F20 many that wait are run in the order they came', async () => {
    const client = await setup.client();
    const full = theirs(client);
    full.always('submit', fault.refuse(429, 'queue_full'));
    const posted = [];
    for (let i = 0; i < 6; i += 1) posted.push(await client.post());
    expect((await client.queue()).running.length).toBeLessThanOrEqual(1);
    full.always('submit', (exchange) => exchange.honestly());
    for (const { promptId } of posted) await client.ended(promptId);
    const made = full.jobs().map((job) => job['workflow']['9'].inputs.filename_prefix);
    expect(made).toEqual(posted.map(({ marker }) => marker));
  });

  test('F20 who comes when there is room again does not overtake those that wait', async () => {
    const client = await setup.client();
    const full = theirs(client);
    full.always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '1' }));
    const first = await client.post();
    full.always('submit', (exchange) => exchange.honestly());
    const second = await client.post();
    for (const { promptId } of [first, second]) await client.ended(promptId);
    expect(full.jobs().map(nameOf)).toEqual(
      [first, second].map(({ marker }) => `${marker}_00001_.png`),
    );
  });

  test('F20 front is before all that wait, and a number has its place', async () => {
    const client = await setup.client();
    const full = theirs(client);
    full.always('submit', fault.refuse(429, 'queue_full'));
    const [a, b] = [await client.post(), await client.post()];
    const front = await client.post({ more: { front: true } });
    const queue = await client.queue();
    expect(queue.pending.concat(queue.running).length).toBe(3);
    full.always('submit', (exchange) => exchange.honestly());
    for (const { promptId } of [a, b, front]) await client.ended(promptId);
    const made = full.jobs().map((job) => job['workflow']['9'].inputs.filename_prefix);
    expect(made.indexOf(front.marker)).toBeLessThan(made.indexOf(b.marker));
  });

  test('F20 a prompt that waits can be deleted: it never reaches the upstream, and ends as interrupted', async () => {
    const client = await setup.client();
    const full = theirs(client);
    full.always('submit', fault.refuse(429, 'queue_full'));
    const [first, second] = [await client.post(), await client.post()];
    expect((await client.say('/queue', { delete: [second.promptId] })).status).toBe(200);
    await client.ended(second.promptId);
    expect(await client.word(second.promptId)).toBe('cancelled');
    full.always('submit', (exchange) => exchange.honestly());
    await client.ended(first.promptId);
    expect(client.jobs(second.marker)).toHaveLength(0);
    await client.socket.untilDone(second.promptId);
    expect(client.outline(second.promptId)).toContain('execution_interrupted');
  });

  test('F20 one that is refused when its turn comes ends with execution_error, for the reason given', async () => {
    const client = await setup.client();
    const full = theirs(client);
    full.always('submit', fault.refuse(429, 'queue_full'));
    const { promptId } = await client.post();
    full.always('submit', ({ json }) =>
      json(402, error('insufficient_credits', 'Please add credits.')),
    );
    const entry = await client.ended(promptId);
    expect(entry.status.status_str).toBe('error');
    await client.socket.untilDone(promptId);
    const failed = await client.socket.until(
      (f) => f.kind === 'text' && f.type === 'execution_error' && f.data.prompt_id === promptId,
    );
    expect(failed).toMatchObject({
      data: {
        exception_type: 'InsufficientFundsError',
        exception_message: expect.stringContaining('Please add credits.'),
      },
    });
  });

  test(
    'F21 a storm: forty prompts are accepted, few of them knock, and all of them run',
    { timeout: 60_000 },
    async () => {
      const client = await setup.client();
      const full = theirs(client);
      full.always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '1' }));
      const posts = await Promise.all(Array.from({ length: 40 }, () => client.post()));
      expect(posts.map(({ status }) => status).filter((status) => status !== 200)).toEqual([]);
      // The clients' limit for Retry-After is 400 ms here; sixteen may be on their way at once.
      const windows = Math.ceil((Date.now() - (full.requests('submit')[0]?.atMs ?? 0)) / 400) + 1;
      expect(full.requests('submit').length).toBeLessThanOrEqual(16 + 2 * windows);
      expect((await client.ask('/queue')).json.queue_pending.length).toBeGreaterThanOrEqual(39);
      full.always('submit', (exchange) => exchange.honestly());
      for (const { promptId } of posts) await client.ended(promptId, 15_000);
      expect(full.jobs()).toHaveLength(40);
    },
  );

  test.each([
    ['absent', {}],
    ['0', { 'Retry-After': '0' }],
    ['99999999', { 'Retry-After': '99999999' }],
  ] as const)('F22 Retry-After %s neither hammers nor waits for ever', async (_, headers) => {
    const client = await setup.client();
    const full = theirs(client);
    full.always('submit', fault.refuse(429, 'queue_full', headers));
    const { promptId } = await client.post();
    await new Promise((resolve) => setTimeout(resolve, 450));
    // At least 60 ms apart here.
    expect(full.requests('submit').length).toBeLessThanOrEqual(9);
    full.always('submit', (exchange) => exchange.honestly());
    await client.ended(promptId, 3_000);
  });

  test.each([
    ['subscription_inactive', 'Your subscription is not active.', [429, null]],
    ['monthly_limit', 'Spent.', [503, '3600']],
  ])('429 %s is a refusal, at once', async (code, message, expected) => {
    const client = await setup.client();
    const retry = { 'Retry-After': '3600' };
    theirs(client).once('submit', ({ json }) =>
      json(429, error(code, message), code === 'monthly_limit' ? retry : {}),
    );
    const { status, headers } = await client.post();
    expect([status, headers.get('retry-after')]).toEqual(expected);
    expect(await client.queue()).toEqual({ running: [], pending: [] });
    expect(theirs(client).requests('submit')).toHaveLength(1);
  });
});

describe('limits on looking', () => {
  test('F23 429 on reads of a job: its progress pauses, its end is not lost', async () => {
    const client = await setup.client();
    const seen = theirs(client);
    setup.upstream.script(staysRunning, client.key);
    seen.always('events', fault.refuse(404, 'not_found'));
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.jobs(marker)[0]?.status).toBe('running');
    const limited = fault.refuse(429, 'rate_limited', { 'Retry-After': '2' });
    seen.always('get', limited);
    const before = seen.requests('get').length;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(seen.requests('get').length - before).toBeLessThanOrEqual(6);
    expect(client.outline(promptId)).not.toContain('execution_error');
    finish(setup.upstream, client.jobs(marker)[0]!);
    seen.always('get', (exchange) => exchange.honestly());
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    expect(client.outline(promptId)).toContain('executed:9');
  });
});

describe('little room of its own', () => {
  const narrow = useSharedSetup({
    args: ['--limits', '{"outboxPrompts":2}'],
    limits: { maxStreams: 2, streamIdleTimeoutMs: 30_000, bodyIdleTimeoutMs: 30_000 },
  });

  testOneServer(
    'a full outbox is 503 with Retry-After, also to many at once, and what is in it is not touched',
    async () => {
      const { upstream } = narrow;
      const client = await narrow.client();
      const admit = () => upstream.always('submit', (exchange) => exchange.honestly());
      onTestFinished(admit);
      upstream.always('submit', fault.refuse(429, 'queue_full'));
      const [a, b] = [await client.post(), await client.post()];
      const third = await client.post();
      expect([a.status, b.status, third.status]).toEqual([200, 200, 503]);
      expect(third.json.error.type).toBe('queue_full');
      expect(third.headers.get('retry-after')).toMatch(/^\d+$/);
      const other = await narrow.client();
      const theirsToo = await other.post();
      expect(theirsToo.status).toBe(200);
      admit();
      for (const { promptId } of [a, b]) await client.ended(promptId);
      await other.ended(theirsToo.promptId);
      await narrow.check();

      upstream.always('submit', fault.refuse(429, 'queue_full'));
      const posted = await Promise.all(Array.from({ length: 10 }, () => client.post()));
      expect(posted.filter(({ status }) => status === 200)).toHaveLength(2);
      expect(posted.filter(({ status }) => status === 503)).toHaveLength(8);
      admit();
      for (const { status, promptId } of posted) if (status === 200) await client.ended(promptId);
    },
  );

  test('F24 the streams go to jobs whose owner is listening', async () => {
    const { upstream } = narrow;
    const [away, here] = [await narrow.client(), await narrow.client()];
    for (const { key } of [away, here]) upstream.script(staysRunning, key);
    const unwatched = [await away.post(), await away.post()];
    await expect.poll(() => upstream.streams.open).toBe(2);
    await away.socket.close();
    const watched = await here.post();
    await expect
      .poll(() => upstream.of(here.key).requests('events').length, { timeout: 3_000 })
      .toBeGreaterThan(0);
    for (const { key } of [away, here])
      for (const job of upstream.of(key).jobs()) finish(upstream, job);
    await here.ended(watched.promptId);
    for (const { promptId } of unwatched) await away.ended(promptId);
  });
});

test('I1 to I10 hold over all of it', () => setup.check());
