import type { ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import type { JobEvent } from '../../../src/protocol/job-api.ts';
import {
  type Hook,
  error,
  fault,
  frame,
  output,
  startSse,
} from '../../support/upstreams/hostile-v2.ts';
import { collect, value, words } from '../../support/app/jobs.ts';
import { CALLER, CANARY, type Opened, PATIENT, asked, openRemote } from './open.ts';

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const STATUS = {
  running: frame('status', { status: 'running' }),
  succeeded: frame('status', { status: 'succeeded' }),
};
const DONE = { status: 'succeeded', outputs: [output()] };

/** A job that is running when the client first asks, and done as soon as its stream is opened. */
function running({ upstream }: Opened): string {
  return upstream.addJob({ status: 'running' }).id;
}

/** Ends the job, then says so or something else. */
function doneThen(hook: Hook): Hook {
  return (exchange) => {
    exchange.server.change(exchange.id, DONE);
    return hook(exchange);
  };
}

const statuses = (events: readonly JobEvent[]): readonly string[] =>
  words(events.filter(({ event }) => event === 'status'));

describe('the end of a job', () => {
  test('the end is announced when the stream says it, and reported when the job does', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('events', doneThen(fault.sse(STATUS.running + STATUS.succeeded)));
    const events = await collect(remote, running({ upstream, remote }), CALLER);
    expect(events.filter(({ event }) => event === 'status').map(({ data }) => data)).toEqual([
      { status: 'running' },
      { status: 'running', x_ends: true },
      { status: 'succeeded' },
    ]);
  });

  test('a terminal status that carries its job is the end: no question, all outputs, once', async () => {
    const opened = await openRemote({ limits: { snapshotMs: 10_000 } });
    const { upstream, remote } = opened;
    const id = running(opened);
    upstream.always('events', (exchange) => {
      exchange.server.change(id, { ...DONE, outputs: [output(), output({ id: 'out-2' })] });
      const ended = frame('status', exchange.server.jobs.get(id) ?? {});
      return fault.sse(STATUS.running + frame('output', output()) + ended, 'hold')(exchange);
    });
    const events = await collect(remote, id, CALLER);
    expect(words(events)).toEqual(['status running', 'output 9', 'output 9', 'status succeeded']);
    expect(value(await remote.get(CALLER, id)).outputs).toHaveLength(2);
    // One told the first listener that there is such a job.
    expect(upstream.requests('get')).toHaveLength(1);
  });

  test.each<[string, object]>([
    ['of another job', { id: 'other' }],
    ['without outputs', { outputs: null }],
    ['said to be expired', { status: 'expired' }],
  ])('a job %s in a terminal status is asked about', async (_, fields) => {
    const opened = await openRemote({ limits: { snapshotMs: 10_000 } });
    const { upstream, remote } = opened;
    const id = running(opened);
    upstream.always('events', (exchange) => {
      exchange.server.change(id, DONE);
      const ended = frame('status', { ...exchange.server.jobs.get(id), ...fields });
      return fault.sse(STATUS.running + ended)(exchange);
    });
    const events = await collect(remote, id, CALLER);
    expect(statuses(events).at(-1)).toBe('status succeeded');
    expect(words(events)).toContain('output 9');
    expect(upstream.requests('get').length).toBeGreaterThan(1);
  });
});

test.each(['answered', 'refused'])(
  'outputs that a service adds while it ends its stream are in the job, when a read meanwhile is %s',
  async (kind) => {
    const streamCheckMs = { opening: 20, first: 20, last: 20 };
    const opened = await openRemote({ limits: { streamCheckMs, afterTerminalMs: 5_000 } });
    const { upstream, remote } = opened;
    upstream.always('get', async (exchange) => {
      if (upstream.requests('get').length !== 2) return exchange.honestly();
      await sleep(40);
      return kind === 'answered'
        ? exchange.honestly()
        : fault.refuse(500, 'internal_error')(exchange);
    });
    upstream.always('events', async ({ res, server, id }) => {
      startSse(res);
      res.write(STATUS.running);
      await asked(upstream, 'get', 2); // This read is answered after the end was streamed.
      server.change(id, { status: 'succeeded' });
      res.write(STATUS.succeeded);
      await sleep(150);
      server.change(id, DONE);
      res.end(frame('output', output()));
    });
    expect(words(await collect(remote, running(opened), CALLER))).toContain('output 9');
  },
);

