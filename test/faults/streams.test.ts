// Matrix C: event streams that break, lie, stall or flood, as a v1 client on its socket sees it.
import { describe, expect, test } from 'vitest';
import {
  type Hook,
  type WireJob,
  fault,
  frame,
  startSse,
} from '../support/upstreams/hostile-v2.ts';
import { footprint } from '../support/processes/invariants.ts';
import {
  finish,
  outputOf,
  preview,
  progressAt,
  runsToCompletion,
  staysRunning,
} from '../support/upstreams/job-scripts.ts';
import { type Client, expectWhole, useSharedSetup } from './open.ts';

const setup = useSharedSetup();

const theirs = (client: Client) => setup.upstream.of(client.key);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const POLL = { timeout: 5_000 };
const RUNNING = frame('status', { status: 'running' });
const SUCCEEDED = frame('status', { status: 'succeeded' });
const STEP = frame('progress', progressAt(1, 2)) + frame('preview', preview());

/** A prompt whose job runs until `end` is called. */
async function held(client: Client, stream?: Hook) {
  setup.upstream.script(staysRunning, client.key);
  if (stream) theirs(client).always('events', stream);
  const { promptId, marker } = await client.post();
  const [job] = client.jobs(marker) as [WireJob];
  await expect.poll(() => job.status).toBe('running');
  return { promptId, marker, job, end: (fields?: object) => finish(setup.upstream, job, fields) };
}

/** A whole stream of a job, as bytes. */
function recording(job: WireJob): Buffer {
  const made = frame('output', outputOf(job));
  return Buffer.from(
    `: hello\n\n${RUNNING}${STEP}${frame('progress', progressAt(2, 2))}${made}${SUCCEEDED}`,
  );
}

/** Without a length and without chunks: its end looks like a good one wherever it comes. */
const delimitedByClose =
  (bytes: Buffer): Hook =>
  ({ req }) =>
    void req.socket.end(
      Buffer.concat([
        Buffer.from(
          'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n',
        ),
        bytes,
      ]),
    );

const CUTS: readonly (readonly [string, (bytes: Buffer) => Hook])[] = [
  [
    'FIN',
    (bytes) =>
      ({ res }) => {
        startSse(res);
        res.write(bytes, () => res.socket?.end());
      },
  ],
  ['RST', (bytes) => fault.sse(bytes, 'reset')],
  ['the end of a body without length', delimitedByClose],
];

describe('F27 a stream that breaks off', () => {
  test.each(CUTS)('by %s at any byte: each prompt ends once, with its picture', async (_, cut) => {
    const client = await setup.client();
    const broken = new Set<string>();
    theirs(client).always('events', (exchange) => {
      const job = exchange.server.jobs.get(exchange.id);
      if (!job || broken.has(job.id)) return exchange.honestly();
      broken.add(job.id);
      const whole = recording(job);
      return cut(whole.subarray(0, (broken.size * 37) % whole.length))(exchange);
    });
    const posts = await Promise.all(Array.from({ length: 24 }, () => client.post()));
    for (const { promptId } of posts) await expectWhole(client, promptId);
  });
});

describe('an end that is none', () => {
  test('F28 a stream that ends without a terminal status is opened again, and the run goes on', async () => {
    const client = await setup.client();
    const { promptId, end } = await held(client, fault.sse(RUNNING + STEP));
    await expect.poll(() => theirs(client).requests('events').length).toBeGreaterThan(2);
    expect(await client.history(promptId)).toBeUndefined();
    end();
    await expectWhole(client, promptId);
  });

  test.each([
    ['reports nodes', frame('status', { status: 'running', x_cached_nodes: [] })],
    ['reports steps only', RUNNING],
  ])(
    'F28 reads of the job that lag behind its streams take no bar back, of a service that %s',
    async (_which, running) => {
      const client = await setup.client();
      const steps = [
        [3, 20],
        [6, 20],
        [8, 20],
        [1, 5],
        [2, 5],
      ] as const;
      const streams = steps.map(([step, max], at) => {
        const progress = { ...progressAt(step, max), value: (at + 1) / 10 };
        return running + frame('progress', progress);
      });
      setup.upstream.script(staysRunning, client.key);
      theirs(client).always('get', ({ server, id, honestly }) => {
        Object.assign(server.jobs.get(id) ?? {}, {
          progress: { ...progressAt(2, 20), value: 0.1 },
        });
        void honestly();
      });
      theirs(client).always('events', fault.sse(running));
      theirs(client).once('events', ...streams.map((bytes) => fault.sse(bytes)));
      const { promptId, marker } = await client.post();
      await expect
        .poll(() => theirs(client).requests('events').length, POLL)
        .toBeGreaterThan(steps.length + 2);
      const [job] = client.jobs(marker) as [WireJob];
      finish(setup.upstream, job);
      await expectWhole(client, promptId);
      expect(client.outline(promptId).filter((name) => name.startsWith('progress:'))).toEqual(
        steps.map(([step, max]) => `progress:${step}/${max}`),
      );
    },
  );

  test('I4 a stream that says succeeded of a job that runs ends nothing', async () => {
    const client = await setup.client();
    const { promptId, job } = await held(client, fault.sse(RUNNING + SUCCEEDED));
    await sleep(400);
    expect(await client.history(promptId)).toBeUndefined();
    expect(client.outline(promptId)).not.toContain('execution_success');
    setup.upstream.change(job.id, {
      status: 'failed',
      error: { code: 'oom', message: 'out of memory' },
    });
    const entry = await client.ended(promptId);
    expect(entry.status.status_str).toBe('error');
  });

  test('F29 one that trickles bytes and never an event is left for the job itself', async () => {
    const client = await setup.client();
    const { promptId, end } = await held(client, fault.drip(30));
    await expect.poll(() => theirs(client).requests('events').length, POLL).toBeGreaterThan(1);
    end();
    await expectWhole(client, promptId);
  });

  test('F29 one that says something now and then is kept', async () => {
    const client = await setup.client();
    const { promptId, job, end } = await held(client);
    await expect.poll(() => theirs(client).requests('events').length).toBe(1);
    for (let step = 1; step <= 12; step += 1) {
      setup.upstream.emit(job.id, 'progress', progressAt(step, 12));
      await sleep(100);
    }
    expect(theirs(client).requests('events')).toHaveLength(1);
    end();
    await expectWhole(client, promptId);
  });
});