test('a read that overtakes the last events of a stream does not end the job without them', async () => {
  const streamCheckMs = { opening: 20, first: 20, last: 20 };
  const opened = await openRemote({ limits: { streamCheckMs } });
  const { upstream, remote } = opened;
  upstream.always('events', async ({ res, server, id }) => {
    startSse(res);
    res.write(STATUS.running);
    server.change(id, DONE);
    await asked(upstream, 'get', 2);
    await sleep(30);
    res.end(frame('progress', { value: 1, nodes_done: 2, nodes_total: 2 }) + STATUS.succeeded);
  });
  const events = await collect(remote, running(opened), CALLER);
  expect(words(events)).toContain('progress 2/2 - -');
});

test('a job that ends right after the first state of its stream is read soon', async () => {
  const streamCheckMs = { opening: 60, first: 600_000, last: 600_000 };
  const opened = await openRemote({ limits: { streamCheckMs, streamIdleTimeoutMs: 600_000 } });
  const { upstream, remote } = opened;
  upstream.always('events', ({ res, server, id }) => {
    startSse(res);
    res.write(STATUS.running);
    server.change(id, DONE);
  });
  const events = await collect(remote, running(opened), CALLER);
  expect(statuses(events).at(-1)).toBe('status succeeded');
});

describe('a stream that breaks', () => {
  test('an event that is nested without end is left out, and the next one is read', async () => {
    const opened = await openRemote();
    const { upstream, remote } = opened;
    const nested = '['.repeat(9_000) + ']'.repeat(9_000);
    const progress = `{"value":0.5,"nodes_done":1,"nodes_total":2,"x_nested":${nested}}`;
    const preview = { node_id: '3', content_type: 'image/png', data_base64: 'iVBORw0KGgo=' };
    upstream.always(
      'events',
      doneThen(({ res }) => {
        res.writeHead(200, { 'Content-Type': 'text/event-stream' });
        // In one piece: the events are read as soon as there is a reader.
        res.end(frame('progress', progress) + frame('preview', preview) + STATUS.succeeded);
      }),
    );
    const events = await collect(remote, running(opened), CALLER);
    expect(words(events)).toContain('preview 3');
    expect(words(events).at(-1)).toBe('status succeeded');
  });

  test('drops are followed by waits that grow', async () => {
    const opened = await openRemote({ limits: { reconnectMs: { first: 40, last: 5_000 } } });
    const { upstream, remote } = opened;
    const id = running(opened);
    upstream.always('events', fault.sse(STATUS.running));
    setTimeout(() => upstream.change(id, DONE), 500);
    await collect(remote, id, CALLER);
    expect(upstream.requests('events').length).toBeLessThanOrEqual(6);
  });
});

describe('what streams say', () => {
  const corpus: [string, string | Buffer, readonly string[]][] = [
    ['a preview of no node', preview({ node_id: '' }), ['preview ']],
    ['a preview', preview({ node_id: '9' }), ['preview 9']],
    ['an output without id', frame('output', output({ id: null })), []],
    ['CR', frame('progress', step(4)).replaceAll('\n', '\r'), ['progress 0/1 9 4']],
    [
      'no space after the colon',
      frame('progress', step(5)).replaceAll(': {', ':{'),
      ['progress 0/1 9 5'],
    ],
    ['zeros', frame('progress', { value: 0, nodes_done: 0, nodes_total: 0 }), []],
    ['UTF-8 in pieces', frame('x_text', { node_id: '9', text: 'größer 🌄' }), ['x_text 9']],
    ['node events', frame('x_node', { node_id: '9', phase: 'started' }), ['started 9']],
    [
      'mixed scales',
      frame('progress', {
        value: 0.9,
        nodes_done: 0,
        nodes_total: 0,
        current_node: '9',
        step: 9,
        steps: 10,
      }) + frame('progress', { value: 0.5, nodes_done: 1, nodes_total: 2 }),
      ['progress 0/0 9 9', 'progress 1/2 - -'],
    ],
  ];

  test.each(
    corpus.flatMap(([name, text, expected]) =>
      [1, 7, 100_000].map((size) => [name, size, text, expected] as const),
    ),
  )('%s, in chunks of %i', async (_name, size, text, expected) => {
    const opened = await openRemote({ limits: { streamIdleTimeoutMs: 5_000 } });
    const { upstream, remote } = opened;
    const whole = Buffer.concat([Buffer.from('\ufeff' + STATUS.running), Buffer.from(text)]);
    upstream.always('events', doneThen(fault.sse(whole, 'close', size)));
    const id = running(opened);
    const events = await collect(remote, id, CALLER);
    const said = words(events).slice(1, -1);
    expect(said.filter((word) => word !== 'output 9' || expected.includes(word))).toEqual(expected);
  });

  test('an answer that an event of the stream overtakes is out of date', async () => {
    const { upstream, remote } = await openRemote({
      limits: { streamCheckMs: { opening: 40, first: 40, last: 40 } },
    });
    const { id } = upstream.addJob({ status: 'running', progress: step(1) });
    let stream: ServerResponse | undefined;
    let reads = 0;
    upstream.always('events', ({ res }) => {
      startSse(res);
      res.write(STATUS.running + frame('progress', step(1)));
      stream = res;
    });
    upstream.always('get', async (exchange) => {
      // The read beside the silent stream.
      if (stream === undefined || reads++ > 0) return exchange.honestly();
      const before = structuredClone(exchange.server.jobs.get(id));
      exchange.server.change(id, { progress: step(2) });
      stream.write(frame('progress', step(2)));
      await sleep(30);
      exchange.json(200, before);
      await sleep(30);
      exchange.server.change(id, DONE);
      stream.end(STATUS.succeeded);
    });
    const events = await collect(remote, id, CALLER);
    expect(words(events)).toEqual([
      'status running',
      'progress 0/1 9 1',
      'progress 0/1 9 2',
      'output 9',
      'status succeeded',
    ]);
  });
});

describe('who shares what', () => {
  test('another account has a stream of its own', async () => {
    const opened = await openRemote();
    const { upstream, remote } = opened;
    const id = running(opened);
    void asked(upstream, 'events', 2).then(() => upstream.change(id, DONE));
    await Promise.all([
      collect(remote, id, CALLER),
      collect(remote, id, { user: 'ben', credential: 'key-of-ben' }),
    ]);
    const keys = upstream.requests('events').map(({ headers }) => headers['authorization']);
    expect(new Set(keys).size).toBe(2);
  });

  test('the last listener to go takes the stream along', async () => {
    const opened = await openRemote();
    const { upstream, remote } = opened;
    const id = running(opened);
    upstream.always('events', fault.sse(STATUS.running, 'hold'));
    const stop = new AbortController();
    const events = value(await remote.events(CALLER, id, stop.signal))[Symbol.asyncIterator]();
    await events.next();
    stop.abort();
    await expect.poll(() => upstream.streams.open).toBe(0);
    const before = upstream.journal.length;
    await sleep(100);
    expect(upstream.journal.length).toBe(before);
  });
});

describe('not enough streams', () => {
  test('never more than six; all jobs finish', async () => {
    const { upstream, remote } = await openRemote();
    const ids = Array.from({ length: 20 }, () => upstream.addJob({ status: 'running' }).id);
    upstream.always('events', holdUntilDone);
    const listening = ids.map((id) => collect(remote, id, CALLER));
    await expect.poll(() => upstream.streams.open, PATIENT).toBe(6);
    for (const id of ids) upstream.change(id, DONE);
    for (const events of await Promise.all(listening)) {
      expect(statuses(events).at(-1)).toBe('status succeeded');
    }
    expect(upstream.streams.most).toBe(6);
  });

  test('too_many_streams: the cap is learned, the others are polled, none is lost', async () => {
    const { upstream, remote } = await openRemote();
    const ids = Array.from({ length: 10 }, () => upstream.addJob({ status: 'running' }).id);
    upstream.always('events', (exchange) =>
      exchange.server.streams.open >= 2
        ? exchange.json(429, error('too_many_streams'), { 'Retry-After': '5' })
        : holdUntilDone(exchange),
    );
    const listening = ids.map((id) => collect(remote, id, CALLER));
    await asked(upstream, 'events', 3);
    for (const id of ids) upstream.change(id, DONE);
    for (const events of await Promise.all(listening)) {
      expect(statuses(events).at(-1)).toBe('status succeeded');
    }
    expect(upstream.streams.most).toBe(2);
    expect(upstream.requests('events').length).toBeLessThan(20);
  });

  test.each([
    ['rate_limited', fault.refuse(429, 'rate_limited', { 'Retry-After': '1' })],
    ['a 429 page', fault.html(429)],
  ])('%s: all of the account waits, and no other', async (_, hook) => {
    const opened = await openRemote({ limits: { defaultRetryAfterMs: 300, readBudgetMs: 50 } });
    const { upstream, remote } = opened;
    upstream.always('events', holdUntilDone);
    upstream.of(CANARY).once('events', hook);
    const ids = [running(opened), running(opened)] as const;
    const listening = collect(remote, ids[0], CALLER);
    await asked(upstream, 'events', 1);
    const [refused] = upstream.requests('events');
    await sleep(30);
    const second = collect(remote, ids[1], CALLER).catch(() => []);
    const theirs = collect(remote, ids[1], { user: 'ben', credential: 'key-of-ben' });
    await asked(upstream, 'events', 3);
    for (const id of ids) upstream.change(id, DONE);
    await Promise.all([second, theirs]);
    expect(statuses(await listening).at(-1)).toBe('status succeeded');
    const after = upstream.journal.filter(({ atMs }) => atMs > (refused?.atMs ?? 0));
    const waits = (account: string) =>
      after.filter((call) => call.account === account).map(({ atMs }) => atMs - refused!.atMs);
    expect(Math.min(...waits(CANARY))).toBeGreaterThanOrEqual(290);
    expect(Math.min(...waits('key-of-ben'))).toBeLessThan(250);
  });

  test.each([
    ['whose key is refused', fault.refuse(401, 'unauthorized')],
    ['that is refused', fault.refuse(403, 'forbidden')],
    ['whose account has to pause', fault.refuse(429, 'rate_limited', { 'Retry-After': '20' })],
  ])('a job %s leaves its turn for a stream to the next', async (_, refusal) => {
    const { upstream, remote } = await openRemote({
      limits: {
        maxStreams: 1,
        streamIdleTimeoutMs: 60_000,
        refusedPauseMs: 20_000,
        maxRetryAfterMs: 20_000,
        readBudgetMs: 50,
      },
    });
    upstream.always('events', holdUntilDone);
    const [held, refused, next] = ['ada', 'ben', 'cleo'].map((user) => ({
      id: upstream.addJob({ status: 'running' }).id,
      caller: { user, credential: `key-of-${user}` },
    }));
    const follow = ({ id, caller } = held!) => collect(remote, id, caller);
    const listening = follow(held);
    await asked(upstream, 'events', 1);
    void follow(refused).catch(() => []);
    await vi.waitUntil(() => upstream.of('key-of-ben').requests('get').length >= 3, PATIENT);
    upstream.of('key-of-ben').always('get', refusal);
    const polls = upstream.of('key-of-ben').requests('get').length;
    await vi.waitUntil(() => upstream.of('key-of-ben').requests('get').length > polls, PATIENT);
    const theirs = follow(next);
    await vi.waitUntil(() => upstream.of('key-of-cleo').requests('get').length >= 3, PATIENT);
    upstream.change(held!.id, DONE);
    await listening;
    await vi.waitUntil(() => upstream.of('key-of-cleo').requests('events').length > 0, PATIENT);
    upstream.change(next!.id, DONE);
    await theirs;
  });

  test.each([
    ['501', fault.refuse(501, 'not_implemented')],
    ['a 404 page', fault.html(404)],
    ['405', fault.refuse(405, 'method_not_allowed')],
    ['a login page', fault.html(200)],
  ])('%s: polled from then on, asked for a stream once', async (_, hook) => {
    const opened = await openRemote();
    const { upstream, remote } = opened;
    upstream.always('events', hook);
    for (const _job of [1, 2]) {
      const id = running(opened);
      const polls = upstream.requests('get').length + 2;
      const done = { ...DONE, progress: { value: 1 } };
      void asked(upstream, 'get', polls).then(() => upstream.change(id, done));
      const events = await collect(remote, id, CALLER);
      expect(words(events)).toEqual(['status running', 'output 9', 'status succeeded']);
    }
    expect(upstream.requests('events')).toHaveLength(1);
  });

  test('after its time an upstream without streams is asked again', async () => {
    const opened = await openRemote({ limits: { pollOnlyMs: 100 } });
    const { upstream, remote } = opened;
    upstream.once('events', fault.refuse(501, 'not_implemented'));
    const id = running(opened);
    void asked(upstream, 'events', 2).then(() => upstream.change(id, DONE));
    await collect(remote, id, CALLER);
    expect(upstream.requests('events')).toHaveLength(2);
  });
});

const holdUntilDone: Hook = async (exchange) => {
  const { res, server, id } = exchange;
  await fault.sse(STATUS.running, 'hold')(exchange);
  while (!res.destroyed && server.jobs.get(id)?.status === 'running') await sleep(10);
  res.end(STATUS.succeeded);
};

function step(at: number): object {
  return { value: 0.5, nodes_done: 0, nodes_total: 1, current_node: '9', step: at, steps: 10 };
}

function preview(fields: object): string {
  const data_base64 = Buffer.from('3e5 picture').toString('base64');
  return frame('preview', { content_type: 'image/jpeg', data_base64, ...fields });
}