test('F34 404 in the place of a stream: the job is polled to its end', async () => {
  const client = await setup.client();
  setup.upstream.script(runsToCompletion({ waitMs: 300 }), client.key);
  theirs(client).always('events', fault.refuse(404, 'not_found'));
  const { promptId } = await client.post();
  await expectWhole(client, promptId);
  // It is about this job only; others may have a stream.
  expect(theirs(client).requests('events').length).toBeGreaterThan(0);
  expect(theirs(client).requests('events').length).toBeLessThanOrEqual(12);
});

describe('too much', () => {
  test('F33 a flood of previews: some may be left out, no step and no end is', async () => {
    const client = await setup.client();
    const { promptId, job, end } = await held(client);
    await expect.poll(() => theirs(client).requests('events').length).toBeGreaterThan(0);
    const before = footprint(setup.holdover()).rssBytes;
    const picture = preview(
      Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(20_000, 7)]),
    );
    for (let step = 1; step <= 20; step += 1) {
      for (let i = 0; i < 20; i += 1) setup.upstream.emit(job.id, 'preview', picture);
      setup.upstream.emit(job.id, 'progress', progressAt(step, 20));
      await sleep(25);
    }
    end();
    await expectWhole(client, promptId);
    expect(client.outline(promptId)).toContain('progress:20/20');
    expect(footprint(setup.holdover()).rssBytes - before).toBeLessThan(96 * 2 ** 20);
  });
});

/** Events that no correct server sends; the run goes on correctly after them. */
const NONSENSE = [
  'event: undocumented\ndata: {"a":1}\n\n',
  'event: progress\ndata: {not json\n\n',
  'event: progress\ndata: null\n\n',
  'event: progress\ndata: {"value":"much"}\n\n',
  frame('progress', { value: 7.5, nodes_done: -3, nodes_total: 2 }),
  frame('preview', { node_id: '1', content_type: 'image/jpeg', data_base64: '%%%' }),
  frame('preview', {}),
  frame('output', { id: 7 }),
  frame('status', { status: 'dancing' }),
  'event:status\ndata:{"status":\ndata:"running"}\n\n',
  'event: status\r\ndata: {"status":"running"}\r\n\r\n',
  ': a comment\n\n\n\n',
  'id: 7\nretry: 1\n\n',
  frame('log', { level: 'error', message: 'reserved' }),
  frame('status', { status: 'running', x_new: { deep: [1] } }),
].join('');

describe('F32 nonsense between the events', () => {
  test.each([1, undefined])('in pieces of %s bytes is passed over', async (bytes) => {
    const client = await setup.client();
    setup.upstream.script(staysRunning, client.key);
    theirs(client).always('events', async (exchange) => {
      const { server, id } = exchange;
      const job = server.jobs.get(id) as WireJob;
      await sleep(50);
      const made = outputOf(job);
      server.change(id, { outputs: [made], status: 'succeeded' });
      const late = frame('progress', progressAt(1, 2)) + SUCCEEDED;
      const text = `\uFEFF${RUNNING}${NONSENSE}${frame('progress', progressAt(2, 2))}${frame('output', made)}${frame('output', made)}${SUCCEEDED}${late}`;
      await fault.sse(text, 'close', bytes)(exchange);
    });
    const { promptId } = await client.post();
    await expectWhole(client, promptId);
    expect(client.outline(promptId)).toContain('progress:2/2');
  });
});

test('I1 to I10 hold over all of it', () => setup.check());
